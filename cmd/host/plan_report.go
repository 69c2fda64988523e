package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/lookahead"
	"github.com/sluicehost/sluice/core/simulate"
	"github.com/sluicehost/sluice/core/stream"
)

// planReport is the command's result. Sizes are in bytes.
type planReport struct {
	File         string              `json:"file"`
	Architecture string              `json:"architecture"`
	Device       string              `json:"device,omitempty"` // whose limits count
	Context      int                 `json:"context,omitempty"`
	Chunk        int                 `json:"chunk,omitempty"`
	KV           string              `json:"kv"`
	Layers       int                 `json:"layers,omitempty"`
	MoELayers    int                 `json:"moe_layers"`
	Experts      int                 `json:"experts"`
	TopK         int                 `json:"top_k"`
	Budget       uint64              `json:"budget"` // 0: everything
	BudgetText   string              `json:"budget_text"`
	Fits         bool                `json:"fits"`
	Smallest     uint64              `json:"smallest_budget"`
	Largest      uint64              `json:"largest_budget"` // that can be of use
	Most         int                 `json:"most_slots"`     // that it gives; fewer than experts where bindings are too small
	Bytes        map[gpu.Kind]uint64 `json:"bytes,omitempty"`
	Total        uint64              `json:"total"`
	Requested    uint64              `json:"requested"`           // the total without what rounding up costs
	RAMCache     uint64              `json:"ram_cache,omitempty"` // of host memory, the most
	Pool         planPool            `json:"pool"`
	Suggestions  []string            `json:"suggestions,omitempty"` // where it does not fit
	Evict        string              `json:"evict"`
	Trace        *planTrace          `json:"trace,omitempty"`
	Limits       simulate.Limits     `json:"limits"`
	Curve        []planPoint         `json:"curve"`
	nothing      string              // says that there are no suggestions
	readers      int
	depth        int    // of --lookahead, in the engine's terms
	binding      uint64 // bytes that the device binds at once
}

// planPool is the pool at a budget.
type planPool struct {
	Bytes uint64  `json:"bytes"`
	Slots int     `json:"slots"`
	Of    int     `json:"experts"` // of all layers
	Share float64 `json:"share"`
	Banks int     `json:"banks"`
}

// planTrace describes a trace.
type planTrace struct {
	File    string `json:"file"`
	Model   string `json:"model"`
	Steps   int    `json:"steps"`
	Counted int    `json:"tokens_counted"` // that were made, without those that fill the caches
	Guesses int    `json:"guesses"`        // MoE layers ahead that its guesses look
	Cut     bool   `json:"cut"`            // ends within a step
	Same    bool   `json:"same_model"`     // the model's header is that of the trace's
	sum     string
}

// planPoint is a budget with what a trace says of it.
type planPoint struct {
	Budget uint64           `json:"budget"`
	Pool   planPool         `json:"pool"`
	Chosen bool             `json:"chosen,omitempty"`
	LRU    simulate.Outcome `json:"lru"`
	Freq   simulate.Outcome `json:"freq"`
	Global simulate.Outcome `json:"global_lru"` // one LRU over all banks
	Best   simulate.Outcome `json:"best"`
	Read   float64          `json:"bytes_per_token"` // with --evict's policy
	Bound  float64          `json:"tokens_per_second,omitempty"`
	Serial float64          `json:"tokens_per_second_without_overlap,omitempty"`
	Likely float64          `json:"tokens_per_second_simulated,omitempty"`
	By     string           `json:"limited_by,omitempty"`
}

// curvePoints is how many budgets a curve has beside the smallest and the chosen one.
const curvePoints = 20

// fill computes all but what is known of model and device, until ctx ends. Of a trace it tells how many budgets of the curve
// are done, one call at a time.
func (r *planReport) fill(ctx context.Context, p *planner, d *simulate.Demand, evict eviction, tell func(done, of int)) error {
	all, banks, err := p.predict(0)
	if err != nil {
		return err
	}
	for _, g := range append(slices.Clone(p.groups), demandGroups(p, d)...) {
		r.Pool.Of += len(g.Layers) * g.Experts
	}
	r.Budget, r.Largest, r.Smallest = p.chosen, all.Total(), all.Total()
	r.Most = slotsOf(banks)
	least, _, err := p.predict(1)
	if small := (*engine.BudgetError)(nil); errors.As(err, &small) {
		r.Smallest = small.Want()
	} else if err != nil {
		return err
	}
	r.Fits = p.chosen == 0 || p.chosen >= r.Smallest
	at := least // what does not fit is shown without a pool
	if r.Fits {
		if at, banks, err = p.predict(p.chosen); err != nil {
			return err
		}
		r.Pool, r.Chunk = r.poolOf(at, banks), at.Chunk
	}
	r.Bytes, r.Total, r.Requested = at.ByKind(), at.Total(), at.Requested
	if d == nil {
		return nil
	}
	if p.groups != nil {
		if err := d.Fits(p.groups); err != nil {
			return fmt.Errorf("%s: %w", r.Trace.File, err)
		}
	}
	budgets := []uint64{r.Smallest}
	for i := range uint64(curvePoints) {
		budgets = append(budgets, all.Total()-all.Pool+(i+1)*all.Pool/curvePoints)
	}
	if r.Fits && p.chosen > 0 {
		budgets = append(budgets, min(p.chosen, r.Largest))
	}
	slices.Sort(budgets)
	budgets = slices.DeleteFunc(slices.Compact(budgets), func(b uint64) bool { return b < r.Smallest })
	return r.fillCurve(ctx, budgets, tell, func(b uint64) (planPoint, error) { return r.point(p, d, b, evict) })
}

// fillCurve computes a point for each budget, on all CPUs.
func (r *planReport) fillCurve(ctx context.Context, budgets []uint64, tell func(done, of int), point func(budget uint64) (planPoint, error)) error {
	r.Curve = make([]planPoint, len(budgets))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	done := 0
	for i, b := range budgets {
		g.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			r.Curve[i], err = point(b)
			mu.Lock()
			defer mu.Unlock()
			done++
			tell(done, len(budgets))
			return err
		})
	}
	return g.Wait()
}

// demandGroups are the trace's, where there is no model.
func demandGroups(p *planner, d *simulate.Demand) []stream.Group {
	if p.groups != nil || d == nil {
		return nil
	}
	return d.Groups()
}

func (r *planReport) poolOf(b engine.Budget, banks []stream.Bank) planPool {
	x := planPool{Bytes: b.Pool, Of: r.Pool.Of, Banks: len(banks), Slots: slotsOf(banks)}
	x.Share = float64(x.Slots) / float64(max(x.Of, 1))
	return x
}

// point is one budget of the curve.
func (r *planReport) point(p *planner, d *simulate.Demand, budget uint64, evict eviction) (planPoint, error) {
	b, banks, err := p.predict(budget)
	if err != nil {
		return planPoint{}, err
	}
	freq := evict
	if freq.name != "freq" {
		freq = eviction{"freq", defaultHalf}
	}
	x := planPoint{Budget: budget, Pool: r.poolOf(b, banks), Chosen: budget == min(p.chosen, r.Largest),
		LRU: d.LRU(banks), Freq: d.Replay(banks, freq.policy()), Global: d.Global(banks), Best: d.Best(banks)}
	x.Read = x.LRU.BytesPerToken
	if evict.name == "freq" {
		x.Read = x.Freq.BytesPerToken
	}
	x.Bound, x.Serial = r.Limits.Speed(x.Read)
	x.By = r.Limits.By(x.Read)
	if r.Limits.Known() {
		rate := d.Decode(banks, evict.policy(), simulate.Typical(r.Limits, r.readers), r.ahead(d)).Rate
		x.Likely = min(rate, x.Bound) // which a record's noise, and reads ahead before the tokens that count, could exceed by a little
	}
	return x, nil
}

// ahead is what chooses how deep guesses are read in a simulation.
func (r *planReport) ahead(d *simulate.Demand) simulate.Ahead {
	if r.depth != 0 {
		return simulate.Fixed(max(r.depth, 0))
	}
	return lookahead.New(d.Guesses(), r.readers)
}

// suggest looks for what makes a model fit that does not: less context, smaller chunks, smaller KV caches. Where nothing does it says so.
func (r *planReport) suggest(budget uint64, smallest func(ctx, chunk int, kv string) (uint64, error)) {
	const leastContext, leastChunk = 256, 32
	try := func(ctx, chunk int, kv string) bool {
		n, err := smallest(ctx, chunk, kv)
		if err != nil || n > budget {
			return false
		}
		text := fmt.Sprintf("--ctx %d --chunk %d --kv %s", ctx, chunk, kv)
		r.Suggestions = append(r.Suggestions, fmt.Sprintf("%s works from %s on (--gpu-budget %d)", text, size(n), n))
		return true
	}
	if r.KV == "f32" && try(r.Context, r.Chunk, "f16") {
		return
	}
	for chunk := r.Chunk / 2; chunk >= leastChunk && !try(r.Context, chunk, r.KV); chunk /= 2 {
	}
	for _, kv := range slices.Compact([]string{r.KV, "f16"}) {
		for ctx := r.Context / 2; ctx >= leastContext && !try(ctx, r.Chunk, kv); ctx /= 2 {
		}
	}
	if len(r.Suggestions) > 0 {
		return
	}
	chunk, least := min(leastChunk, r.Chunk), min(leastContext, r.Context)
	for ctx := r.Context; ctx > least; ctx /= 2 {
		if try(ctx, chunk, "f16") {
			return
		}
	}
	if n, err := smallest(least, chunk, "f16"); err == nil && !try(least, chunk, "f16") {
		r.nothing = fmt.Sprintf("nothing fits, with --ctx down to %d and --chunk down to %d: with both and --kv f16 it takes %s (--gpu-budget %d)", least, chunk, size(n), n)
	}
}
