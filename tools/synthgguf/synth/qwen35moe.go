package synth

import "math"

// qwen35moe: Gated DeltaNet with a full attention layer now and then; experts and a shared expert in every layer.
var qwen35moe = arch{
	name:       "qwen35moe",
	head:       "output.weight",
	mixed:      mixedMost,
	vocabulary: qwen35Vocabulary,
	embedScale: unscaled,
	keys: func(b *builder) {
		s := &b.s
		b.common(1e-6)
		b.number("attention.head_count_kv", s.KVHeads)
		b.number("attention.key_length", s.HeadDim)
		b.number("attention.value_length", s.HeadDim)
		b.number("rope.dimension_count", s.RopeDims)
		pairs := int32(s.RopeDims / 2)
		b.key("qwen35moe.rope.dimension_sections", []int32{(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0})
		b.number("expert_shared_feed_forward_length", s.Shared)
		b.number("ssm.conv_kernel", stateTaps)
		b.number("ssm.state_size", stateDim)
		b.number("ssm.group_count", s.KeyHeads)
		b.number("ssm.time_step_rank", s.ValueHeads)
		b.number("ssm.inner_size", s.ValueHeads*stateDim)
		b.number("full_attention_interval", s.Period)
	},
	build: func(b *builder) {
		b.table("token_embd.weight", b.unit())
		for i := range b.s.Layers {
			b.layer(i)
			b.qwenLayer(i)
		}
		b.layer(-1)
		b.finalNorm("output_norm.weight", 1)
		b.table("output.weight", 1)
	},
}

// stateTaps is the width of the convolutions before Gated DeltaNet and KDA.
const stateTaps = 4

// taps are those of such a convolution: the newest weighs most, as in trained models.
func taps(r *stream, i int) float64 {
	return (r.gauss() + float64(i)/stateTaps) / math.Sqrt(stateTaps)
}

func (b *builder) qwenLayer(i int) {
	s := &b.s
	h := s.Hidden
	b.norm("attn_norm.weight", 1, h)
	if s.full(i) {
		b.matrix("attn_q.weight", 1, h, 2*s.HeadDim*s.Heads) // queries and gates
		b.matrix("attn_k.weight", 1, h, s.HeadDim*s.KVHeads)
		b.matrix("attn_v.weight", 1, h, s.HeadDim*s.KVHeads)
		b.norm("attn_q_norm.weight", headNorm, s.HeadDim)
		b.norm("attn_k_norm.weight", headNorm, s.HeadDim)
		b.writer("attn_output.weight", b.residual.mixer(i), attentionRMS*sigmoidRMS, s.HeadDim*s.Heads, h)
	} else {
		b.deltaNet(i)
	}
	b.norm("post_attention_norm.weight", 1, h)
	b.router("post_attention_norm.weight", 1)
	b.experts(1, half)
	b.vector("ffn_gate_inp_shexp.weight", func(r *stream, _ int) float64 { return r.gauss() / math.Sqrt(float64(h)) }, h)
	b.ffn("_shexp", s.Shared, half/sigmoidRMS)
}

// deltaNet appends a Gated DeltaNet mixer. A state forgets within 10 to 1000 tokens, by head: the decay is
// exp(softplus(alpha + dt)·a).
func (b *builder) deltaNet(i int) {
	s := &b.s
	h, values := s.Hidden, s.ValueHeads*stateDim
	channels := 2*s.KeyHeads*stateDim + values
	b.matrix("attn_qkv.weight", 1, h, channels)
	b.matrix("attn_gate.weight", 1, h, values)
	b.vector("ssm_conv1d.weight", taps, stateTaps, channels)
	b.vector("ssm_dt.bias", func(r *stream, _ int) float64 { return r.uniform(-6, -2) }, s.ValueHeads)
	b.vector("ssm_a", func(r *stream, _ int) float64 { return -r.uniform(0.5, 4) }, s.ValueHeads)
	b.matrix("ssm_alpha.weight", 0.5, h, s.ValueHeads)
	b.matrix("ssm_beta.weight", 1, h, s.ValueHeads)
	b.norm("ssm_norm.weight", 1, stateDim)
	b.writer("ssm_out.weight", b.residual.mixer(i), siluRMS, values, h)
}
