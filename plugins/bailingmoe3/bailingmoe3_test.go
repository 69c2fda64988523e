package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/plugintest"
	"github.com/sluicehost/sluice/sdk/program"
)

func TestConformance(t *testing.T) { plugintest.Run(t, architecture{}, small.file()) }

// The other ways that files of the family go, all of them at once: the queries' own low rank, fused experts, a tied head,
// no groups, and no blocks behind.
func TestConformanceLowRank(t *testing.T) {
	s := small
	s.latent, s.mtp = []int{0, 1}, 0
	s.qRank, s.fused, s.tied, s.groups, s.groupsUsed, s.heads = 96, true, true, 1, 1, 2
	plugintest.Run(t, architecture{}, s.file())
}

// Blocks that predict more tokens are not uploaded, nor counted, stored or not.
func TestMTP(t *testing.T) {
	for _, stored := range []bool{false, true} {
		s := small
		s.stored = stored
		plan, _, records, _ := plugintest.Encode(t, architecture{}, s.file(), gpu, false)
		if plan.Model.Layers != 3 || len(records) != 2 {
			t.Errorf("have %d layers and %d records, want 3 and 2", plan.Model.Layers, len(records))
		}
		if stored != (len(plan.Unused) > 10) || slices.ContainsFunc(plan.Unused, func(n string) bool { return !strings.HasPrefix(n, "blk.3.") }) {
			t.Errorf("stored %v: have unused %v, want all of block 3 and nothing else", stored, plan.Unused)
		}
	}
}

var gpu = &program.Limits{MaxBinding: 2 << 30, MaxBindings: 1000, MaxInvocations: 1024, WorkgroupBytes: 48 << 10, MaxGroups: 65535}

// flash and tiny are Ling 3.0's sizes: an attention layer in six, or in four.
func realShape(tiny bool) shape {
	s := shape{layersEvery(42, 6), 2560, 157184, 262144, 32, 128, 0, 512, 128, 64, 128, 512, 8, 8, 4, 768, 768, 2, 6144, 1, false, false, false, true}
	if tiny {
		s.latent, s.hidden, s.qRank, s.experts, s.expertFF, s.sharedFF = layersEvery(24, 4), 1536, 256, 128, 512, 512
		s.heads, s.lead, s.denseFF, s.tied = 16, 1, 4608, true
	}
	return s
}

// layersEvery is head_count_kv of n layers, of which every k-th is latent attention, and of one block behind.
func layersEvery(n, k int) []int {
	kv := make([]int, n+1)
	for i := k - 1; i < n; i += k {
		kv[i] = 1
	}
	kv[n] = 1
	return kv
}

// Every size of the family plans, encodes and validates on each kind of device; on a GPU up to the longest context.
func TestRealShapes(t *testing.T) {
	for name, tiny := range map[string]bool{"flash": false, "tiny": true} {
		for device, limits := range plugintest.Devices() {
			t.Run(name+" "+device, func(t *testing.T) {
				s := realShape(tiny)
				plan, weights, records, prog := plugintest.Encode(t, architecture{}, s.file(), limits, false)
				if want := len(s.latent) - s.mtp - s.lead; len(plan.Model.MoeLayers) != want {
					t.Errorf("have %d layers with experts, want %d", len(plan.Model.MoeLayers), want)
				}
				if device == "gpu" {
					b := program.Bounds{Limits: limits, StorageAlign: 256, UniformAlign: 256, Chunk: 256, Outs: 1, Context: 262144, MaxBuffer: 2 << 30}
					if err := program.Validate(plan, weights, records, prog, b); err != nil {
						t.Errorf("with 262,144 positions: %v", err)
					}
				}
				t.Logf("%d kernels", len(prog.Kernels))
			})
		}
	}
}

// The plan and program of the small file, as text to review. go test ./plugins/bailingmoe3 -update rewrites it.
func TestProgramText(t *testing.T) {
	plugintest.Text(t, architecture{}, small.file(), "testdata/small.program.txt")
}

// required are the keys without a default.
var required = []string{"block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv",
	"attention.layer_norm_rms_epsilon", "attention.key_length_mla", "attention.value_length_mla", "attention.kv_lora_rank", "rope.dimension_count",
	"ssm.conv_kernel", "kda.head_dim", "kda.gate_lower_bound", "expert_count", "expert_used_count", "expert_group_used_count",
	"expert_feed_forward_length", "leading_dense_block_count", "expert_gating_func"}

// A file without one of the keys it needs, or with one of another type, is refused by naming it.
func TestRequiredKeys(t *testing.T) {
	for _, key := range required {
		plugintest.Refused(t, architecture{}, small.file().Drop("bailingmoe3."+key), "key bailingmoe3."+key+" is missing")
		plugintest.Refused(t, architecture{}, small.file().Set("bailingmoe3."+key, "x"), "key bailingmoe3."+key+`: have the string "x"`)
	}
}

// Values that no model of the family has are refused by naming the key or tensor.
func TestRefusals(t *testing.T) {
	key := func(name string, value any) func(*plugintest.File) {
		return func(f *plugintest.File) { f.Set("bailingmoe3."+name, value) }
	}
	plugintest.Refusals(t, architecture{}, small.file, map[string]plugintest.Refusal{
		"softmax gating":       {key("expert_gating_func", 1), "key bailingmoe3.expert_gating_func: have 1, want 2 (sigmoid)"},
		"unbounded decay":      {key("kda.safe_gate", false), "key bailingmoe3.kda.safe_gate: have false, want true"},
		"growing state":        {key("kda.gate_lower_bound", 0.0), "key bailingmoe3.kda.gate_lower_bound: have 0, want a number below 0"},
		"KDA head size":        {key("kda.head_dim", 100), "key bailingmoe3.kda.head_dim: have 100, want a multiple of 32 up to 128"},
		"large KDA heads":      {key("kda.head_dim", 256), "key bailingmoe3.kda.head_dim: have 256"},
		"one tap":              {key("ssm.conv_kernel", 1), "key bailingmoe3.ssm.conv_kernel: have 1, want at least 2"},
		"other taps":           {key("ssm.conv_kernel", 3), "tensor blk.0.ssm_conv1d_q.weight: have shape [4, 1, 96], want [3, …]"},
		"vision":               {key("rope.dimension_sections", []int{8, 12, 12, 0}), "key bailingmoe3.rope.dimension_sections"},
		"scaled rope":          {key("rope.scaling.factor", 4.0), "key bailingmoe3.rope.scaling.factor: have 4, want 1"},
		"all rope":             {key("rope.dimension_count", 48), "key bailingmoe3.attention.key_length_mla: have 48 with rope.dimension_count 48"},
		"odd rope":             {key("rope.dimension_count", 15), "key bailingmoe3.attention.key_length_mla: have 48 with rope.dimension_count 15"},
		"odd latent":           {key("attention.kv_lora_rank", 60), "key bailingmoe3.attention.kv_lora_rank: have 60, want a multiple of 32 up to 512"},
		"large latent":         {key("attention.kv_lora_rank", 544), "key bailingmoe3.attention.kv_lora_rank: have 544"},
		"key length":           {key("attention.key_length", 48), "key bailingmoe3.attention.key_length: have 48, want attention.kv_lora_rank 64 and rope.dimension_count 16"},
		"negative clamp":       {key("swiglu_clamp_exp", []float64{0, -1, 0, 0}), "key bailingmoe3.swiglu_clamp_exp: have -1 in layer 1"},
		"negative clamps":      {key("swiglu_clamp_shexp", -7.0), "key bailingmoe3.swiglu_clamp_shexp: have -7 in layer 0"},
		"few clamps":           {key("swiglu_clamp_exp", []float64{0, 1}), "key bailingmoe3.swiglu_clamp_exp: have an array of 2"},
		"all layers dense":     {key("leading_dense_block_count", 3), "key bailingmoe3.leading_dense_block_count: have 3 of 3 layers"},
		"all blocks MTP":       {key("nextn_predict_layers", 4), "key bailingmoe3.nextn_predict_layers: have 4 of 4 blocks"},
		"uneven groups":        {key("expert_group_count", 3), "key bailingmoe3.expert_group_count: have 3 groups of 8 experts"},
		"too few groups":       {key("expert_group_used_count", 1), "key bailingmoe3.expert_used_count: have 3 experts a token, want at most the 2 of 1 groups"},
		"too many experts":     {key("expert_count", 513), "key bailingmoe3.expert_count: have 513 experts"},
		"no scale":             {key("expert_weights_scale", 0.0), "key bailingmoe3.expert_weights_scale: have 0, want a finite number above 0"},
		"another architecture": {func(f *plugintest.File) { f.Set("general.architecture", "bailingmoe2") }, `have "bailingmoe2"`},
		"low rank not stored":  {key("attention.q_lora_rank", 64), "tensor blk.2.attn_q_a.weight is missing"},
		"heads of the latent": {func(f *plugintest.File) {
			f.Drop("blk.2.attn_k_b.weight").Add("blk.2.attn_k_b.weight", ggml.Q5_0, 32, 64, 4)
		}, "tensor blk.2.attn_k_b.weight: have shape [32, 64, 4], want [32, 64, 3]"},
		"type of the latent": {func(f *plugintest.File) {
			f.Drop("blk.2.attn_v_b.weight").Add("blk.2.attn_v_b.weight", ggml.Q4_K, 64, 32, 3)
		}, "tensor blk.2.attn_v_b.weight: have rows of 64 values"},
	})
}
