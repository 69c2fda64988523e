package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/sluicehost/sluice/core/engine"
)

type benchCmd struct {
	modelFlags
	engineFlags
	registryFlags
	traceFlag
	Prompt  int  `default:"512" placeholder:"N" help:"Tokens of the prompt (default 512)."`
	Decode  int  `default:"64" placeholder:"N" help:"Tokens to make after it (default 64)."`
	Runs    int  `default:"3" placeholder:"N" help:"Runs after the first, which is told apart: it finds no expert on the GPU (default 3)."`
	Profile bool `help:"Then run once more with each dispatch by itself, and show the GPU time of each kernel."`
	JSON    bool `name:"json" help:"As JSON."`
}

// Help is the command's long help.
func (benchCmd) Help() string {
	return `Measures tokens per second of a prompt, and of the tokens made after it, one by one and greedily. The prompt is random tokens, the same ones each time. The first run is cold: all experts come from the disk, or the system's cache of it. The others are given as their median.`
}

// benchSeed makes the prompt.
const benchSeed = 1

// benchRun is one run, in seconds.
type benchRun struct {
	Prefill    float64 `json:"prefill_seconds"`
	Decode     float64 `json:"decode_seconds"`
	HitRate    float64 `json:"hit_rate"` // of the experts asked for
	Read       int64   `json:"bytes_read"`
	DecodeRead int64   `json:"decode_bytes_read"`
	DecodeWait float64 `json:"decode_disk_wait_seconds"`
	Allocs     uint64  `json:"decode_allocations"` // of the process while decoding, the binding's counted
	Bytes      uint64  `json:"decode_allocated_bytes"`
}

// benchRate is tokens per second.
type benchRate struct {
	Prefill float64 `json:"prefill_tokens_per_second"`
	Decode  float64 `json:"decode_tokens_per_second"`
}

// benchReport is the command's result.
type benchReport struct {
	Prompt  int           `json:"prompt_tokens"`
	Decode  int           `json:"decode_tokens"`
	Chunk   int           `json:"chunk"`
	Cold    benchRate     `json:"cold"`
	Warm    *benchRate    `json:"warm,omitempty"` // medians
	Runs    []benchRun    `json:"runs"`           // the cold one first
	Stats   *statsReport  `json:"stats"`
	Kernels []kernelShare `json:"kernels,omitempty"`
}

// kernelShare is what a kernel costs.
type kernelShare struct {
	Kernel     string  `json:"kernel"`
	Dispatches int     `json:"dispatches"`
	Seconds    float64 `json:"gpu_seconds"`
}

// Run measures.
func (c *benchCmd) Run(a *app) error {
	for _, n := range []struct {
		name        string
		have, least int
	}{{"--prompt", c.Prompt, 1}, {"--decode", c.Decode, 0}, {"--runs", c.Runs, 0}} {
		if n.have < n.least {
			return fmt.Errorf("%s: have %d, want %d or more", n.name, n.have, n.least)
		}
	}
	r := &benchReport{Prompt: c.Prompt, Decode: c.Decode}
	err := c.with(a, engine.Options{Top: 1}, func(b *bench) error { return b.measure(a.ctx, c.Runs, r) })
	if err == nil && c.Profile {
		c.Trace = "" // the measurement has written it
		err = c.with(a, engine.Options{Top: 1, Profile: true}, func(b *bench) error { return b.profile(a.ctx, r) })
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(r)
	}
	return r.print(a.out)
}

// bench is a model under measurement.
type bench struct {
	*loaded
	prompt []int32
	decode int
}

// with loads the model for f.
func (c *benchCmd) with(a *app, o engine.Options, f func(*bench) error) error {
	l, err := c.traceFlag.load(a, c.modelFlags, c.registryFlags, c.engineFlags, o)
	if err != nil {
		return err
	}
	return errors.Join(c.begin(l, f), l.close())
}

func (c *benchCmd) begin(l *loaded, f func(*bench) error) error {
	if room := l.model.Context; c.Prompt > room || c.Decode > room-c.Prompt {
		return fmt.Errorf("have %d tokens of prompt and %d to make, want at most the context's %d: %s", c.Prompt, c.Decode, room, l.fit("fewer"))
	}
	b := &bench{loaded: l, decode: c.Decode}
	random := rand.New(rand.NewPCG(benchSeed, 0))
	for range c.Prompt {
		b.prompt = append(b.prompt, int32(random.IntN(l.tok.VocabSize())))
	}
	return f(b)
}

// measure fills in everything but the profile.
func (b *bench) measure(ctx context.Context, runs int, r *benchReport) error {
	r.Chunk = b.model.Chunk
	for range 1 + runs {
		x, err := b.run(ctx)
		if err != nil {
			return err
		}
		r.Runs = append(r.Runs, x)
	}
	rate := func(prefill, decode float64) benchRate {
		return benchRate{perSecond(len(b.prompt), prefill), perSecond(b.decode, decode)}
	}
	r.Cold = rate(r.Runs[0].Prefill, r.Runs[0].Decode)
	if warm := r.Runs[1:]; len(warm) > 0 {
		w := rate(median(warm, func(x benchRun) float64 { return x.Prefill }), median(warm, func(x benchRun) float64 { return x.Decode }))
		r.Warm = &w
	}
	r.Stats = b.report()
	return nil
}

// run is one prompt and what follows.
func (b *bench) run(ctx context.Context) (benchRun, error) {
	if err := b.session.Reset(); err != nil {
		return benchRun{}, err
	}
	hits, asked, read := b.found()
	var next [1]int32
	emit := func(_ int, l *engine.Logits) error {
		if len(l.IDs) == 0 {
			return errors.New("the logits are no numbers")
		}
		next[0] = l.IDs[0]
		return nil
	}
	b.routes.decoding(false)
	start := time.Now()
	if err := b.session.Feed(ctx, b.prompt, 1, emit); err != nil {
		return benchRun{}, err
	}
	b.routes.decoding(true)
	x := benchRun{Prefill: time.Since(start).Seconds()}
	_, _, prefilled := b.found()
	waited := b.model.Stats().DiskWait
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start = time.Now()
	for range b.decode {
		if err := b.session.Feed(ctx, next[:], 1, emit); err != nil {
			return x, err
		}
	}
	x.Decode = time.Since(start).Seconds()
	runtime.ReadMemStats(&after)
	x.Allocs, x.Bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	h, n, bytes := b.found()
	x.DecodeRead, x.DecodeWait = bytes-prefilled, (b.model.Stats().DiskWait - waited).Seconds()
	x.HitRate, x.Read = float64(h-hits)/float64(max(n-asked, 1)), bytes-read
	return x, nil
}

// found is how many experts were resident of those asked for, and the bytes read, so far.
func (b *bench) found() (hits, asked, read int64) {
	for _, c := range b.model.Counters(nil) {
		hits += c.Hits
		asked += c.Hits + c.Late + c.Misses
	}
	return hits, asked, b.model.BytesRead()
}

// profile adds the kernels.
func (b *bench) profile(ctx context.Context, r *benchReport) error {
	if _, err := b.run(ctx); err != nil {
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

// median is the middle one of a number of each run; of two, the lesser.
func median(runs []benchRun, of func(benchRun) float64) float64 {
	var all []float64
	for _, x := range runs {
		all = append(all, of(x))
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

// print writes tables.
func (r *benchReport) print(out io.Writer) error {
	w := &errWriter{w: out}
	speed := func(n int, rate float64) string {
		if n == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f tok/s", rate)
	}
	table(w, func(t io.Writer) {
		fmt.Fprintln(t, "RUN\tPREFILL\tDECODE\tHIT RATE\tREAD")
		for i, x := range r.Runs {
			name := fmt.Sprint(i)
			if i == 0 {
				name = "cold"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%.1f %%\t%s\n", name, speed(r.Prompt, perSecond(r.Prompt, x.Prefill)), speed(r.Decode, perSecond(r.Decode, x.Decode)),
				100*x.HitRate, size(uint64(x.Read)))
		}
		if r.Warm != nil {
			fmt.Fprintf(t, "median\t%s\t%s\n", speed(r.Prompt, r.Warm.Prefill), speed(r.Decode, r.Warm.Decode))
		}
	})
	fmt.Fprintf(w, "\n%d tokens of prompt in chunks of %d, %d made after it; loaded in %.1f s; %s; GPU %s (budget %s)\n",
		r.Prompt, r.Chunk, r.Decode, r.Stats.Load, r.Stats.Device, size(r.Stats.GPU.Total.Actual), r.Stats.GPU.Budget)
	if last := r.Runs[len(r.Runs)-1]; r.Decode > 0 {
		n := uint64(r.Decode)
		fmt.Fprintf(w, "%d allocations and %s for each token made in the last run, all of the process\n", last.Allocs/n, size(last.Bytes/n))
	}
	r.printKernels(w)
	return w.err
}

func (r *benchReport) printKernels(w io.Writer) {
	if len(r.Kernels) == 0 {
		return
	}
	var sum float64
	for _, k := range r.Kernels {
		sum += k.Seconds
	}
	fmt.Fprintln(w)
	table(w, func(t io.Writer) {
		fmt.Fprintln(t, "GPU TIME\tSHARE\tDISPATCHES\tEACH\tKERNEL")
		for _, k := range r.Kernels {
			fmt.Fprintf(t, "%.1f ms\t%.1f %%\t%d\t%.1f µs\t%s\n", 1e3*k.Seconds, 100*k.Seconds/sum, k.Dispatches, 1e6*k.Seconds/float64(k.Dispatches), k.Kernel)
		}
	})
}
