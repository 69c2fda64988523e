package synth

// bailingmoe3 (Ling 3.0): KDA with an MLA layer now and then; dense layers first, then experts in groups and a shared one.
var bailingmoe3 = arch{
	name:       "bailingmoe3",
	head:       "output.weight",
	mtp:        true,
	mixed:      mixedLing,
	vocabulary: bailingVocabulary,
	embedScale: unscaled,
	sigmoid:    true,
	keys: func(b *builder) {
		s := &b.s
		b.common(1e-6)
		b.number("feed_forward_length", s.Dense)
		b.key("bailingmoe3.attention.head_count_kv", perBlock(b, func(i int) int32 {
			if b.mla(i) {
				return 1
			}
			return 0
		}))
		b.number("attention.key_length", s.Rank+s.RopeDims)
		b.number("attention.value_length", s.Rank)
		b.number("attention.key_length_mla", s.NoPE+s.RopeDims)
		b.number("attention.value_length_mla", s.ValueDim)
		b.number("attention.kv_lora_rank", s.Rank)
		b.number("rope.dimension_count", s.RopeDims)
		b.number("ssm.conv_kernel", stateTaps)
		b.number("kda.head_dim", stateDim)
		b.key("bailingmoe3.kda.safe_gate", true)
		b.real("kda.gate_lower_bound", -5)
		b.number("vocab_size", s.Vocab)
		b.number("expert_shared_count", 1)
		b.number("expert_group_count", s.Groups)
		b.number("expert_group_used_count", s.GroupsUsed)
		b.number("expert_shared_feed_forward_length", s.Shared)
		b.number("leading_dense_block_count", s.Lead)
		b.real("expert_weights_scale", lingScale)
		b.key("bailingmoe3.expert_weights_norm", true)
		b.number("expert_gating_func", 2) // sigmoid
		b.lingClamps()
		b.number("nextn_predict_layers", 1)
	},
	build: func(b *builder) {
		b.table("token_embd.weight", b.unit())
		for i := range b.s.Layers {
			b.layer(i)
			b.lingLayer(i)
		}
		if b.MTP {
			b.layer(b.s.Layers)
			b.lingMTP(b.s.Layers)
		}
		b.layer(-1)
		b.finalNorm("output_norm.weight", 1)
		b.table("output.weight", 1)
	},
}

// lingScale is the factor on the routed experts' weights.
const lingScale = 2.5

// mla says whether block i is MLA: so is the MTP block.
func (b *builder) mla(i int) bool { return i >= b.s.Layers || b.s.full(i) }

// lingClamps appends the SwiGLU limits of the published model: its last 7 layers clamp the routed experts and the last 8
// the shared one. A model of fewer layers has them on its last ones, too.
func (b *builder) lingClamps() {
	b.key("bailingmoe3.swiglu_clamp_exp", perBlock(b, func(i int) float32 {
		if left := b.s.Layers - i; left >= 1 && left <= 7 {
			return 4
		}
		return 0
	}))
	b.key("bailingmoe3.swiglu_clamp_shexp", perBlock(b, func(i int) float32 {
		switch left := b.s.Layers - i; {
		case left == 1 || left == 2:
			return 7
		case left >= 3 && left <= 8:
			return 5
		}
		return 0
	}))
}

func (b *builder) lingLayer(i int) {
	s := &b.s
	h := s.Hidden
	b.norm("attn_norm.weight", 1, h)
	if b.mla(i) {
		b.lingMLA(i)
	} else {
		b.lingKDA(i)
	}
	b.norm("ffn_norm.weight", 1, h)
	if i < s.Lead {
		b.ffn("", s.Dense, 1)
		return
	}
	b.router("ffn_norm.weight", 1)
	b.routerBias()
	b.experts(lingScale, half)
	b.ffn("_shexp", s.Shared, half)
}

// lingKDA appends a KDA mixer. A channel's decay is exp(-5·sigmoid(a·(f + dt))): it forgets within a few to 100 tokens.
func (b *builder) lingKDA(i int) {
	h, d := b.s.Hidden, b.s.Heads*stateDim
	for _, part := range []string{"q", "k", "v"} {
		b.vector("ssm_conv1d_"+part+".weight", taps, stateTaps, 1, d)
		b.matrix("attn_"+part+".weight", 1, h, d)
	}
	b.matrix("ssm_f_a.weight", 1, h, d)
	b.matrix("ssm_beta.weight", 1, h, b.s.Heads)
	b.vector("ssm_a", func(r *stream, _ int) float64 { return r.uniform(0.8, 1.3) }, 1, b.s.Heads)
	b.vector("ssm_dt.bias", func(r *stream, _ int) float64 { return r.uniform(-6, -1) }, d)
	b.matrix("ssm_g_a.weight", 1, h, d)
	b.norm("ssm_norm.weight", 1, stateDim)
	b.writer("attn_output.weight", b.residual.mixer(i), sigmoidRMS, d, h)
}

func (b *builder) lingMLA(i int) {
	s := &b.s
	h := s.Hidden
	b.matrix("attn_q.weight", 1, h, s.Heads*(s.NoPE+s.RopeDims))
	b.matrix("attn_kv_a_mqa.weight", 1, h, s.Rank+s.RopeDims)
	b.norm("attn_kv_a_norm.weight", 1, s.Rank)
	b.matrix("attn_k_b.weight", 1.7, s.NoPE, s.Rank, s.Heads)
	b.matrix("attn_v_b.weight", 1, s.Rank, s.ValueDim, s.Heads)
	b.matrix("attn_gate.weight", 1, h, s.Heads)
	b.writer("attn_output.weight", b.residual.mixer(i), attentionRMS*sigmoidRMS, s.Heads*s.ValueDim, h)
}

// lingMTP appends the multi-token prediction block, which plain decoding skips.
func (b *builder) lingMTP(i int) {
	h := b.s.Hidden
	b.lingLayer(i)
	b.matrix("nextn.eh_proj.weight", 1, 2*h, h)
	b.norm("nextn.enorm.weight", 1, h)
	b.norm("nextn.hnorm.weight", 1, h)
	b.norm("layer_output_norm.weight", 1, h)
}
