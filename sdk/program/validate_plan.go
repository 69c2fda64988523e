package program

import (
	"math/bits"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// planChecker holds what the rules of ValidatePlan share.
type planChecker struct {
	faults
	plan    *Plan
	tensors map[string]*Tensor
	read    map[string]bool // tensors that the plan reads
}

// The most of each thing that a plan may hold.
const (
	maxLayers  = 1 << 12
	maxWeights = 1 << 16
	maxStack   = 1 << 10 // tensors of one weight
	maxParts   = 64
	maxRopes   = 64
	maxPairs   = 1 << 16
	maxExperts = 1 << 16
	maxPicks   = 1 << 10
	maxHidden  = 1 << 24
	maxVocab   = 1 << 28
)

// model checks the facts against each other.
func (c *planChecker) model(m *Model) {
	for _, x := range []struct {
		name       string
		have, most uint32
	}{
		{"layers", m.GetLayers(), maxLayers},
		{"hidden", m.GetHidden(), maxHidden},
		{"vocab", m.GetVocab(), maxVocab},
		{"experts", m.GetExperts(), maxExperts},
		{"top_k", m.GetTopK(), min(m.GetExperts(), maxPicks)},
		{"context", m.GetContext(), maxExtent},
	} {
		if x.have == 0 || x.have > x.most {
			c.addf("plan: model: have %s %d, want 1 to %d", x.name, x.have, max(1, x.most))
		}
	}
	if len(m.GetMoeLayers()) == 0 {
		c.addf("plan: model: have no moe_layers, want at least one: the host runs mixtures of experts only")
	}
	for i, l := range m.GetMoeLayers() {
		if l >= m.GetLayers() {
			c.addf("plan: model: have MoE layer %d, want below layers %d", l, m.GetLayers())
		}
		if i > 0 && l <= m.GetMoeLayers()[i-1] {
			c.addf("plan: model: have MoE layer %d after %d, want them ascending", l, m.GetMoeLayers()[i-1])
		}
	}
}

// architecture checks that the plan is of the file's architecture.
func (c *planChecker) architecture(h *Header, name string) {
	const key = "general.architecture"
	if c.name("plan: model: architecture", name, map[string]bool{}); c.any() {
		return
	}
	for _, kv := range h.GetMetadata() {
		if have := kv.GetValue().GetString_(); kv.GetKey() == key && have != name {
			c.addf("plan: model: have architecture %s, want %s, the file's %s", clip(name), clip(have), key)
		}
	}
}

// weights checks every resident weight.
func (c *planChecker) weights() {
	if !c.count("plan: weights", len(c.plan.GetWeights()), maxWeights) {
		return
	}
	seen := map[string]bool{}
	for _, w := range c.plan.GetWeights() {
		c.name("plan: weight", w.GetName(), seen)
		c.stack("plan: weight "+clip(w.GetName()), w, 0)
	}
}

// records checks that each MoE layer has one record, of parts that one expert's slices make.
func (c *planChecker) records() {
	layers := c.plan.GetModel().GetMoeLayers()
	if len(c.plan.GetRecords()) != len(layers) {
		c.addf("plan: have %d records, want %d: one for each of moe_layers", len(c.plan.GetRecords()), len(layers))
		return
	}
	for i, r := range c.plan.GetRecords() {
		if r.GetLayer() != layers[i] {
			c.addf("plan: record %d: have layer %d, want %d, as in moe_layers", i, r.GetLayer(), layers[i])
		}
		if len(r.GetParts()) == 0 {
			c.addf("plan: record of layer %d: have no parts", r.GetLayer())
		}
		if !c.count("plan: record: parts", len(r.GetParts()), maxParts) {
			continue
		}
		seen := map[string]bool{}
		for _, part := range r.GetParts() {
			c.name("plan: record: part", part.GetName(), seen)
			if part.GetUse() != Use_MATRIX {
				c.addf("plan: record of layer %d: part %s: have use %v, want MATRIX", r.GetLayer(), clip(part.GetName()), part.GetUse())
			}
			c.stack("plan: record part "+clip(part.GetName()), part, c.plan.GetModel().GetExperts())
		}
	}
}

// stack checks the tensors of a weight, or with experts > 0 of a record's part.
func (c *planChecker) stack(what string, w *Weight, experts uint32) {
	if w.GetUse() != Use_MATRIX && w.GetUse() != Use_VECTOR {
		c.addf("%s: have use %d, want MATRIX or VECTOR", what, w.GetUse())
	}
	if len(w.GetTensors()) == 0 {
		c.addf("%s: have no tensors", what)
	}
	if !c.count(what+": tensors", len(w.GetTensors()), maxStack) {
		return
	}
	var cols uint64
	for _, name := range w.GetTensors() {
		c.read[name] = true
		t, ok := c.tensors[name]
		if !ok {
			c.addf("%s: tensor %s is not in the file", what, clip(name))
			continue
		}
		if !c.expertDims(what, t, experts) || !c.form(what, w.GetUse(), t, experts > 0) {
			continue
		}
		if cols == 0 {
			cols = t.Dims[0]
		}
		if t.Dims[0] != cols {
			c.addf("%s: tensor %s: have rows of %d values, want %d as the first of the stack", what, clip(name), t.Dims[0], cols)
		}
	}
}

// expertDims checks that a record's tensor is a stack of experts.
func (c *planChecker) expertDims(what string, t *Tensor, experts uint32) bool {
	if experts == 0 || len(t.GetDims()) == 3 && t.Dims[2] == uint64(experts) {
		return true
	}
	c.addf("%s: tensor %s: have shape %v, want 3 dims, the last of %d experts", what, clip(t.GetName()), t.GetDims(), experts)
	return false
}

// form checks that a tensor's type and shape can lie on the GPU as the use asks.
func (c *planChecker) form(what string, use Use, t *Tensor, sliced bool) bool {
	dims := t.GetDims()
	if sliced {
		dims = dims[:2]
	}
	cols, rows, ok := shapeOf(dims)
	if !ok {
		c.addf("%s: tensor %s: have shape %v, want 1 to 4 dims of at least 1", what, clip(t.GetName()), t.GetDims())
		return false
	}
	typ := ggml.Type(t.GetType())
	if use == Use_VECTOR {
		if typ != ggml.F32 && typ != ggml.F16 && typ != ggml.BF16 {
			c.addf("%s: tensor %s: have a VECTOR of %v, want F32, F16 or BF16", what, clip(t.GetName()), typ)
			return false
		}
		return true
	}
	form, ok := ggml.Form(typ)
	if !ok {
		c.addf("%s: tensor %s: have type %v, which no kernel reads", what, clip(t.GetName()), typ)
		return false
	}
	if _, _, err := form.Planes(rows, cols); err != nil {
		c.addf("%s: tensor %s: %w", what, clip(t.GetName()), err)
		return false
	}
	return true
}

// shapeOf is a tensor's row length and the number of its rows; false where it
// is no shape of GGUF's.
func shapeOf(dims []uint64) (cols, rows uint64, ok bool) {
	if len(dims) == 0 || len(dims) > 4 {
		return 0, 0, false
	}
	total := uint64(1)
	for _, d := range dims {
		high, low := bits.Mul64(total, d)
		if total = low; high != 0 || d == 0 || low > 1<<48 {
			return 0, 0, false
		}
	}
	return dims[0], total / dims[0], true
}
