package main

import (
	"fmt"
	"io"
	"time"

	"github.com/sluicehost/sluice/core/engine"
)

// showStats asks for tables.
type showStats struct {
	Stats bool `help:"At the end show where a token's time went and how each layer found its experts, on standard error (docs/stats.md)."`
}

// mark is what a model had taken at some moment.
type mark struct {
	engine.Stats
	experts   countReport
	read, ram int64 // bytes
}

func (l *loaded) mark() mark {
	m := mark{Stats: l.model.Stats(), read: l.model.BytesRead()}
	for _, c := range l.model.Counters(nil) {
		m.experts.add(counts(c))
	}
	if l.reading != nil && l.reading.ram != nil {
		m.ram = l.reading.ram.Counters().Bytes
	}
	return m
}

// tokenReport is what a token took in the mean, of those since a mark. Times are in seconds, sizes in bytes.
type tokenReport struct {
	Tokens    int     `json:"tokens"` // that the mean is of
	Time      float64 `json:"seconds"`
	GPUWait   float64 `json:"gpu_wait"`
	GPU       float64 `json:"gpu,omitempty"`      // computing, where it was timed
	Readback  float64 `json:"readback,omitempty"` // the rest of gpu_wait
	DiskWait  float64 `json:"disk_wait"`
	Encode    float64 `json:"encode"`
	Other     float64 `json:"other"` // the rest of the time
	Upload    float64 `json:"upload"`
	Read      float64 `json:"bytes_read"`
	FromRAM   float64 `json:"bytes_from_ram"`
	Readbacks float64 `json:"readbacks"`
	Stops     float64 `json:"stops"`
	Rate      float64 `json:"read_per_second"` // bytes, of the time that was waited for the disk
	HitRate   float64 `json:"hit_rate"`
	Recall    float64 `json:"guess_recall"`
	found     countReport
}

// since is the mean of the tokens since a mark; nil where there are none.
func (l *loaded) since(m mark) *tokenReport {
	now := l.mark()
	n := float64(now.Tokens - m.Tokens)
	if n <= 0 {
		return nil
	}
	each := func(a, b time.Duration) float64 { return (a - b).Seconds() / n }
	t := &tokenReport{
		Tokens: int(n), Time: each(now.Time, m.Time), GPUWait: each(now.GPUWait, m.GPUWait), DiskWait: each(now.DiskWait, m.DiskWait),
		Encode: each(now.Encode, m.Encode), Upload: each(now.Upload, m.Upload), Read: float64(now.read-m.read) / n, FromRAM: float64(now.ram-m.ram) / n,
		Readbacks: float64(now.Readbacks-m.Readbacks) / n, Stops: float64(now.Stops-m.Stops) / n,
	}
	if t.GPU = each(now.GPU, m.GPU); t.GPU > 0 {
		t.Readback = max(0, t.GPUWait-t.GPU)
	}
	t.Other = max(0, t.Time-t.GPUWait-t.DiskWait-t.Encode)
	if t.DiskWait > 0 {
		t.Rate = t.Read / t.DiskWait
	}
	x, y := now.experts, m.experts
	t.found = countReport{Hits: x.Hits - y.Hits, Late: x.Late - y.Late, Misses: x.Misses - y.Misses, Guessed: x.Guessed - y.Guessed, Useful: x.Useful - y.Useful}
	t.HitRate, t.Recall = t.found.hitRate(), t.found.recall()
	return t
}

// hitRate is the share of the experts asked for that were in a slot.
func (c countReport) hitRate() float64 {
	return float64(c.Hits) / float64(max(c.Hits+c.Late+c.Misses, 1))
}

func (c countReport) hitText() string { return shareText(c.Hits, c.Hits+c.Late+c.Misses) }
func (c countReport) recallText() string {
	if c.Guessed == 0 && c.Useful == 0 { // what is useful may have been guessed before the tokens counted
		return "-"
	}
	return shareText(c.Useful, c.Useful+c.Misses)
}

// recall is the share that guesses foresaw of the experts that would have been missing without them.
func (c countReport) recall() float64 {
	return float64(c.Useful) / float64(max(c.Useful+c.Misses, 1))
}

// print writes the tables of --stats.
func (r *statsReport) print(out io.Writer) {
	if t := r.PerToken; t != nil {
		ms := func(s float64) string { return fmt.Sprintf("%.2f ms", 1e3*s) }
		fmt.Fprintf(out, "\na token made takes %s, the mean of %d:\n", ms(t.Time), t.Tokens)
		table(out, func(w io.Writer) {
			wait := fmt.Sprintf("waiting for results; %.2f readbacks", t.Readbacks)
			if t.GPU > 0 {
				wait += fmt.Sprintf("; the GPU computes %s, readback %s", ms(t.GPU), ms(t.Readback))
			}
			fmt.Fprintf(w, "  gpu\t%s\t%s\n", ms(t.GPUWait), wait)
			fmt.Fprintf(w, "  disk\t%s\t%s read, %s/s; %.2f layers stopped; uploading %s of all readers\n", ms(t.DiskWait), size(uint64(t.Read)), size(uint64(t.Rate)), t.Stops, ms(t.Upload))
			fmt.Fprintf(w, "  encode\t%s\trecording and submitting commands\n", ms(t.Encode))
			fmt.Fprintf(w, "  other\t%s\tthe host's own work\n", ms(t.Other))
		})
		fmt.Fprintf(out, "  hit rate %s, guess recall %s\n", t.found.hitText(), t.found.recallText())
	}
	fmt.Fprintf(out, "\n%s, %d of %s resident; all tokens, prompts too:\n", plural(r.Experts.Slots, "slot"), r.Experts.Resident, plural(r.Experts.All, "expert"))
	table(out, func(w io.Writer) {
		fmt.Fprintln(w, "  LAYER\tHIT RATE\tHITS\tLATE\tMISSES\tEVICTED\tGUESSED\tUSEFUL\tWASTED\tRECALL")
		row := func(name string, c countReport) {
			fmt.Fprintf(w, "  %s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", name, c.hitText(), c.Hits, c.Late, c.Misses, c.Evictions, c.Guessed, c.Useful, c.Wasted, c.recallText())
		}
		for _, l := range r.Experts.Layers {
			row(fmt.Sprint(l.Layer), l.countReport)
		}
		row("all", r.Experts.countReport)
	})
}
