package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sluicehost/sluice/core/engine"
)

type benchCmd struct {
	modelFlags
	engineFlags
	registryFlags
	traceFlag
	Budgets    benchBudgets `placeholder:"LIST" help:"GPU budgets to measure one after the other, as in 10%,25%,4GB,max. A percentage is of the bytes of all experts' slots, beside what else the model needs."`
	Cache      string       `enum:"as-is,cold,warm,both" default:"${cache=as-is}" help:"Page cache while measuring: as-is (default), cold (dropped before every token), warm (the files are read through before), or both of these."`
	Prompt     int          `default:"512" placeholder:"N" help:"Tokens of the prompt (default 512)."`
	Decode     int          `default:"64" placeholder:"N" help:"Tokens to make after it (default 64)."`
	Runs       int          `default:"3" placeholder:"N" help:"Runs after the first, which is told apart: it finds no expert on the GPU (default 3)."`
	Profile    bool         `help:"Then run once more with each dispatch by itself, and show the GPU time of each kernel."`
	CPUProfile string       `name:"cpuprofile" placeholder:"FILE" help:"Write a profile of the host's CPU time while it makes the tokens of the last run, for go tool pprof. A file that is there is replaced."`
	Out        string       `placeholder:"FILE" help:"Write the JSON to this file, too, in place of what is there."`
	JSON       bool         `name:"json" help:"As JSON."`
}

// Help is the command's long help.
func (benchCmd) Help() string {
	return `Measures tokens per second of a prompt, and of the tokens made after it, one by one and greedily. The prompt is random tokens: each run has its own, the same in every bench. The first run finds no expert on the GPU: all come from the disk, or the system's cache of it. The others are given as their median.

With --budgets or --cache it loads the model anew for each budget and state of the page cache, and prints a row for each, beside what the formula of docs/streaming.md allows by the limits that it measures on the way: the disk, the copy to the GPU, and a token with everything resident. A budget that is too small is a row that says what works. Ctrl-C prints the rows that are done.`
}

// benchRate is tokens per second.
type benchRate struct {
	Prefill float64 `json:"prefill_tokens_per_second"`
	Decode  float64 `json:"decode_tokens_per_second"`
}

// benchReport is the command's result for one budget, with the page cache as it is.
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

// check refuses flags that mean nothing.
func (c *benchCmd) check() error {
	for _, n := range []struct {
		name        string
		have, least int
	}{{"--prompt", c.Prompt, 1}, {"--decode", c.Decode, 0}, {"--runs", c.Runs, 0}} {
		if n.have < n.least {
			return fmt.Errorf("%s: have %d, want %d or more", n.name, n.have, n.least)
		}
	}
	switch {
	case len(c.Budgets) > 0 && !c.GPUBudget.auto:
		return errors.New("--gpu-budget: have --budgets, too, want one of them")
	case c.table() && c.Profile:
		return errors.New("--profile: have --budgets or --cache, too, want it without: it is of one budget")
	case c.Direct == "on" && c.Cache == "warm":
		return errors.New("--cache warm: have --direct on, which reads past the page cache, want one of them")
	}
	if err := c.checkBudgets(); err != nil {
		return err
	}
	if err := apart(output{"--out", c.Out}, output{"--trace", c.Trace}, output{"--cpuprofile", c.CPUProfile}); err != nil {
		return err
	}
	return c.engineFlags.check()
}

// Run measures.
func (c *benchCmd) Run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	out, err := c.output()
	if err != nil {
		return err
	}
	if c.table() {
		err = c.runTable(a, out)
	} else {
		err = c.runOne(a, out)
	}
	if out != nil {
		err = errors.Join(err, out.Close())
	}
	return err
}

// output makes the file of --out; nil where there is none.
func (c *benchCmd) output() (*outputFile, error) {
	if c.Out == "" {
		return nil, nil
	}
	return createOutput("--out", c.Out)
}

// runOne measures one budget.
func (c *benchCmd) runOne(a *app, out *outputFile) error {
	r := &benchReport{Prompt: c.Prompt, Decode: c.Decode}
	cpu, err := c.cpuProfile("")
	if err != nil {
		return err
	}
	err = c.with(a, c.engineFlags, engine.Options{Top: 1}, func(b *bench) error {
		if cpu != nil {
			b.cpu = cpu
		}
		return b.measure(a.ctx, c.Runs, r)
	})
	if err = errors.Join(err, cpu.close()); err != nil {
		return err
	}
	if c.Profile {
		c.Trace = "" // the measurement has written it
		if err := c.with(a, c.engineFlags, engine.Options{Top: 1, Profile: true}, func(b *bench) error { return b.profile(a.ctx, r) }); err != nil {
			return err
		}
	}
	return c.show(a, out, r, r.print)
}

// show prints a result as the flags say.
func (c *benchCmd) show(a *app, out *outputFile, result any, print func(io.Writer) error) error {
	if out != nil {
		if err := writeJSON(out, result); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if c.JSON {
		return a.printJSON(result)
	}
	return print(a.out)
}

// with loads the model for f.
func (c *benchCmd) with(a *app, e engineFlags, o engine.Options, f func(*bench) error) error {
	l, err := c.traceFlag.load(a, c.modelFlags, c.registryFlags, e, o)
	if err != nil {
		return err
	}
	b, err := c.begin(l)
	if err == nil {
		err = f(b)
	}
	return errors.Join(err, l.close())
}

// measure fills in everything but the profile.
func (b *bench) measure(ctx context.Context, runs int, r *benchReport) (err error) {
	r.Chunk = b.model.Chunk
	if r.Runs, err = b.runs(ctx, runs); err != nil {
		return err
	}
	rate := func(prefill, decode float64) benchRate {
		return benchRate{perSecond(len(b.prompt), prefill), perSecond(b.decode, decode)}
	}
	r.Cold = rate(r.Runs[0].Prefill, r.Runs[0].Decode)
	if warm := r.Runs[1:]; len(warm) > 0 {
		w := rate(median(warm, benchRun.prefill), median(warm, benchRun.decode))
		r.Warm = &w
	}
	r.Stats = b.report()
	return nil
}
