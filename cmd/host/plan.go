package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/routing"
	"github.com/sluicehost/sluice/core/sample"
	"github.com/sluicehost/sluice/core/simulate"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/core/stream"
)

type planCmd struct {
	modelFlags
	engineFlags
	registryFlags
	Device    string  `enum:"this,gpu,cpu" default:"this" help:"Whose limits count: this machine's GPU where there is one (this, the default), a typical GPU's (gpu), or those of Mesa's CPU driver (cpu)."`
	Trace     string  `placeholder:"FILE" help:"Routing that run, eval or bench --trace has recorded: adds hit rates, and with limits tokens per second, at many budgets."`
	Bench     string  `placeholder:"FILE" help:"With --trace: take limits from what host bench --json has printed."`
	DiskGBs   float64 `name:"disk-gbs" placeholder:"X" help:"With --trace, a limit: GB per second that expert records are read at. Default: no limit."`
	UploadGBs float64 `name:"upload-gbs" placeholder:"X" help:"With --trace, a limit: GB per second from memory to the GPU. Default: no limit."`
	TokenMS   float64 `name:"token-ms" placeholder:"X" help:"With --trace, a limit: milliseconds that a token takes with every expert resident. Default: no limit."`
	Temp      float64 `default:"0" placeholder:"T" help:"As of run or chat: sampling needs room for more logits than taking the likeliest token (0, the default)."`
	TopK      int     `default:"0" placeholder:"K" help:"With --temp, as of run or chat."`
	Snapshots int     `default:"0" placeholder:"N" help:"As of chat, whose default is 2 (here 0)."`
	SVG       string  `name:"svg" placeholder:"FILE" help:"Draw the curves of --trace into this file, in place of what is there."`
	JSON      bool    `name:"json" help:"As JSON."`
}

// Help is the command's long help.
func (planCmd) Help() string {
	return `Shows what fits where at a GPU budget: bytes by kind, slots, the smallest budget that works. It loads no weights and needs no GPU. With --trace it computes what pools of other sizes would have found of the experts asked for: by LRU (one pass over the trace), by frequency, by one LRU over all layers, and with the best choice that anyone could make. Tokens per second are the least of the limits (docs/streaming.md).

What fits is that of host run. Sampling takes a little more, without --top-k a few MB where the vocabulary is large, and so do the snapshots of chat: say so with --temp, --top-k and --snapshots (host chat without flags: --temp 0.7 --top-k 40 --snapshots 2).

With --trace alone, and no model, budgets are those of the expert pool. The exit code is 1 where the model does not fit.`
}

// Validate fails where there is nothing to plan.
func (c *planCmd) Validate() error {
	if c.SVG != "" && sameFile(c.SVG, c.Trace) {
		return fmt.Errorf("--svg: have %s, which is the trace, want another path", c.SVG)
	}
	if c.SVG != "" && sameFile(c.SVG, c.Bench) {
		return fmt.Errorf("--svg: have %s, which is that of --bench, want another path", c.SVG)
	}
	if c.Trace != "" {
		return nil
	}
	for _, f := range []struct {
		name  string
		given bool
	}{{"--svg", c.SVG != ""}, {"--bench", c.Bench != ""}, {"--disk-gbs", c.DiskGBs != 0}, {"--upload-gbs", c.UploadGBs != 0}, {"--token-ms", c.TokenMS != 0}} {
		if f.given {
			return fmt.Errorf("%s: have no --trace, want one, which host run --trace FILE records: it is of the curves that follow from a trace", f.name)
		}
	}
	return c.modelFlags.Validate()
}

// Run plans.
func (c *planCmd) Run(a *app) error {
	limits, err := c.limits()
	if err != nil {
		return err
	}
	if err := c.engineFlags.check(); err != nil {
		return err
	}
	if err := checkSnapshots(c.Snapshots); err != nil {
		return err
	}
	sampler, err := sample.New(sample.Params{Temp: c.Temp, TopK: c.TopK})
	if err != nil {
		return err
	}
	r := &planReport{KV: c.KV, Evict: c.Evict.String(), Limits: limits, Curve: []planPoint{}, RAMCache: uint64(c.RAMCache), readers: c.Readers, depth: int(c.Lookahead)}
	if r.readers <= 0 {
		r.readers = engine.DefaultReaders()
	}
	if c.Routing == "wait" {
		r.depth = -1
	}
	var demand *simulate.Demand
	if c.Trace != "" {
		if demand, err = r.trace(c.Trace); err != nil {
			return err
		}
	}
	p := poolOnly(demand)
	if c.Model != "" || c.Store != "" {
		if p, err = c.plan(a, r, engine.Options{Top: sampler.Needs(), Snapshots: c.Snapshots}); err != nil {
			return err
		}
	}
	shown := a.progress("simulating")
	err = r.fill(a.ctx, p, demand, c.Evict, shown.budgets)
	shown.done()
	if err != nil {
		return fmt.Errorf("%s: %w", r.File, err)
	}
	if c.SVG != "" {
		if err := writeOutput("--svg", c.SVG, r.svg()); err != nil {
			return err
		}
	}
	if c.JSON {
		err = a.printJSON(r)
	} else {
		err = r.print(a.out)
	}
	if err == nil && !r.Fits {
		err = fmt.Errorf("the budget of %s is too small: want at least %s (--gpu-budget %d)", r.BudgetText, size(r.Smallest), r.Smallest)
	}
	return err
}

// budgets shows how many budgets of a curve are done.
func (p *progress) budgets(done, of int) {
	if now := time.Now(); !now.Before(p.next) {
		p.show(now, fmt.Sprintf("%s: %d of %s", p.doing, done, plural(of, "budget")))
	}
}

// planner predicts what a budget gives; 0 holds everything.
type planner struct {
	chosen  uint64
	groups  []stream.Group
	predict func(budget uint64) (engine.Budget, []stream.Bank, error)
}

// poolOnly plans a pool and nothing beside it, of a trace.
func poolOnly(d *simulate.Demand) *planner {
	return &planner{predict: func(budget uint64) (b engine.Budget, banks []stream.Bank, err error) {
		pool := int64(math.MaxInt64)
		if budget > 0 {
			pool = int64(budget)
		}
		banks, err = stream.DivideWith(d.Groups(), int64(typicalGPU.MaxStorageBinding), pool, func(n int64) int64 { return int64(gpu.Reserved(uint64(n))) })
		var small *stream.BudgetError
		if errors.As(err, &small) {
			return b, nil, &engine.BudgetError{Have: budget, Pool: uint64(small.Want)}
		}
		for _, k := range banks {
			n := uint64(k.Slots) * uint64(k.RecordBytes)
			b.Pool += gpu.Reserved(n)
			b.Requested += n
		}
		return b, banks, err
	}}
}

// plan asks the model's plugin and fills in what is known of model and device. What is planned for is o and the flags.
func (c *planCmd) plan(a *app, r *planReport, o engine.Options) (*planner, error) {
	f, err := c.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	limits, text, budget, err := c.device(a, r)
	if err != nil {
		return nil, err
	}
	process, err := a.pluginFor(f.File, f.path, c.registryFlags)
	if err != nil {
		return nil, err
	}
	defer process.Close()
	header, options := store.Header(f.File), c.engineFlags.options(o, 0)
	ask := func(ctx, chunk int, kv string) (*engine.Planned, error) {
		o := options
		o.Context, o.Chunk, o.KVF32 = ctx, chunk, kv == "f32"
		return engine.Ask(a.ctx, header, process, engine.DeviceBounds(limits), o)
	}
	m, err := ask(c.Ctx, c.Chunk, c.KV)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	p := &planner{chosen: budget, groups: m.Groups(), predict: func(budget uint64) (engine.Budget, []stream.Bank, error) {
		o := options
		o.Budget = budget
		return m.Predict(limits, o)
	}}
	if r.Trace != nil {
		sum, err := headerSum(f.File)
		if err != nil {
			return nil, err
		}
		r.Trace.Same = sum == r.Trace.sum
	}
	model := m.Plan.Model
	r.File, r.Architecture, r.BudgetText, r.binding = f.path, model.Architecture, text, limits.MaxStorageBinding
	r.Context, r.Chunk, r.Layers, r.MoELayers, r.Experts, r.TopK = m.Context, m.Chunk, int(model.Layers), len(m.Records), int(model.Experts), int(model.TopK)
	_, _, small := p.predict(1)
	if tooSmall := (*engine.BudgetError)(nil); budget > 0 && errors.As(small, &tooSmall) && budget < tooSmall.Want() {
		r.suggest(budget, func(ctx, chunk int, kv string) (uint64, error) {
			x, err := ask(ctx, chunk, kv)
			if err != nil {
				return 0, err
			}
			o := options
			o.Budget = 1
			_, _, err = x.Predict(limits, o)
			if errors.As(err, &tooSmall) {
				return tooSmall.Want(), nil
			}
			return 0, err
		})
	}
	return p, nil
}

// device finds the limits, and the budget in bytes.
func (c *planCmd) device(a *app, r *planReport) (l gpu.Limits, text string, budget uint64, err error) {
	r.Device, l = "a typical GPU", typicalGPU
	if c.Device == "cpu" {
		r.Device, l = "Mesa's CPU driver", typicalCPU
	}
	if c.Device == "this" {
		d, err := gpu.Open(a.ctx, gpu.Options{Adapter: c.Adapter})
		if err == nil {
			defer d.Close()
			bytes, why := c.GPUBudget.resolve(a.ctx, d)
			r.Device = d.Info().String()
			return d.Limits(), why, bytes, nil
		}
		if c.Adapter != "" {
			return l, "", 0, err
		}
		r.Device += ", as there is none here"
	}
	switch {
	case c.GPUBudget.max:
		return l, "max", 0, nil
	case c.GPUBudget.auto:
		return l, fmt.Sprintf("auto: %s, the default without a GPU to ask", size(fallbackBudget)), fallbackBudget, nil
	}
	return l, size(c.GPUBudget.bytes), c.GPUBudget.bytes, nil
}

// trace reads the trace and describes it.
func (r *planReport) trace(path string) (*simulate.Demand, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	defer f.Close()
	t, err := routing.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d, err := simulate.New(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if n := d.Guesses(); r.depth > n {
		return nil, fmt.Errorf("--lookahead: have %d, want at most %d (or auto): %s has guesses no deeper", r.depth, n, path)
	}
	h := t.Header
	r.File, r.Architecture, r.BudgetText, r.binding = path, h.Architecture, "max", typicalGPU.MaxStorageBinding
	r.MoELayers, r.Experts, r.TopK = len(h.Layers), h.Experts, h.TopK
	r.Trace = &planTrace{File: path, Model: h.Model, Steps: len(t.Steps), Counted: d.Tokens, Guesses: d.Guesses(), Cut: t.Cut, Same: true, sum: h.Sum}
	return d, nil
}

// maxLimit bounds the flags of limits, and leastRate in bytes per second and maxRate limits from wherever, so that what is
// computed of them fits.
const (
	maxLimit  = 1e9
	leastRate = 1
	maxRate   = 1e9 * maxLimit
)

// limits are those of the flags, and where they say nothing those of --bench.
func (c *planCmd) limits() (l simulate.Limits, err error) {
	for name, x := range map[string]float64{"--disk-gbs": c.DiskGBs, "--upload-gbs": c.UploadGBs, "--token-ms": c.TokenMS} {
		if !(x >= 0 && x <= maxLimit) {
			return l, fmt.Errorf("%s: have %v, want more than 0, and at most %v, or 0 for no limit", name, x, float64(maxLimit))
		}
	}
	if c.Bench != "" {
		if l, err = benchLimits(c.Bench); err != nil {
			return l, err
		}
	}
	if c.DiskGBs > 0 {
		l.Disk = c.DiskGBs * 1e9
	}
	if c.UploadGBs > 0 {
		l.Upload = c.UploadGBs * 1e9
	}
	if c.TokenMS > 0 {
		if l.Token = time.Duration(c.TokenMS * float64(time.Millisecond)); l.Token == 0 {
			return l, fmt.Errorf("--token-ms: have %v, want a nanosecond (1e-06) or more, or 0 for no limit", c.TokenMS)
		}
	}
	for name, x := range map[string]float64{"--disk-gbs": l.Disk, "--upload-gbs": l.Upload} {
		if x != 0 && !(x >= leastRate && x <= maxRate) {
			return l, fmt.Errorf("%s: have %v bytes per second, by the flag or --bench, want %d to %v", name, x, leastRate, float64(maxRate))
		}
	}
	return l, nil
}
