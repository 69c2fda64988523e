package synth

import (
	"math"
	"slices"
)

// gemma4: sliding-window attention with a full layer now and then; a dense branch beside the experts; norms after every
// branch.
var gemma4 = arch{
	name:       "gemma4",
	head:       "token_embd.weight",
	mixed:      mixedMost,
	vocabulary: gemma4Vocabulary,
	embedScale: func(hidden int) float64 { return math.Sqrt(float64(hidden)) },
	keys: func(b *builder) {
		s := &b.s
		b.common(1e-6)
		b.number("feed_forward_length", s.Dense)
		b.key("gemma4.attention.head_count_kv", perBlock(b, func(i int) int32 {
			_, kv := s.gemmaHeads(i)
			return int32(kv)
		}))
		b.number("attention.key_length", s.HeadDim)
		b.number("attention.value_length", s.HeadDim)
		b.number("attention.key_length_swa", s.WindowDim)
		b.number("attention.value_length_swa", s.WindowDim)
		b.number("attention.sliding_window", s.Window)
		b.key("gemma4.attention.sliding_window_pattern", perBlock(b, func(i int) bool { return !s.full(i) }))
		b.number("attention.shared_kv_layers", 0)
		b.number("embedding_length_per_layer_input", 0)
		b.real("rope.freq_base_swa", 10000)
		b.number("rope.dimension_count", s.HeadDim)
		b.number("rope.dimension_count_swa", s.WindowDim)
		b.real("final_logit_softcapping", 30)
	},
	build: func(b *builder) {
		b.table("token_embd.weight", b.unit())
		b.gemmaRopes()
		for i := range b.s.Layers {
			b.layer(i)
			b.gemmaLayer(i)
		}
		b.layer(-1)
		b.finalNorm("output_norm.weight", b.unit())
	},
}

// gemmaRopes are the divisors of full layers' angles: a quarter of the pairs turn, and the others' are divided by what leaves
// no turn. Without a full layer nothing uses them, and llama.cpp refuses a file that has tensors to spare.
func (b *builder) gemmaRopes() {
	if !slices.Contains(perBlock(b, b.s.full), true) {
		return
	}
	b.vector("rope_freqs.weight", func(_ *stream, i int) float64 {
		if i < b.s.HeadDim/8 {
			return 1
		}
		return 1e30
	}, b.s.HeadDim/2)
}

// gemmaHeads is the head size and the number of KV heads of layer i.
func (s *Shape) gemmaHeads(i int) (dim, kv int) {
	if s.full(i) {
		return s.HeadDim, s.KVHeads
	}
	return s.WindowDim, s.WindowKV
}

func (b *builder) gemmaLayer(i int) {
	s := &b.s
	h := s.Hidden
	dim, kv := s.gemmaHeads(i)
	// Norms follow every branch: how large a write is they decide, and its rows only which channels it goes to.
	scores := headNorm / math.Pow(float64(dim), 0.25) // attention has no factor of its own
	b.norm("attn_norm.weight", 1, h)
	b.matrix("attn_q.weight", 1, h, dim*s.Heads)
	b.matrix("attn_k.weight", 1, h, dim*kv)
	if !s.full(i) {
		b.matrix("attn_v.weight", 1, h, dim*kv)
	}
	b.norm("attn_q_norm.weight", scores, dim)
	b.norm("attn_k_norm.weight", scores, dim)
	b.writer("attn_output.weight", b.residual.mixer(i), attentionRMS, dim*s.Heads, h)
	b.norm("post_attention_norm.weight", b.residual.mixer(i).rms(h), h)
	b.norm("ffn_norm.weight", 1, h)
	b.ffn("", s.Dense, 1)
	b.norm("post_ffw_norm_1.weight", 1, h)
	b.gemmaExperts()
	b.norm("post_ffw_norm_2.weight", 1, h)
	b.norm("post_ffw_norm.weight", b.residual.ffn(i).rms(h), h)
	b.vector("layer_output_scale.weight", func(r *stream, _ int) float64 { return 1 + 0.01*r.gauss() }, 1)
}

func (b *builder) gemmaExperts() {
	s := &b.s
	h := s.Hidden
	b.router("ffn_gate_inp.scale", 1/math.Sqrt(float64(h)))
	b.norm("ffn_gate_inp.scale", 1, h)
	b.norm("pre_ffw_norm_2.weight", 1, h)
	b.matrix("ffn_gate_up_exps.weight", 1, h, 2*s.ExpertFF, s.Experts)
	b.expertsDown(1, 1)
	b.norm("ffn_down_exps.scale", 1, s.Experts)
}
