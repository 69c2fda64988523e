package program

import (
	"fmt"
	"math"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// embed checks the table that the host looks tokens up in.
func (c *planChecker) embed(h *Header, e *Embed) {
	name := e.GetTensor()
	c.read[name] = true
	t, ok := c.tensors[name]
	if name == "" {
		c.addf("plan: embed: have no tensor, want the token embedding")
		return
	}
	if !ok {
		c.addf("plan: embed: tensor %s is not in the file", clip(name))
		return
	}
	hidden := c.plan.GetModel().GetHidden()
	if len(t.GetDims()) != 2 || t.Dims[0] != uint64(hidden) || t.Dims[1] < h.GetVocab() {
		c.addf("plan: embed: tensor %s: have shape %v, want [%d %d] (hidden, vocab)", clip(name), t.GetDims(), hidden, h.GetVocab())
	} else if _, err := ggml.Type(t.GetType()).RowBytes(t.Dims[0]); err != nil {
		c.addf("plan: embed: tensor %s: %w", clip(name), err)
	}
	if s := float64(e.GetScale()); s == 0 || math.IsNaN(s) || math.IsInf(s, 0) {
		c.addf("plan: embed: have scale %v, want a finite factor, 1 for none", s)
	}
}

// ropes checks the angle tables.
func (c *planChecker) ropes() {
	if !c.count("plan: ropes", len(c.plan.GetRopes()), maxRopes) {
		return
	}
	seen := map[string]bool{}
	for _, r := range c.plan.GetRopes() {
		c.name("plan: rope", r.GetName(), seen)
		what := "plan: rope " + clip(r.GetName())
		if r.GetPairs() == 0 || r.GetPairs() > maxPairs {
			c.addf("%s: have %d pairs, want 1 to %d", what, r.GetPairs(), maxPairs)
			continue
		}
		c.freqs(what, r)
		c.divisor(what, r)
		if m := float64(r.GetMagnitude()); !(m >= 0 && m <= math.MaxFloat32) {
			c.addf("%s: have magnitude %v, want a factor, or 0 for 1", what, m)
		}
	}
}

// freqs checks that a rope has its frequencies in one of the two forms.
func (c *planChecker) freqs(what string, r *Rope) {
	if len(r.GetFreqs()) == 0 {
		if !(r.GetBase() > 0 && r.GetBase() <= math.MaxFloat64) || r.GetBaseDims() == 0 {
			c.addf("%s: have base %v and base_dims %d, want both above 0, or freqs", what, r.GetBase(), r.GetBaseDims())
		}
		return
	}
	if len(r.GetFreqs()) != int(r.GetPairs()) {
		c.addf("%s: have %d freqs, want %d, one for each pair", what, len(r.GetFreqs()), r.GetPairs())
	}
	for i, f := range r.GetFreqs() {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			c.addf("%s: freq %d: have %v, want a finite number", what, i, f)
			return
		}
	}
}

// divisor checks the tensor that a rope's frequencies are divided by.
func (c *planChecker) divisor(what string, r *Rope) {
	name := r.GetDivisor()
	if name == "" {
		return
	}
	c.read[name] = true
	t, ok := c.tensors[name]
	if !ok {
		c.addf("%s: divisor %s is not in the file", what, clip(name))
		return
	}
	cols, rows, ok := shapeOf(t.GetDims())
	if ggml.Type(t.GetType()) != ggml.F32 || !ok || cols*rows < uint64(r.GetPairs()) {
		c.addf("%s: divisor %s: have %v of shape %v, want F32 of at least %d values", what, clip(name), ggml.Type(t.GetType()), t.GetDims(), r.GetPairs())
	}
}

// The most that a family's chat format may hold.
const (
	maxTemplate = 1 << 20
	maxStops    = 64
)

// chat checks sizes; what the template says is judged when it is parsed.
func (c *planChecker) chat(m *Chat) {
	if n := len(m.GetTemplate()); n > maxTemplate {
		c.addf("plan: chat: have a template of %d bytes, want at most %d", n, maxTemplate)
	}
	if !c.count("plan: chat: stop tokens", len(m.GetStop()), maxStops) {
		return
	}
	short := map[string]string{
		"think_open": m.GetThinkOpen(), "think_close": m.GetThinkClose(), "think_preamble": m.GetThinkPreamble(),
	}
	for i, s := range m.GetStop() {
		short[fmt.Sprintf("stop %d", i)] = s
		if s == "" {
			c.addf("plan: chat: stop %d: have nothing, want a token", i)
		}
	}
	for _, name := range sortedKeys(short) {
		if n := len(short[name]); n > maxName {
			c.addf("plan: chat: %s: have %d bytes, want at most %d", name, n, maxName)
		}
	}
	if (m.GetThinkOpen() == "") != (m.GetThinkClose() == "") {
		c.addf("plan: chat: have think_open %q and think_close %q, want both or neither", clip(m.GetThinkOpen()), clip(m.GetThinkClose()))
	}
}

// unused checks the list of tensors that the program leaves alone.
func (c *planChecker) unused() {
	for _, name := range c.plan.GetUnused() {
		if c.tensors[name] == nil {
			c.addf("plan: unused: tensor %s is not in the file", clip(name))
		} else if c.read[name] {
			c.addf("plan: unused: tensor %s is read by the plan", clip(name))
		}
	}
}

// Unread lists, in file order, the tensors of a file that a plan neither reads
// nor names as unused: most likely something its author forgot.
func Unread(h *Header, p *Plan) []string {
	known := map[string]bool{p.GetEmbed().GetTensor(): true}
	mark := func(names []string) {
		for _, n := range names {
			known[n] = true
		}
	}
	mark(p.GetUnused())
	for _, w := range p.GetWeights() {
		mark(w.GetTensors())
	}
	for _, r := range p.GetRecords() {
		for _, part := range r.GetParts() {
			mark(part.GetTensors())
		}
	}
	for _, r := range p.GetRopes() {
		known[r.GetDivisor()] = true
	}
	var unread []string
	for _, t := range h.GetTensors() {
		if !known[t.GetName()] {
			unread = append(unread, t.GetName())
		}
	}
	return unread
}
