package layer

import (
	"math"

	"github.com/sluicehost/sluice/sdk/program"
)

// The most that the routing kernel holds in shared memory.
const (
	maxExperts = 512
	maxTopK    = 32
)

// Router picks a token's experts from the logits r = Weight · From · InputScale. Sigmoid routers rank
// by sigmoid(r) + Bias, softmax routers by softmax(r); the lower id among equals comes first. Weights
// are the probabilities, divided by their sum where Normalize is set, times Scale, times ExpertScale.
//
// With Groups > 1 only the experts of the GroupsUsed best groups may be picked: groups are equal runs
// of ids, ranked by the sum of their two best experts' ranks, the lower group first among equals.
type Router struct {
	Weight      string  // tensor of the block, [width, experts]
	From        *Value  // what the router reads; nil is the experts' input
	InputScale  float64 // above 0; 0 is 1
	Sigmoid     bool
	Bias        string // tensor of the block, [experts]; sigmoid routers only
	Groups      int    // at most 1 is all experts in one
	GroupsUsed  int
	Normalize   bool
	Scale       float64
	ExpertScale string // tensor of the block, [experts]; "", or absent from the file, is ones
}

// route emits the router: logits, then picks and their weights. x is the experts' input.
func (l *Layer) route(x *Value, r Router) *Value {
	if !l.checkRouter(r) {
		return nil
	}
	if r.From != nil {
		x = r.From
	}
	pw := l.scratch("pw", int(l.source.model().GetTopK()))
	logits := l.Linear(x, int(l.source.model().GetExperts()), r.Weight)
	l.emit(l.topK(r, logits, program.Table_PICKS, pw))
	l.guesses(x, r)
	return pw
}

// topK is the operation that picks from a router's logits.
func (l *Layer) topK(r Router, logits *Value, picks program.Table, pw *Value) *op {
	e, k := int(l.source.model().GetExperts()), int(l.source.model().GetTopK())
	o := &op{
		label: l.prefix + "topk",
		spec: spec("topk").choose("score", "softmax").choose("weight", "plain").
			with("E", uint32(e)).with("K", uint32(k)).with("NORM", 0).with("W", l.widthFor(e, 512)),
		consts: consts{"scale": r.Scale, "in_scale": 1.0},
		binds:  binds{"r": read(logits), "picks": table(picks), "pw": write(pw)},
		grid:   []*program.Term{perRow()},
	}
	if r.InputScale != 0 {
		o.consts["in_scale"] = r.InputScale
	}
	if r.Sigmoid {
		o.spec.choose("score", "sigmoid")
		o.binds["bias"] = at(l.vector(e, l.prefix+r.Bias))
	}
	if r.Groups > 1 && r.GroupsUsed < r.Groups {
		o.spec.with("GROUPS", uint32(r.Groups)).with("USED", uint32(r.GroupsUsed))
	}
	if r.Normalize {
		o.spec.with("NORM", 1)
	}
	if r.ExpertScale != "" && l.Has(r.ExpertScale) {
		o.spec.choose("weight", "scaled")
		o.binds["expert_scale"] = at(l.vector(e, l.prefix+r.ExpertScale))
	}
	return o
}

// checkRouter holds a router against what the kernel can do. The errors name the keys that GGUF files have the numbers in.
func (l *Layer) checkRouter(r Router) bool {
	key := l.source.model().GetArchitecture() + ".expert"
	e, k := int(l.source.model().GetExperts()), int(l.source.model().GetTopK())
	switch {
	case e < 1 || e > maxExperts:
		l.fail("key %s_count: have %d experts, want 1 to %d", key, e, maxExperts)
	case k < 1 || k > min(e, maxTopK):
		l.fail("key %s_used_count: have %d of %d experts, want 1 to %d", key, k, e, min(e, maxTopK))
	case !(r.InputScale >= 0) || math.IsInf(r.InputScale, 0):
		l.fail("blk.%d: router: have an input scale of %v, want one above 0, or 0 for none", l.number, r.InputScale)
	case r.Groups <= 1:
		return true
	case e%r.Groups != 0 || e/r.Groups < 2:
		l.fail("key %s_group_count: have %d groups of %d experts, want equal groups of 2 or more", key, r.Groups, e)
	case r.GroupsUsed < 1 || r.GroupsUsed > r.Groups:
		l.fail("key %s_group_used_count: have %d of %d groups, want 1 to %d", key, r.GroupsUsed, r.Groups, r.Groups)
	case k > e/r.Groups*r.GroupsUsed:
		l.fail("key %s_used_count: have %d experts a token, want at most the %d of %d groups (key %s_group_used_count)", key, k, e/r.Groups*r.GroupsUsed, r.GroupsUsed, key)
	default:
		return true
	}
	return false
}
