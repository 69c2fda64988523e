package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/sample"
	"github.com/sluicehost/sluice/core/tokenizer"
)

// difference is where a model and its reference part.
type difference struct {
	Case      string  `json:"case"`
	At        string  `json:"at"`   // as in layer 3, position 17 or step 4
	What      string  `json:"what"` // that differs there
	Have      any     `json:"have"`
	Want      any     `json:"want"`
	Tolerance float64 `json:"tolerance,omitempty"`
}

// Error says it in one line.
func (d *difference) Error() string {
	text := fmt.Sprintf("case %s: %s: %s: have %v, want %v", d.Case, d.At, d.What, d.Have, d.Want)
	if d.Tolerance > 0 {
		text += fmt.Sprintf(" within %g", d.Tolerance)
	}
	return text
}

// agreement is how close a case came.
type agreement struct {
	Case     string   `json:"case"`
	Tokens   int      `json:"tokens"`                   // of the prompt
	Logit    float64  `json:"max_logit_diff"`           // largest |have - want| of all that was compared
	KL       *float64 `json:"kl,omitempty"`             // of the last position's tokens, reference to model, in nats
	Greedy   int      `json:"greedy"`                   // tokens that are the reference's
	Compared int      `json:"greedy_compared"`          // of those that the tolerance leaves no doubt about
	Layer    *float64 `json:"max_layer_diff,omitempty"` // largest difference of a block's result
}

// replay runs the cases through a model.
type replay struct {
	*loaded
	tolerance float64
	blocks    *blockResults

	at     *refCase
	agreed agreement
}

// blockResults takes each block's result at a prompt's last token from the engine.
type blockResults struct {
	last int // the token's position; -1 takes nothing
	rows [][]float32
}

func (b *blockResults) trace() *engine.Trace {
	return &engine.Trace{
		Wants: func(v *engine.Traced) bool { return v.Layer >= 0 && v.Pos+v.Tokens-1 == b.last },
		Take: func(v *engine.Traced) error {
			if v.Layer >= len(b.rows) {
				b.rows = append(b.rows, make([][]float32, v.Layer+1-len(b.rows))...)
			}
			b.rows[v.Layer] = slices.Clone(v.Data[(v.Rows-1)*v.Width:])
			return nil
		},
	}
}

// run replays a case. A difference comes back as *difference.
func (r *replay) run(ctx context.Context, c *refCase) (agreement, error) {
	r.at, r.agreed = c, agreement{Case: c.Name, Tokens: len(c.Tokens)}
	if err := r.text(ctx, c); err != nil {
		return r.agreed, err
	}
	if err := r.session.Reset(); err != nil {
		return r.agreed, err
	}
	if err := r.prompt(ctx, c); err != nil {
		return r.agreed, err
	}
	for i := 1; i < len(c.Greedy); i++ { // each step goes on from the reference's tokens
		err := r.session.Feed(ctx, c.Greedy[i-1:i], 1, func(_ int, l *engine.Logits) error { return r.step(i, l.All) })
		if err != nil {
			return r.agreed, err
		}
	}
	return r.agreed, nil
}

func (r *replay) differ(at, what string, have, want any, tolerance float64) error {
	return &difference{r.at.Name, at, what, have, want, tolerance}
}

// differBy is differ where numbers are further apart than a tolerance.
func (r *replay) differBy(at, what string, have, want, tolerance float64) error {
	if math.IsNaN(have) || math.IsInf(have, 0) { // which JSON has no number for
		return r.differ(at, what, fmt.Sprint(have), want, tolerance)
	}
	return r.differ(at, what, have, want, tolerance)
}

// text compares the prompt's ids.
func (r *replay) text(ctx context.Context, c *refCase) error {
	if c.Prompt == nil {
		return nil
	}
	ids, err := r.tok.EncodeContext(ctx, *c.Prompt, tokenizer.Options{AddSpecial: c.AddSpecial, ParseSpecial: c.ParseSpecial})
	if err != nil {
		return err
	}
	if !slices.Equal(ids, []int32(c.Tokens)) {
		return r.differ("prompt", "ids of the text", ids, c.Tokens, 0)
	}
	return nil
}

// prompt feeds the prompt and compares blocks, positions and the first step, in this order: what differs in a block
// differs in the logits, too, and says more.
func (r *replay) prompt(ctx context.Context, c *refCase) error {
	n := len(c.Tokens)
	first := n - 1
	if len(c.Positions) > 0 {
		first = min(first, c.Positions[0].Pos)
	}
	if r.blocks.last, r.blocks.rows = -1, nil; len(c.Layers) > 0 {
		r.blocks.last = n - 1
	}
	var differs error
	err := r.session.Feed(ctx, c.Tokens, n-first, func(pos int, l *engine.Logits) error {
		if differs == nil {
			differs = r.position(pos, l.All)
		}
		return nil
	})
	r.blocks.last = -1
	if err != nil {
		return err
	}
	if err := r.layers(c); err != nil {
		return err
	}
	return differs
}

// layers compares the blocks' results. They grow with depth, so the tolerance is of their size.
func (r *replay) layers(c *refCase) error {
	for _, want := range c.Layers {
		at := fmt.Sprintf("layer %d", want.Layer)
		if want.Layer >= len(r.blocks.rows) || r.blocks.rows[want.Layer] == nil {
			return fmt.Errorf("the plugin's program names no result of layer %d: want one for each layer (layer.Result in its Encode)", want.Layer)
		}
		row, tolerance := r.blocks.rows[want.Layer], r.tolerance*max(1, want.RMS)
		var sum float64
		for _, v := range row {
			sum += float64(v) * float64(v)
		}
		if err := r.layer(at, "rms at the last token", math.Sqrt(sum/float64(len(row))), want.RMS, tolerance); err != nil {
			return err
		}
		for i, v := range want.First8 {
			if err := r.layer(at, fmt.Sprintf("value %d at the last token", i), float64(row[i]), v, tolerance); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *replay) layer(at, what string, have, want, tolerance float64) error {
	d := math.Abs(have - want)
	if !(d <= tolerance) {
		return r.differBy(at, what, have, want, tolerance)
	}
	if r.agreed.Layer == nil {
		r.agreed.Layer = new(float64)
	}
	*r.agreed.Layer = max(*r.agreed.Layer, d)
	return nil
}

// position compares the logits after a token of the prompt.
func (r *replay) position(pos int, logits []float32) error {
	c, at := r.at, fmt.Sprintf("position %d", pos)
	i, found := slices.BinarySearchFunc(c.Positions, pos, func(p refPosition, pos int) int { return p.Pos - pos })
	if found {
		if err := r.compare(at, c.Positions[i], logits); err != nil {
			return err
		}
	}
	if pos < len(c.Tokens)-1 {
		return nil
	}
	if c.logits != nil {
		for id, want := range c.logits {
			if err := r.logit(at, id, logits, float64(want)); err != nil {
				return err
			}
		}
		kl := divergence(c.logits, logits)
		r.agreed.KL = &kl
	}
	if len(c.Greedy) > 0 {
		return r.step(0, logits)
	}
	return nil
}

// step compares the logits that choose greedy token i, and the token. Where the reference's best two are so close that
// the tolerance allows either, only the logits are compared.
func (r *replay) step(i int, logits []float32) error {
	c, at := r.at, fmt.Sprintf("step %d (position %d)", i, len(r.at.Tokens)-1+i)
	doubt := false
	if len(c.Steps) > 0 {
		want := c.Steps[i]
		if err := r.compare(at, want, logits); err != nil {
			return err
		}
		doubt = len(want.Top) > 1 && want.Top[0].logit-want.Top[1].logit <= 2*r.tolerance
	}
	next, err := sample.Greedy(logits)
	if err != nil {
		return err
	}
	switch {
	case next == c.Greedy[i]:
		r.agreed.Greedy++
		r.agreed.Compared++
	case !doubt:
		return r.differ(at, "greedy token", next, c.Greedy[i], 0)
	}
	return nil
}

// compare compares the best logits and the logsumexp.
func (r *replay) compare(at string, want refPosition, logits []float32) error {
	for _, e := range want.Top {
		if err := r.logit(at, int(e.id), logits, e.logit); err != nil {
			return err
		}
	}
	if have := sample.LogSumExp(logits); !(math.Abs(have-want.LogSumExp) <= r.tolerance) {
		return r.differBy(at, "logsumexp", have, want.LogSumExp, r.tolerance)
	}
	return nil
}

func (r *replay) logit(at string, id int, logits []float32, want float64) error {
	d := math.Abs(float64(logits[id]) - want)
	if !(d <= r.tolerance) {
		return r.differBy(at, fmt.Sprintf("logit of token %d", id), float64(logits[id]), want, r.tolerance)
	}
	r.agreed.Logit = max(r.agreed.Logit, d)
	return nil
}

// divergence is the Kullback-Leibler divergence of softmax(have) from softmax(want), in nats.
func divergence(want, have []float32) float64 {
	a, b := sample.LogSumExp(want), sample.LogSumExp(have)
	var sum float64
	for i := range want {
		p, q := float64(want[i])-a, float64(have[i])-b
		sum += math.Exp(p) * (p - q)
	}
	return max(sum, 0)
}
