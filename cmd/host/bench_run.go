package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/sluicehost/sluice/core/engine"
)

// benchSeed makes the prompts. tools/llamabench makes the first run's.
const benchSeed = 1

// benchRun is one run; times are in seconds.
type benchRun struct {
	Prefill       float64 `json:"prefill_seconds"`
	Decode        float64 `json:"decode_seconds"`
	HitRate       float64 `json:"hit_rate"` // of the experts asked for
	Read          int64   `json:"bytes_read"`
	DecodeHitRate float64 `json:"decode_hit_rate"`
	DecodeRead    int64   `json:"decode_bytes_read"`
	DecodeRAM     int64   `json:"decode_bytes_from_ram"` // of experts, by --ram-cache
	DecodeWanted  float64 `json:"decode_read_wanted"`    // share of the records read that were asked for, at once or later
	DecodeWait    float64 `json:"decode_disk_wait_seconds"`
	DecodeGPU     float64 `json:"decode_gpu_wait_seconds"`
	DecodeEncode  float64 `json:"decode_encode_seconds"`
	Dropping      float64 `json:"drop_seconds"`       // of the page cache between tokens: in no other time
	Allocs        uint64  `json:"decode_allocations"` // of the process while decoding, the binding's counted
	Bytes         uint64  `json:"decode_allocated_bytes"`
}

// bench is a model under measurement.
type bench struct {
	*loaded
	prompt  []int32
	decode  int
	drop    func() error                 // comes before each step, outside its time: drops the page cache; nil for none
	doing   func(run int, decoding bool) // is told of each run and of its decoding; nil for nobody
	cpu     io.Writer                    // where the profile of the last run's decoding goes; nil for nowhere
	dropped time.Duration                // of this run
}

// begin makes a bench of a loaded model.
func (c *benchCmd) begin(l *loaded) (*bench, error) {
	if err := c.fits(l.model.Planned); err != nil {
		return nil, err
	}
	return &bench{loaded: l, decode: c.Decode, prompt: make([]int32, c.Prompt)}, nil
}

// ask makes a run's prompt: each has its own, or a pool that holds a run's experts would find all of them in the next.
func (b *bench) ask(run int) {
	random := rand.New(rand.NewPCG(benchSeed, uint64(run)))
	for i := range b.prompt {
		b.prompt[i] = int32(random.IntN(b.tok.VocabSize()))
	}
}

// fits refuses more tokens than the context holds.
func (c *benchCmd) fits(m *engine.Planned) error {
	if room := m.Context; c.Prompt > room || c.Decode > room-c.Prompt {
		return fmt.Errorf("have %s of prompt and %d to make, want at most the context's %d: %s", plural(c.Prompt, "token"), c.Decode, room, fit(m, "fewer"))
	}
	return nil
}

// runs measures the first run and so many more. Before those a pool that has room for every expert is filled.
func (b *bench) runs(ctx context.Context, more int) (out []benchRun, err error) {
	for i := range 1 + more {
		if i == 1 && b.whole() {
			if err := b.model.Fill(ctx, nil); err != nil {
				return out, err
			}
		}
		x, err := b.run(ctx, i, i == more)
		if err != nil {
			return out, err
		}
		out = append(out, x)
	}
	return out, nil
}

// whole says whether the pool has a slot for every expert.
func (l *loaded) whole() bool { return l.model.Budget.Pool >= l.model.Budget.Whole }

// run is one prompt and what follows.
func (b *bench) run(ctx context.Context, number int, last bool) (x benchRun, err error) {
	if err := b.session.Reset(); err != nil {
		return x, err
	}
	b.ask(number)
	var next [1]int32
	emit := func(_ int, l *engine.Logits) error {
		if len(l.IDs) == 0 {
			return errors.New("the logits are no numbers")
		}
		next[0] = l.IDs[0]
		return nil
	}
	b.dropped = 0
	b.tell(number, false)
	b.routes.decoding(false)
	begun := b.found()
	took, err := b.prefill(ctx, emit)
	if err != nil {
		return x, err
	}
	x.Prefill = took.Seconds()
	b.tell(number, true)
	b.routes.decoding(true)
	if last && b.cpu != nil {
		if err := pprof.StartCPUProfile(b.cpu); err != nil {
			return x, fmt.Errorf("--cpuprofile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	prefilled, was := b.found(), b.model.Stats()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	took = 0
	for range b.decode {
		t, err := b.feed(ctx, next[:], 1, emit)
		if err != nil {
			return x, err
		}
		took += t
	}
	runtime.ReadMemStats(&after)
	is := b.model.Stats()
	x.Decode, x.Dropping = took.Seconds(), b.dropped.Seconds()
	x.DecodeWait, x.DecodeGPU, x.DecodeEncode = (is.DiskWait - was.DiskWait).Seconds(), (is.GPUWait - was.GPUWait).Seconds(), (is.Encode - was.Encode).Seconds()
	x.Allocs, x.Bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	end := b.found()
	all, made := end.since(begun), end.since(prefilled)
	x.HitRate, x.Read = all.hitRate(), all.read
	x.DecodeHitRate, x.DecodeRead, x.DecodeRAM, x.DecodeWanted = made.hitRate(), made.read, made.ram, made.wanted()
	return x, nil
}

func (b *bench) tell(run int, decoding bool) {
	if b.doing != nil {
		b.doing(run, decoding)
	}
}

// prefill feeds the prompt, chunk by chunk where something comes before each.
func (b *bench) prefill(ctx context.Context, emit func(int, *engine.Logits) error) (took time.Duration, err error) {
	left := b.prompt
	for b.drop != nil && len(left) > b.model.Chunk {
		t, err := b.feed(ctx, left[:b.model.Chunk], 0, nil)
		if took += t; err != nil {
			return took, err
		}
		left = left[b.model.Chunk:]
	}
	t, err := b.feed(ctx, left, 1, emit)
	return took + t, err
}

// feed feeds tokens and says how long that took.
func (b *bench) feed(ctx context.Context, tokens []int32, want int, emit func(int, *engine.Logits) error) (time.Duration, error) {
	start := time.Now()
	if b.drop != nil {
		if err := b.drop(); err != nil {
			return 0, err
		}
		now := time.Now()
		b.dropped += now.Sub(start)
		start = now
	}
	err := b.session.Feed(ctx, tokens, want, emit)
	return time.Since(start), err
}

// benchCounts are what has happened to experts so far; read and ram are bytes.
type benchCounts struct{ hits, asked, misses, guessed, useful, read, ram int64 }

// found is what has happened so far.
func (b *bench) found() (out benchCounts) {
	for _, c := range b.model.Counters(nil) {
		out.hits += c.Hits
		out.asked += c.Hits + c.Late + c.Misses
		out.misses += c.Misses
		out.guessed += c.Guessed
		out.useful += c.Useful
	}
	out.read = b.model.BytesRead()
	if b.reading != nil && b.reading.ram != nil {
		out.ram = b.reading.ram.Counters().Bytes
	}
	return out
}

func (c benchCounts) since(x benchCounts) benchCounts {
	return benchCounts{c.hits - x.hits, c.asked - x.asked, c.misses - x.misses, c.guessed - x.guessed, c.useful - x.useful, c.read - x.read, c.ram - x.ram}
}

func (c benchCounts) hitRate() float64 { return float64(c.hits) / float64(max(c.asked, 1)) }

// wanted is the share of the records read that were asked for: all but guesses that came to nothing, or have yet to.
func (c benchCounts) wanted() float64 {
	if c.misses+c.guessed <= 0 {
		return 1
	}
	return min(1, float64(c.misses+c.useful)/float64(c.misses+c.guessed))
}

// profile adds the kernels.
func (b *bench) profile(ctx context.Context, r *benchReport) error {
	if _, err := b.run(ctx, 0, false); err != nil {
		return err
	}
	for _, k := range b.model.Profile() {
		r.Kernels = append(r.Kernels, kernelShare{k.Kernel, k.Dispatches, k.Time.Seconds()})
	}
	return nil
}

func perSecond(n int, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}

// counted are the runs that count: all but the first, unless it is the only one.
func counted(runs []benchRun) []benchRun {
	if len(runs) > 1 {
		return runs[1:]
	}
	return runs
}

// medianRun is the middle one of the runs by a number of theirs; of two, the one with the lesser.
func medianRun(runs []benchRun, of func(benchRun) float64) benchRun {
	sorted := slices.SortedFunc(slices.Values(runs), func(a, b benchRun) int {
		switch x, y := of(a), of(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return sorted[(len(sorted)-1)/2]
}

// median is the middle one of a number of each run; of two, the lesser.
func median(runs []benchRun, of func(benchRun) float64) float64 { return of(medianRun(runs, of)) }

// The times of a run.
func (x benchRun) prefill() float64 { return x.Prefill }
func (x benchRun) decode() float64  { return x.Decode }
