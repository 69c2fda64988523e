package synth

import (
	"math"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// A router's logits are, for each expert, the sum of four independent parts: what the token's topic says (a share of
// Locality), what the token itself says, what the blocks just before wrote (freshShare of the remainder), and the expert's
// own popularity (Skew). The first three together have the spread that the architecture's router wants.
const freshShare = 0.2

// router is what choosing experts in a layer takes, for Trace. Tensors are named in full; bias is empty where there is none.
type router struct {
	layer                int
	weight, factor, bias string
	scale                float64 // on the factors
	sigmoid              bool
}

// router appends a layer's router. Its input is the residual stream over its root mean square, times the layer's tensor
// named factor, which is around 1, times scale.
func (b *builder) router(factor string, scale float64) {
	const weight = "ffn_gate_inp.weight"
	i, n := b.block, b.s.Experts
	spread := 1.5
	if b.arch.sigmoid {
		spread = 0.7 // so that the best probabilities are not all the same
	}
	spread *= b.residual.rms(i) / scale
	b.routers = append(b.routers, router{
		layer: i, weight: b.full(weight), factor: b.full(factor), scale: scale, sigmoid: b.arch.sigmoid,
	})
	parts := routerParts{
		constant: spread * b.Skew / (codeWidth * constantSize),
		topic:    spread * math.Sqrt(b.Locality/codeWidth) / topicSize,
		token:    spread * math.Sqrt((1-b.Locality)*(1-freshShare)/codeWidth),
		other:    spread * 1e-3 / float64(b.s.Hidden),
		code:     b.topics.constantCode(),
		groups:   b.residual.before(i),
	}
	for _, g := range parts.groups {
		share := (1 - b.Locality) * freshShare / float64(len(parts.groups)*groupWidth)
		parts.fresh = append(parts.fresh, spread*math.Sqrt(share)/g.size(2*i-1))
	}
	seed := seedOf(b.Seed, "router", uint64(i))
	b.add(weight, ggml.F32, func(dst []byte, row uint64) {
		r := &stream{seedOf(seed, "", row)}
		popularity := r.gauss()
		fillF32(dst, func(j int) float64 { return parts.weight(r, j, popularity) })
	}, b.s.Hidden, n)
}

// routerParts are the sizes of a router's weights.
type routerParts struct {
	constant, topic, token, other float64
	fresh                         []float64 // by group

	code   code
	groups []group
}

// weight is the weight of channel j in one expert's row.
func (p *routerParts) weight(r *stream, j int, popularity float64) float64 {
	x := r.gauss()
	switch {
	case j < topicAt:
		return p.constant*popularity*float64(p.code[j]) + p.other*x
	case j < tokenAt:
		return p.topic * x
	case j < restAt:
		return p.token * x
	}
	for n, g := range p.groups {
		if g.has(j) {
			return p.fresh[n] * x
		}
	}
	return p.other * x
}

// routerBias appends a sigmoid router's bias on the choice, as small as that of a model whose experts are in balance.
func (b *builder) routerBias() {
	const name = "exp_probs_b.bias"
	b.routers[len(b.routers)-1].bias = b.full(name)
	b.vector(name, func(r *stream, _ int) float64 { return 0.003 * r.gauss() }, b.s.Experts)
}
