package synth

import "math"

// lfm2moe: gated short convolutions with attention layers between them; dense layers first, then experts.
var lfm2moe = arch{
	name:       "lfm2moe",
	head:       "token_embd.weight",
	mixed:      mixedMost,
	vocabulary: lfm2Vocabulary,
	embedScale: unscaled,
	sigmoid:    true,
	keys: func(b *builder) {
		s := &b.s
		b.common(1e-5)
		b.number("feed_forward_length", s.Dense)
		b.key("lfm2moe.attention.head_count_kv", perBlock(b, func(i int) int32 {
			if s.full(i) {
				return int32(s.KVHeads)
			}
			return 0
		}))
		b.number("vocab_size", s.Vocab)
		b.number("shortconv.l_cache", lfm2Taps)
		b.number("leading_dense_block_count", s.Lead)
		b.number("expert_gating_func", 2) // sigmoid
	},
	build: func(b *builder) {
		b.table("token_embd.weight", b.unit())
		for i := range b.s.Layers {
			b.layer(i)
			b.lfm2Layer(i)
		}
		b.layer(-1)
		b.finalNorm("token_embd_norm.weight", b.unit())
	},
}

const lfm2Taps = 3

func unscaled(int) float64 { return 1 }

func (b *builder) lfm2Layer(i int) {
	s := &b.s
	h := s.Hidden
	b.norm("attn_norm.weight", 1, h)
	if s.full(i) {
		b.matrix("attn_q.weight", 1, h, s.Heads*s.HeadDim)
		b.matrix("attn_k.weight", 1, h, s.KVHeads*s.HeadDim)
		b.matrix("attn_v.weight", 1, h, s.KVHeads*s.HeadDim)
		b.norm("attn_q_norm.weight", headNorm, s.HeadDim)
		b.norm("attn_k_norm.weight", headNorm, s.HeadDim)
		b.writer("attn_output.weight", b.residual.mixer(i), attentionRMS, s.Heads*s.HeadDim, h)
	} else {
		b.vector("shortconv.conv.weight", func(r *stream, _ int) float64 { return r.gauss() / math.Sqrt(lfm2Taps) }, lfm2Taps, h)
		b.matrix("shortconv.in_proj.weight", 1, h, 3*h)
		b.writer("shortconv.out_proj.weight", b.residual.mixer(i), 1, h, h)
	}
	b.norm("ffn_norm.weight", 1, h)
	if i < s.Lead {
		b.ffn("", s.Dense, 1)
		return
	}
	b.router("ffn_norm.weight", 1)
	b.routerBias()
	b.experts(1, 1)
}
