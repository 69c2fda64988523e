package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu"
)

// benchRow is one budget with the page cache in one state. Speeds are of the run whose time is the median.
type benchRow struct {
	Budget    string       `json:"budget"` // as given
	Cache     string       `json:"cache"`
	Error     string       `json:"error,omitempty"` // why it was not measured: the rest is unset
	GPU       uint64       `json:"gpu_bytes"`
	Slots     int          `json:"slots"`
	Share     float64      `json:"resident_share"` // of the experts that have a slot
	Prefill   float64      `json:"prefill_tokens_per_second"`
	Decode    float64      `json:"decode_tokens_per_second"`
	HitRate   float64      `json:"hit_rate"` // of the experts that made tokens asked for
	Read      float64      `json:"bytes_read_per_token"`
	FromRAM   float64      `json:"bytes_from_ram_per_token"`
	Wanted    float64      `json:"read_wanted"` // share of the records read that was asked for
	Rate      float64      `json:"bytes_read_per_second"`
	Limit     benchSpeed   `json:"limit"`
	Efficient float64      `json:"efficiency"` // decode speed over the overlapped limit; 0 is unknown
	Waited    float64      `json:"disk_wait_seconds_per_token"`
	GPUWaited float64      `json:"gpu_wait_seconds_per_token"`
	Encoded   float64      `json:"encode_seconds_per_token"`
	Allocs    float64      `json:"allocations_per_token"`
	Bytes     float64      `json:"allocated_bytes_per_token"`
	Chunk     int          `json:"chunk"`
	Runs      []benchRun   `json:"runs"` // the first one first
	Stats     *statsReport `json:"stats,omitempty"`

	order int // of its budget
}

func (r benchRow) measured() bool { return r.Error == "" }

// measureRow measures a budget.
func (c *benchCmd) measureRow(a *app, s *benchSurvey, p benchPlan, x *benchCache, drop func() error) (benchRow, error) {
	row := benchRow{Budget: p.text, Cache: x.Cache, GPU: p.bytes, Slots: p.slots}
	row.Share = float64(p.slots) / float64(len(s.records)*s.experts)
	name := p.text + "-" + x.Cache
	if len(c.Budgets) < 2 && c.Cache != cacheBoth {
		name = ""
	}
	cpu, err := c.cpuProfile(name)
	if err != nil {
		return row, err
	}
	e := c.engineFlags
	e.GPUBudget, e.Direct = p.budget, "off"
	if s.reading.direct { // auto must come out alike for all
		e.Direct = "on"
	}
	shown := a.progress("measuring")
	err = c.with(a, e, engine.Options{Top: 1}, func(b *bench) error {
		if err := s.source.PageCache().Same(b.disk.PageCache()); err != nil {
			return err // limits and other rows are of another model
		}
		c.Trace = "" // one budget's serves for all
		if x.drop {
			b.drop = drop
		}
		if cpu != nil {
			b.cpu = cpu
		}
		b.doing = func(run int, decoding bool) { shown.bench(p.text, x.Cache, run, 1+c.Runs, decoding) }
		runs, err := b.runs(a.ctx, c.Runs)
		if err != nil {
			return err
		}
		row.Chunk, row.Runs, row.Stats = b.model.Chunk, runs, b.report()
		row.Stats.Reading.Why = s.reading.why // not that it was set above
		return nil
	})
	shown.done()
	err = errors.Join(err, cpu.close())
	if errors.Is(err, gpu.ErrOutOfMemory) || errors.Is(err, gpu.ErrBudget) { // others' budgets may fit
		return benchRow{Budget: p.text, Cache: x.Cache, Error: err.Error()}, nil
	}
	if err == nil {
		row.fill(c.Prompt, c.Decode)
	}
	return row, err
}

// bench shows which run is under way.
func (p *progress) bench(budget, cache string, run, of int, decoding bool) {
	if now := time.Now(); !now.Before(p.next) {
		what := "prompt"
		if decoding {
			what = "tokens"
		}
		p.show(now, fmt.Sprintf("measuring %s, %s: run %d of %d, %s", budget, cache, run+1, of, what))
	}
}

// fill computes a row from its runs.
func (r *benchRow) fill(prompt, decode int) {
	runs := counted(r.Runs)
	r.Prefill = perSecond(prompt, median(runs, benchRun.prefill))
	if decode == 0 {
		return
	}
	x, n := medianRun(runs, benchRun.decode), float64(decode)
	r.Decode, r.HitRate, r.Wanted = perSecond(decode, x.Decode), x.DecodeHitRate, x.DecodeWanted
	r.Read, r.FromRAM, r.Waited = float64(x.DecodeRead)/n, float64(x.DecodeRAM)/n, x.DecodeWait/n
	r.GPUWaited, r.Encoded = x.DecodeGPU/n, x.DecodeEncode/n
	r.Allocs, r.Bytes = float64(x.Allocs)/n, float64(x.Bytes)/n
	if x.Decode > 0 {
		r.Rate = float64(x.DecodeRead) / x.Decode
	}
}
