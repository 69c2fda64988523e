package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/sdk"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/plugintest"
)

// shape is what the tests' files differ in.
type shape struct {
	layers, hidden, heads, window int
	full                          []int // layers that see all positions
	kv, dim, kvSWA, dimSWA        int
	denseFF, experts, topK        int
	expertFF, vocab               int
	fused                         bool // gate and up of the experts in one tensor
	matrix, down                  ggml.Type
}

// small has both kinds of layer, and a window that the tests' prompts outgrow.
var small = shape{layers: 3, full: []int{2}, hidden: 256, heads: 4, window: 4, kv: 1, dim: 128, kvSWA: 2, dimSWA: 64,
	denseFF: 512, experts: 8, topK: 2, expertFF: 64, vocab: 1000, fused: true, matrix: ggml.Q4_K, down: ggml.Q4_0}

// real is 26B-A4B's shape with 3 layers.
var real = shape{layers: 3, full: []int{2}, hidden: 2816, heads: 16, window: 1024, kv: 2, dim: 512, kvSWA: 8, dimSWA: 256,
	denseFF: 2112, experts: 128, topK: 8, expertFF: 704, vocab: 262144, fused: true, matrix: ggml.Q4_0, down: ggml.Q4_0}

// file is the header of a gemma4 file.
func (s shape) file() *plugintest.File {
	f := plugintest.NewFile("gemma4", s.vocab)
	var kv []int
	var slides []bool
	for i := range s.layers {
		_, n := s.attention(i)
		kv, slides = append(kv, n), append(slides, !slices.Contains(s.full, i))
	}
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"block_count", s.layers},
		{"context_length", 262144},
		{"embedding_length", s.hidden},
		{"feed_forward_length", s.denseFF},
		{"attention.head_count", s.heads},
		{"attention.head_count_kv", kv},
		{"attention.key_length", s.dim},
		{"attention.value_length", s.dim},
		{"attention.key_length_swa", s.dimSWA},
		{"attention.value_length_swa", s.dimSWA},
		{"attention.sliding_window", s.window},
		{"attention.sliding_window_pattern", slides},
		{"attention.shared_kv_layers", 0},
		{"attention.layer_norm_rms_epsilon", 1e-6},
		{"embedding_length_per_layer_input", 0},
		{"rope.freq_base", 1e6},
		{"rope.freq_base_swa", 1e4},
		{"rope.dimension_count", s.dim},
		{"rope.dimension_count_swa", s.dimSWA},
		{"expert_count", s.experts},
		{"expert_used_count", s.topK},
		{"expert_feed_forward_length", s.expertFF},
		{"final_logit_softcapping", 30.0},
	} {
		f.Set("gemma4."+kv.key, kv.value)
	}
	f.Add("token_embd.weight", ggml.Q6_K, s.hidden, s.vocab).Add("output_norm.weight", ggml.F32, s.hidden).Add("rope_freqs.weight", ggml.F32, s.dim/2)
	for i := range s.layers {
		s.layer(f, i)
	}
	return f
}

// attention is the head size and number of KV heads of a layer.
func (s shape) attention(i int) (dim, kv int) {
	if slices.Contains(s.full, i) {
		return s.dim, s.kv
	}
	return s.dimSWA, s.kvSWA
}

func (s shape) layer(f *plugintest.File, i int) {
	b := func(name string, t ggml.Type, dims ...int) { f.Add(fmt.Sprintf("blk.%d.%s", i, name), t, dims...) }
	for _, norm := range []string{"attn_norm.weight", "post_attention_norm.weight", "ffn_norm.weight", "post_ffw_norm_1.weight",
		"pre_ffw_norm_2.weight", "post_ffw_norm_2.weight", "post_ffw_norm.weight", "ffn_gate_inp.scale"} {
		b(norm, ggml.F32, s.hidden)
	}
	dim, kv := s.attention(i)
	if !slices.Contains(s.full, i) {
		b("attn_v.weight", s.matrix, s.hidden, dim*kv)
	}
	b("attn_q.weight", s.matrix, s.hidden, dim*s.heads)
	b("attn_k.weight", s.matrix, s.hidden, dim*kv)
	b("attn_q_norm.weight", ggml.F32, dim)
	b("attn_k_norm.weight", ggml.F32, dim)
	b("attn_output.weight", s.matrix, dim*s.heads, s.hidden)
	b("ffn_gate.weight", s.matrix, s.hidden, s.denseFF)
	b("ffn_up.weight", s.matrix, s.hidden, s.denseFF)
	b("ffn_down.weight", s.matrix, s.denseFF, s.hidden)
	b("ffn_gate_inp.weight", ggml.F32, s.hidden, s.experts)
	if s.fused {
		b("ffn_gate_up_exps.weight", s.matrix, s.hidden, 2*s.expertFF, s.experts)
	} else {
		b("ffn_gate_exps.weight", s.matrix, s.hidden, s.expertFF, s.experts)
		b("ffn_up_exps.weight", s.matrix, s.hidden, s.expertFF, s.experts)
	}
	b("ffn_down_exps.weight", s.down, s.expertFF, s.hidden, s.experts)
	b("ffn_down_exps.scale", ggml.F32, s.experts)
	b("layer_output_scale.weight", ggml.F32, 1)
}

func TestConformance(t *testing.T) {
	plugintest.Run(t, architecture{}, small.file())
}

// Files of the family whose experts' gate and up lie apart, and with a head of their own.
func TestSeparateTensors(t *testing.T) {
	s := small
	s.fused = false
	f := s.file().Add("output.weight", ggml.Q8_0, s.hidden, s.vocab)
	plan, _, _, _ := plugintest.Encode(t, architecture{}, f, plugintest.Devices()["small gpu"], false)
	if len(plan.Unused) > 0 || len(plan.Records[0].Parts) != 3 {
		t.Errorf("have unused tensors %v, records %v", plan.Unused, plan.Records[0])
	}
}

// 26B-A4B's shape is planned and encoded for every kind of device.
func TestRealShape(t *testing.T) {
	for name, l := range plugintest.Devices() {
		t.Run(name, func(t *testing.T) { plugintest.Encode(t, architecture{}, real.file(), l, false) })
	}
}

// The plan and program of the small file, as text to review. go test ./plugins/gemma4 -update rewrites it.
func TestProgramText(t *testing.T) {
	plugintest.Text(t, architecture{}, small.file(), "testdata/small.program.txt")
}

// Kinds of Gemma 4 that are not supported, and values that no model of the family has, are refused by naming the key.
func TestRefusals(t *testing.T) {
	plugintest.Refusals(t, architecture{}, small.file, map[string]plugintest.Refusal{
		"dense, said so":     {func(f *plugintest.File) { f.Set("gemma4.expert_count", 0) }, "a dense Gemma 4 model"},
		"dense":              {func(f *plugintest.File) { f.Set("gemma4.expert_count", 0) }, "key gemma4.expert_count: have 0 or none, want experts: a dense Gemma 4"},
		"shared KV":          {func(f *plugintest.File) { f.Set("gemma4.attention.shared_kv_layers", 20) }, "key gemma4.attention.shared_kv_layers: have 20, want 0"},
		"per-layer inputs":   {func(f *plugintest.File) { f.Set("gemma4.embedding_length_per_layer_input", 256) }, "key gemma4.embedding_length_per_layer_input: have 256"},
		"scaled rotations":   {func(f *plugintest.File) { f.Set("gemma4.rope.scaling.factor", 8.0) }, "key gemma4.rope.scaling.factor: have 8, want 1"},
		"value length":       {func(f *plugintest.File) { f.Set("gemma4.attention.value_length_swa", 32) }, "value_length_swa: have 64 and 32"},
		"negative cap":       {func(f *plugintest.File) { f.Set("gemma4.final_logit_softcapping", -1.0) }, "key gemma4.final_logit_softcapping: have -1"},
		"period of layers":   {func(f *plugintest.File) { f.Set("gemma4.attention.sliding_window_pattern", 6) }, "key gemma4.attention.sliding_window_pattern: have 6, want 3 booleans"},
		"too many layers":    {func(f *plugintest.File) { f.Set("gemma4.block_count", 1<<20) }, "key gemma4.attention.head_count: want 1048576 values"},
		"odd rotations":      {func(f *plugintest.File) { f.Set("gemma4.rope.dimension_count", 63) }, "rope: have 63 rotated dims"},
		"too many rotated":   {func(f *plugintest.File) { f.Set("gemma4.rope.dimension_count_swa", 128) }, "have 4 heads, 2 KV heads, head size 64, 128 rotated dims"},
		"KV heads":           {func(f *plugintest.File) { f.Set("gemma4.attention.head_count_kv", 3) }, "tensors blk.0.attn_q.weight, blk.0.attn_k.weight, blk.0.attn_v.weight: have shapes [256, 256], [256, 128], [256, 128], want 640 rows in all"},
		"too many experts":   {func(f *plugintest.File) { f.Set("gemma4.expert_count", 513) }, "513 experts"},
		"other architecture": {func(f *plugintest.File) { f.Set("general.architecture", "gemma3") }, `have "gemma3"`},
	})
}

// What a file may leave out, or say once for all layers.
func TestOptional(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*plugintest.File)
		want   func(*config) bool
	}{
		"no soft cap key": {func(f *plugintest.File) { f.Drop("gemma4.final_logit_softcapping") }, func(c *config) bool { return c.softCap == 30 }},
		"no soft cap":     {func(f *plugintest.File) { f.Set("gemma4.final_logit_softcapping", 0.0) }, func(c *config) bool { return c.softCap == 0 }},
		"no bases": {func(f *plugintest.File) { f.Drop("gemma4.rope.freq_base").Drop("gemma4.rope.freq_base_swa") },
			func(c *config) bool { return c.full.ropeBase == 1e4 && c.sliding.ropeBase == 1e4 }},
		"no rotated dims": {func(f *plugintest.File) { f.Drop("gemma4.rope.dimension_count") }, func(c *config) bool { return c.full.ropeDims == small.dim }},
		"no zeros": {func(f *plugintest.File) {
			f.Drop("gemma4.attention.shared_kv_layers").Drop("gemma4.embedding_length_per_layer_input")
		}, nil},
		"no scales":       {func(f *plugintest.File) { f.Drop("blk.1.layer_output_scale.weight").Drop("blk.1.ffn_down_exps.scale") }, nil},
		"a head":          {func(f *plugintest.File) { f.Add("output.weight", ggml.Q8_0, small.hidden, small.vocab) }, nil},
		"value tensor":    {func(f *plugintest.File) { f.Add("blk.2.attn_v.weight", ggml.Q5_K, small.hidden, small.dim*small.kv) }, nil},
		"keys for values": {func(f *plugintest.File) { f.Drop("blk.0.attn_v.weight") }, nil},
		"numbers by layer": {func(f *plugintest.File) {
			f.Set("gemma4.attention.head_count", []int{4, 4, 4}).Set("gemma4.feed_forward_length", []int{512, 512, 512})
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := small.file()
			test.change(f)
			check(t, f, test.want)
		})
	}
	sliding := small
	sliding.full = nil
	f := sliding.file().Set("gemma4.attention.sliding_window_pattern", true).Set("gemma4.attention.head_count_kv", small.kvSWA).Drop("rope_freqs.weight")
	check(t, f, func(c *config) bool { return c.slides[0] && c.slides[2] && c.kvHeads[2] == small.kvSWA })
}

// check encodes a file, wants every tensor of it used, and looks at what was read of it.
func check(t *testing.T, f *plugintest.File, want func(*config) bool) {
	t.Helper()
	if plan, _, _, _ := plugintest.Encode(t, architecture{}, f, plugintest.Devices()["small gpu"], true); len(plan.Unused) > 0 {
		t.Errorf("have unused tensors %v", plan.Unused)
	}
	m, err := readConfig(sdk.NewMetadata(f.Header()))
	if err != nil {
		t.Fatal(err)
	}
	if c := m.(*config); want != nil && !want(c) {
		t.Errorf("have %+v", c)
	}
}
