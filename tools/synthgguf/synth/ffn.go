package synth

import "math"

// Root mean squares of what blocks make out of independent inputs of unit size: their output projections are scaled by
// these, so that what reaches the residual stream has the size that residual.go counts with. They are estimates where
// attention is concerned: it depends on the context's length.
const (
	gatedRMS     = 0.60 // silu(g)·u, and about gelu(g)·u
	siluRMS      = 0.60
	sigmoidRMS   = 0.54
	attentionRMS = 0.60 // of the values under softmax
	headNorm     = 1.75 // weights of norms on queries and keys: scores spread by about 3, so that few keys count
)

// ffn appends a dense block, or a shared expert, by the suffix of its tensors' names, whose output has the size of share.
func (b *builder) ffn(suffix string, width int, share float64) {
	b.matrix("ffn_gate"+suffix+".weight", 1, b.s.Hidden, width)
	b.matrix("ffn_up"+suffix+".weight", 1, b.s.Hidden, width)
	b.writer("ffn_down"+suffix+".weight", b.residual.ffn(b.block), gatedRMS/share, width, b.s.Hidden)
}

// experts appends the routed experts with gate and up apart. Their sum, weighted by 1/TopK or so each times scale, has the
// size of share.
func (b *builder) experts(scale, share float64) {
	s := &b.s
	b.matrix("ffn_gate_exps.weight", 1, s.Hidden, s.ExpertFF, s.Experts)
	b.matrix("ffn_up_exps.weight", 1, s.Hidden, s.ExpertFF, s.Experts)
	b.expertsDown(scale, share)
}

func (b *builder) expertsDown(scale, share float64) {
	s := &b.s
	sum := scale * gatedRMS / math.Sqrt(float64(s.TopK))
	b.writer("ffn_down_exps.weight", b.residual.ffn(b.block), sum/share, s.ExpertFF, s.Hidden, s.Experts)
}

// half is the share of each of two independent parts of one output.
const half = math.Sqrt2 / 2
