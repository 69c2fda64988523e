package main

import (
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/plugintest"
)

// small is the header of an lfm2moe file with every kind of layer: a dense lead with a
// convolution, then a convolution and an attention layer with experts.
func small() *plugintest.File {
	const hidden, heads, kv, ff, experts, expertFF, vocab = 256, 4, 2, 512, 8, 64, 1000
	f := plugintest.NewFile("lfm2moe", vocab)
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"block_count", 3},
		{"context_length", 4096},
		{"embedding_length", hidden},
		{"feed_forward_length", ff},
		{"attention.head_count", heads},
		{"attention.head_count_kv", []int{0, 0, kv}},
		{"attention.layer_norm_rms_epsilon", 1e-5},
		{"rope.freq_base", 1e6},
		{"shortconv.l_cache", 3},
		{"leading_dense_block_count", 1},
		{"expert_count", experts},
		{"expert_used_count", 4},
		{"expert_feed_forward_length", expertFF},
		{"expert_gating_func", 2},
	} {
		f.Set("lfm2moe."+kv.key, kv.value)
	}
	f.Add("token_embd.weight", ggml.Q6_K, hidden, vocab).Add("token_embd_norm.weight", ggml.F32, hidden)
	for i := range 3 {
		b := func(name string, t ggml.Type, dims ...int) { f.Add(fmt.Sprintf("blk.%d.%s", i, name), t, dims...) }
		b("attn_norm.weight", ggml.F32, hidden)
		b("ffn_norm.weight", ggml.F32, hidden)
		if i < 2 {
			b("shortconv.in_proj.weight", ggml.Q4_K, hidden, 3*hidden)
			b("shortconv.conv.weight", ggml.F32, 3, hidden)
			b("shortconv.out_proj.weight", ggml.Q4_K, hidden, hidden)
		} else {
			b("attn_q.weight", ggml.Q4_K, hidden, hidden)
			b("attn_k.weight", ggml.Q4_K, hidden, hidden/heads*kv)
			b("attn_v.weight", ggml.Q5_K, hidden, hidden/heads*kv)
			b("attn_q_norm.weight", ggml.F32, hidden/heads)
			b("attn_k_norm.weight", ggml.F32, hidden/heads)
			b("attn_output.weight", ggml.Q5_K, hidden, hidden)
		}
		if i == 0 {
			b("ffn_gate.weight", ggml.Q4_K, hidden, ff)
			b("ffn_up.weight", ggml.Q4_K, hidden, ff)
			b("ffn_down.weight", ggml.Q6_K, ff, hidden)
			continue
		}
		b("ffn_gate_inp.weight", ggml.F32, hidden, experts)
		b("exp_probs_b.bias", ggml.F32, experts)
		b("ffn_gate_exps.weight", ggml.Q4_0, hidden, expertFF, experts)
		b("ffn_up_exps.weight", ggml.Q4_0, hidden, expertFF, experts)
		b("ffn_down_exps.weight", ggml.Q4_0, expertFF, hidden, experts)
	}
	return f
}

func TestConformance(t *testing.T) { plugintest.Run(t, architecture{}, small()) }

// The plan and program of the small file, as text to review. go test ./plugins/lfm2moe -update rewrites it.
func TestProgramText(t *testing.T) {
	plugintest.Text(t, architecture{}, small(), "testdata/small.program.txt")
}

// Values that no model of the family has are refused by naming the key.
func TestRefusals(t *testing.T) {
	plugintest.Refusals(t, architecture{}, small, map[string]plugintest.Refusal{
		"softmax gating":       {func(f *plugintest.File) { f.Set("lfm2moe.expert_gating_func", 1) }, "key lfm2moe.expert_gating_func: have 1, want 2 (sigmoid)"},
		"heads do not divide":  {func(f *plugintest.File) { f.Set("lfm2moe.attention.head_count", 3) }, "key lfm2moe.attention.head_count: have 3 heads"},
		"all layers dense":     {func(f *plugintest.File) { f.Set("lfm2moe.leading_dense_block_count", 3) }, "key lfm2moe.leading_dense_block_count: have 3 of 3 layers"},
		"too many experts":     {func(f *plugintest.File) { f.Set("lfm2moe.expert_count", 513) }, "have 513 experts"},
		"another architecture": {func(f *plugintest.File) { f.Set("general.architecture", "llama") }, `have "llama"`},
	})
}
