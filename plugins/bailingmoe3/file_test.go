package main

import (
	"fmt"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/plugintest"
)

// shape is the sizes of a file, and which of the family's ways it goes.
type shape struct {
	latent                            []int // attention.head_count_kv, of all blocks
	hidden, vocab, context            int
	heads, kdaDim                     int
	qRank, rank, nope, rot, value     int
	experts, topK, groups, groupsUsed int
	expertFF, sharedFF                int
	lead, denseFF                     int
	mtp                               int  // blocks at the end, whose tensors are stored where stored is set
	stored, tied, fused               bool // fused: gate and up of the experts in one tensor
	k256                              bool // the types of a large file: K-quants, where rows are whole blocks
}

// small has every kind of layer: a dense lead with KDA, then KDA and latent attention with experts.
var small = shape{
	latent: []int{0, 0, 1, 1}, mtp: 1, hidden: 128, vocab: 500, context: 4096, heads: 3, kdaDim: 32,
	rank: 64, nope: 32, rot: 16, value: 32, experts: 8, topK: 3, groups: 4, groupsUsed: 2, expertFF: 64, sharedFF: 96, lead: 1, denseFF: 160,
}

func (s shape) file() *plugintest.File {
	f := plugintest.NewFile("bailingmoe3", s.vocab)
	clamps := make([]float64, len(s.latent))
	for i := range clamps {
		clamps[i] = float64(i%2) * 0.7
	}
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"block_count", len(s.latent)},
		{"context_length", s.context},
		{"embedding_length", s.hidden},
		{"feed_forward_length", s.denseFF},
		{"attention.head_count", s.heads},
		{"attention.head_count_kv", s.latent},
		{"attention.layer_norm_rms_epsilon", 1e-6},
		{"attention.key_length", s.rank + s.rot},
		{"attention.key_length_mla", s.nope + s.rot},
		{"attention.value_length_mla", s.value},
		{"attention.kv_lora_rank", s.rank},
		{"rope.dimension_count", s.rot},
		{"rope.freq_base", 6e6},
		{"ssm.conv_kernel", 4},
		{"kda.head_dim", s.kdaDim},
		{"kda.safe_gate", true},
		{"kda.gate_lower_bound", -5.0},
		{"expert_count", s.experts},
		{"expert_used_count", s.topK},
		{"expert_shared_count", 1},
		{"expert_group_count", s.groups},
		{"expert_group_used_count", s.groupsUsed},
		{"expert_feed_forward_length", s.expertFF},
		{"expert_shared_feed_forward_length", s.sharedFF},
		{"leading_dense_block_count", s.lead},
		{"expert_weights_scale", 2.5},
		{"expert_weights_norm", true},
		{"expert_gating_func", 2},
		{"swiglu_clamp_exp", clamps},
		{"swiglu_clamp_shexp", clamps},
		{"nextn_predict_layers", s.mtp},
	} {
		f.Set("bailingmoe3."+kv.key, kv.value)
	}
	if s.qRank > 0 {
		f.Set("bailingmoe3.attention.q_lora_rank", s.qRank)
	}
	f.Add("token_embd.weight", s.k(ggml.Q4_K, s.hidden), s.hidden, s.vocab).Add("output_norm.weight", ggml.F32, s.hidden)
	if !s.tied {
		f.Add("output.weight", s.k(ggml.Q6_K, s.hidden), s.hidden, s.vocab)
	}
	blocks := len(s.latent) - s.mtp
	if s.stored {
		blocks += s.mtp
	}
	for i := range blocks {
		s.block(f, i)
	}
	return f
}

// k is t where rows of n values are whole blocks of it and the file is of such types, else Q8_0.
func (s shape) k(t ggml.Type, n int) ggml.Type {
	if s.k256 && n%int(t.BlockSize()) == 0 {
		return t
	}
	return ggml.Q8_0
}

func (s shape) block(f *plugintest.File, i int) {
	b := func(name string, t ggml.Type, dims ...int) { f.Add(fmt.Sprintf("blk.%d.%s", i, name), t, dims...) }
	matrix := func(name string, dims ...int) { b(name, s.k(ggml.Q4_K, dims[0]), dims...) }
	b("attn_norm.weight", ggml.F32, s.hidden)
	b("ffn_norm.weight", ggml.F32, s.hidden)
	if s.latent[i] > 0 {
		s.latentBlock(b, matrix)
	} else {
		s.deltaBlock(b, matrix)
	}
	if i < s.lead {
		matrix("ffn_gate.weight", s.hidden, s.denseFF)
		matrix("ffn_up.weight", s.hidden, s.denseFF)
		b("ffn_down.weight", s.k(ggml.Q6_K, s.denseFF), s.denseFF, s.hidden)
		return
	}
	b("ffn_gate_inp.weight", ggml.F32, s.hidden, s.experts)
	b("exp_probs_b.bias", ggml.F32, s.experts)
	matrix("ffn_gate_shexp.weight", s.hidden, s.sharedFF)
	matrix("ffn_up_shexp.weight", s.hidden, s.sharedFF)
	matrix("ffn_down_shexp.weight", s.sharedFF, s.hidden)
	if s.fused {
		matrix("ffn_gate_up_exps.weight", s.hidden, 2*s.expertFF, s.experts)
	} else {
		matrix("ffn_gate_exps.weight", s.hidden, s.expertFF, s.experts)
		matrix("ffn_up_exps.weight", s.hidden, s.expertFF, s.experts)
	}
	b("ffn_down_exps.weight", s.k(ggml.Q6_K, s.expertFF), s.expertFF, s.hidden, s.experts)
}

func (s shape) deltaBlock(b func(string, ggml.Type, ...int), matrix func(string, ...int)) {
	inner := s.heads * s.kdaDim
	for _, name := range []string{"attn_q", "attn_k", "ssm_f_a", "ssm_g_a"} {
		matrix(name+".weight", s.hidden, inner)
	}
	b("attn_v.weight", s.k(ggml.Q6_K, s.hidden), s.hidden, inner)
	for _, name := range []string{"q", "k", "v"} {
		b("ssm_conv1d_"+name+".weight", ggml.F32, 4, 1, inner)
	}
	matrix("ssm_beta.weight", s.hidden, s.heads)
	b("ssm_a", ggml.F32, 1, s.heads)
	b("ssm_dt.bias", ggml.F32, inner)
	b("ssm_norm.weight", ggml.F32, s.kdaDim)
	matrix("attn_output.weight", inner, s.hidden)
}

func (s shape) latentBlock(b func(string, ggml.Type, ...int), matrix func(string, ...int)) {
	if queries := s.heads * (s.nope + s.rot); s.qRank > 0 {
		matrix("attn_q_a.weight", s.hidden, s.qRank)
		b("attn_q_a_norm.weight", ggml.F32, s.qRank)
		matrix("attn_q_b.weight", s.qRank, queries)
	} else {
		matrix("attn_q.weight", s.hidden, queries)
	}
	matrix("attn_kv_a_mqa.weight", s.hidden, s.rank+s.rot)
	b("attn_kv_a_norm.weight", ggml.F32, s.rank)
	b("attn_k_b.weight", ggml.Q5_0, s.nope, s.rank, s.heads)
	b("attn_v_b.weight", s.k(ggml.Q6_K, s.rank), s.rank, s.value, s.heads)
	matrix("attn_gate.weight", s.hidden, s.heads)
	matrix("attn_output.weight", s.heads*s.value, s.hidden)
}
