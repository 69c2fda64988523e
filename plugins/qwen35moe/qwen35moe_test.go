package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/plugintest"
	"github.com/sluicehost/sluice/sdk/program"
)

// shape is the sizes of a file, and which of the family's ways it goes.
type shape struct {
	layers, hidden, vocab, context          int
	heads, kvHeads, headDim, ropeDims       int
	keyHeads, valueHeads, state             int
	experts, topK, expertFF, sharedFF       int
	interval                                int  // of full attention
	list                                    bool // attention.recurrent_layers says it, and the interval is wrong
	tied, fusedExperts, fusedAttention, mtp bool
}

// small has both kinds of layers; types differ within stacks.
var small = shape{
	layers: 3, hidden: 256, vocab: 1000, context: 4096, heads: 4, kvHeads: 2, headDim: 64, ropeDims: 16,
	keyHeads: 2, valueHeads: 4, state: 32, experts: 8, topK: 3, expertFF: 64, sharedFF: 96, interval: 2,
}

func (s shape) file() *plugintest.File {
	f := plugintest.NewFile("qwen35moe", s.vocab)
	blocks := s.layers
	if s.mtp {
		blocks++
	}
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"block_count", blocks},
		{"context_length", s.context},
		{"embedding_length", s.hidden},
		{"attention.head_count", s.heads},
		{"attention.head_count_kv", s.kvHeads},
		{"attention.key_length", s.headDim},
		{"attention.value_length", s.headDim},
		{"attention.layer_norm_rms_epsilon", 1e-6},
		{"rope.dimension_count", s.ropeDims},
		{"rope.freq_base", 1e7},
		{"rope.dimension_sections", []int{3, 3, 2, 0}},
		{"ssm.conv_kernel", 4},
		{"ssm.state_size", s.state},
		{"ssm.group_count", s.keyHeads},
		{"ssm.time_step_rank", s.valueHeads},
		{"ssm.inner_size", s.state * s.valueHeads},
		{"full_attention_interval", s.interval},
		{"expert_count", s.experts},
		{"expert_used_count", s.topK},
		{"expert_feed_forward_length", s.expertFF},
		{"expert_shared_feed_forward_length", s.sharedFF},
	} {
		f.Set("qwen35moe."+kv.key, kv.value)
	}
	if s.mtp {
		f.Set("qwen35moe.nextn_predict_layers", 1)
	}
	var recurrent []bool
	for i := range s.layers {
		recurrent = append(recurrent, (i+1)%s.interval != 0)
	}
	if s.list {
		f.Set("qwen35moe.full_attention_interval", s.interval+1).Set("qwen35moe.attention.recurrent_layers", recurrent)
	}
	f.Add("token_embd.weight", ggml.Q8_0, s.hidden, s.vocab).Add("output_norm.weight", ggml.F32, s.hidden)
	if !s.tied {
		f.Add("output.weight", ggml.Q6_K, s.hidden, s.vocab)
	}
	for i := range blocks {
		s.block(f, i, i < s.layers && recurrent[i])
	}
	if s.mtp {
		f.Add(fmt.Sprintf("blk.%d.nextn.eh_proj.weight", s.layers), ggml.Q8_0, 2*s.hidden, s.hidden)
	}
	return f
}

func (s shape) block(f *plugintest.File, i int, recurrent bool) {
	b := func(name string, t ggml.Type, dims ...int) { f.Add(fmt.Sprintf("blk.%d.%s", i, name), t, dims...) }
	b("attn_norm.weight", ggml.F32, s.hidden)
	b("post_attention_norm.weight", ggml.F32, s.hidden)
	keys, values := s.keyHeads*s.state, s.valueHeads*s.state
	q, kv := 2*s.heads*s.headDim, s.kvHeads*s.headDim
	switch {
	case recurrent:
		b("attn_qkv.weight", ggml.Q5_K, s.hidden, 2*keys+values)
		b("attn_gate.weight", ggml.Q4_K, s.hidden, values)
		b("ssm_conv1d.weight", ggml.F32, 4, 2*keys+values)
		b("ssm_alpha.weight", ggml.F32, s.hidden, s.valueHeads)
		b("ssm_beta.weight", ggml.Q8_0, s.hidden, s.valueHeads)
		b("ssm_a", ggml.F32, s.valueHeads)
		b("ssm_dt.bias", ggml.F32, s.valueHeads)
		b("ssm_norm.weight", ggml.F32, s.state)
		b("ssm_out.weight", ggml.Q8_0, values, s.hidden)
	case s.fusedAttention:
		b("attn_qkv.weight", ggml.Q4_K, s.hidden, q+2*kv)
	default:
		b("attn_q.weight", ggml.Q4_K, s.hidden, q)
		b("attn_k.weight", ggml.Q4_K, s.hidden, kv)
		b("attn_v.weight", ggml.Q5_K, s.hidden, kv)
	}
	if !recurrent {
		b("attn_q_norm.weight", ggml.F32, s.headDim)
		b("attn_k_norm.weight", ggml.F32, s.headDim)
		b("attn_output.weight", ggml.Q5_K, s.heads*s.headDim, s.hidden)
	}
	b("ffn_gate_inp.weight", ggml.F32, s.hidden, s.experts)
	b("ffn_gate_inp_shexp.weight", ggml.F32, s.hidden)
	b("ffn_gate_shexp.weight", ggml.Q8_0, s.hidden, s.sharedFF)
	b("ffn_up_shexp.weight", ggml.Q8_0, s.hidden, s.sharedFF)
	b("ffn_down_shexp.weight", ggml.Q8_0, s.sharedFF, s.hidden)
	if s.fusedExperts {
		b("ffn_gate_up_exps.weight", ggml.Q4_0, s.hidden, 2*s.expertFF, s.experts)
	} else {
		b("ffn_gate_exps.weight", ggml.Q4_0, s.hidden, s.expertFF, s.experts)
		b("ffn_up_exps.weight", ggml.Q4_0, s.hidden, s.expertFF, s.experts)
	}
	b("ffn_down_exps.weight", ggml.Q8_0, s.expertFF, s.hidden, s.experts)
}

func TestConformance(t *testing.T) { plugintest.Run(t, architecture{}, small.file()) }

// The other ways that files of the family go: all of them at once.
func TestConformanceFused(t *testing.T) {
	s := small
	s.list, s.tied, s.fusedExperts, s.fusedAttention = true, true, true, true
	plugintest.Run(t, architecture{}, s.file())
}

// Blocks that predict more tokens are not uploaded, nor counted.
func TestMTP(t *testing.T) {
	s := small
	s.mtp = true
	plan, _, records, _ := plugintest.Encode(t, architecture{}, s.file(), gpu, false)
	if plan.Model.Layers != 3 || len(records) != 3 {
		t.Errorf("have %d layers and %d records, want 3", plan.Model.Layers, len(records))
	}
	if len(plan.Unused) < 10 || slices.ContainsFunc(plan.Unused, func(n string) bool { return !strings.HasPrefix(n, "blk.3.") }) {
		t.Errorf("have unused %v, want all of block 3 and nothing else", plan.Unused)
	}
}

var gpu = &program.Limits{MaxBinding: 2 << 30, MaxBindings: 1000, MaxInvocations: 1024, WorkgroupBytes: 48 << 10, MaxGroups: 65535}

// Every size of the family plans, encodes and validates on each kind of device.
func TestRealShapes(t *testing.T) {
	for name, s := range map[string]shape{
		"35B-A3B":   {layers: 40, hidden: 2048, heads: 16, keyHeads: 16, valueHeads: 32, experts: 256, topK: 8, expertFF: 512, sharedFF: 512, mtp: true},
		"122B-A10B": {layers: 48, hidden: 3072, heads: 32, keyHeads: 16, valueHeads: 64, experts: 256, topK: 8, expertFF: 1024, sharedFF: 1024},
		"397B-A17B": {layers: 60, hidden: 4096, heads: 32, keyHeads: 16, valueHeads: 64, experts: 512, topK: 10, expertFF: 1024, sharedFF: 1024},
	} {
		s.vocab, s.context, s.kvHeads, s.headDim, s.ropeDims, s.state, s.interval = 248320, 262144, 2, 256, 64, 128, 4
		for device, limits := range plugintest.Devices() {
			t.Run(name+" "+device, func(t *testing.T) {
				plan, _, _, prog := plugintest.Encode(t, architecture{}, s.file(), limits, false)
				if len(plan.Model.MoeLayers) != s.layers {
					t.Errorf("have %d layers with experts, want %d", len(plan.Model.MoeLayers), s.layers)
				}
				t.Logf("%d kernels", len(prog.Kernels))
			})
		}
	}
}

// The plan and program of the small file, as text to review. go test ./plugins/qwen35moe -update rewrites it.
func TestProgramText(t *testing.T) {
	plugintest.Text(t, architecture{}, small.file(), "testdata/small.program.txt")
}

// Values that no model of the family has are refused by naming the key.
func TestRefusals(t *testing.T) {
	key := func(name string, value any) func(*plugintest.File) {
		return func(f *plugintest.File) { f.Set("qwen35moe."+name, value) }
	}
	plugintest.Refusals(t, architecture{}, small.file, map[string]plugintest.Refusal{
		"inner size":             {key("ssm.inner_size", 512), "key qwen35moe.ssm.inner_size: have 512, want ssm.state_size 32 times ssm.time_step_rank 4"},
		"key heads":              {key("ssm.group_count", 3), "key qwen35moe.ssm.group_count: have 3 key heads, want a divisor of ssm.time_step_rank 4"},
		"state size":             {key("ssm.state_size", 100), "key qwen35moe.ssm.state_size: have 100, want a multiple of 32 up to 128"},
		"large state":            {key("ssm.state_size", 256), "key qwen35moe.ssm.state_size: have 256"},
		"one tap":                {key("ssm.conv_kernel", 1), "key qwen35moe.ssm.conv_kernel: have 1, want at least 2"},
		"other taps":             {key("ssm.conv_kernel", 5), "tensor blk.0.ssm_conv1d.weight: have shape [4, 256], want [5, …]"},
		"value length":           {key("attention.value_length", 32), "key qwen35moe.attention.value_length: have 32, want attention.key_length 64"},
		"odd rope":               {key("rope.dimension_count", 15), "key qwen35moe.rope.dimension_count: have 15"},
		"wide rope":              {key("rope.dimension_count", 66), "key qwen35moe.rope.dimension_count: have 66"},
		"scaled rope":            {key("rope.scaling.factor", 4.0), "key qwen35moe.rope.scaling.factor: have 4, want 1"},
		"KV heads do not divide": {key("attention.head_count_kv", 3), "key qwen35moe.attention.head_count_kv: have 3 in layer 1"},
		"no KV heads":            {key("attention.head_count_kv", []int{2, 0, 2}), "key qwen35moe.attention.head_count_kv: have 0 in layer 1"},
		"short list":             {key("attention.recurrent_layers", []bool{true}), "key qwen35moe.attention.recurrent_layers: have an array of 1, want 3 booleans"},
		"all blocks MTP":         {key("nextn_predict_layers", 3), "key qwen35moe.nextn_predict_layers: have 3 of 3 blocks"},
		"no end of layers":       {key("block_count", 1<<30), "qwen35moe.attention.head_count_kv: want 1073741824 values"},
		"too many experts":       {key("expert_count", 513), "have 513 experts"},
		"another architecture":   {func(f *plugintest.File) { f.Set("general.architecture", "qwen3moe") }, `have "qwen3moe"`},
	})
}
