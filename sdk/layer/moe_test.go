package layer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/layer"
	"github.com/sluicehost/sluice/sdk/plugintest"
	"github.com/sluicehost/sluice/sdk/program"
)

// author is an architecture whose forward pass a test writes.
type author struct {
	facts  sdk.Facts
	encode func(*layer.Encoder)
}

func (a author) Describe() sdk.Description                    { return sdk.Description{Name: "test", Version: "1.0.0"} }
func (a author) Configure(m *sdk.Metadata) (sdk.Model, error) { return a, m.Err() }
func (a author) Facts() sdk.Facts                             { return a.facts }
func (a author) Encode(e *layer.Encoder)                      { a.encode(e) }
func blockFFN(prefix string, ff int, fused bool) layer.GatedFFN { // its tensors, and GateUp where fused
	f := layer.GatedFFN{Gate: prefix + "gate", Up: prefix + "up", Down: prefix + "down", FF: ff, Act: layer.SiLU}
	if fused {
		f.GateUp = prefix + "gate_up"
	}
	return f
}

// moeTest is a model whose blocks are experts beside a dense FFN, each on its own norm, and the router on a third.
type moeTest struct {
	layers, hidden, ff, experts, topK int
	types                             func(layer, i int) ggml.Type // of tensor i of 6: experts' gate, up, down, then the dense FFN's
	fused                             bool                         // gate and up in one tensor, of gate's type
	router                            layer.Router                 // without From
	act                               layer.Activation
	limit                             float64
}

func (m moeTest) file() *plugintest.File {
	f := plugintest.NewFile("test", vocab)
	f.Add("embd", ggml.F32, m.hidden, vocab).Add("final", ggml.F32, m.hidden)
	for i := range m.layers {
		add := func(name string, t ggml.Type, dims ...int) { f.Add(fmt.Sprintf("blk.%d.%s", i, name), t, dims...) }
		for _, n := range []string{"norm", "router_norm", "dense_norm"} {
			add(n, ggml.F32, m.hidden)
		}
		add("router", ggml.F32, m.hidden, m.experts)
		if m.router.Bias != "" {
			add(m.router.Bias, ggml.F32, m.experts)
		}
		if m.router.ExpertScale != "" {
			add(m.router.ExpertScale, ggml.F32, m.experts)
		}
		for j, prefix := range []string{"", "dense_"} {
			dims := func(cols, rows int) []int { return append([]int{cols, rows}, []int{m.experts}[:1-j]...) }
			gate, up, down := m.types(i, 3*j), m.types(i, 3*j+1), m.types(i, 3*j+2)
			if m.fused {
				add(prefix+"gate_up", gate, dims(m.hidden, 2*m.ff)...)
			} else {
				add(prefix+"gate", gate, dims(m.hidden, m.ff)...)
				add(prefix+"up", up, dims(m.hidden, m.ff)...)
			}
			add(prefix+"down", down, dims(m.ff, m.hidden)...)
		}
	}
	return f
}

func (m moeTest) author() author {
	return author{
		facts: sdk.Facts{Layers: m.layers, Hidden: m.hidden, Vocab: vocab, Experts: m.experts, TopK: m.topK, Context: 128},
		encode: func(e *layer.Encoder) {
			x := e.Embed("embd", 1)
			for i := range m.layers {
				l := e.Layer(i)
				dense, routed := blockFFN("dense_", m.ff, true), blockFFN("", m.ff, true)
				dense.Act, dense.Limit, routed.Act, routed.Limit = m.act, m.limit, m.act, m.limit
				r := m.router
				r.Weight, r.From = "router", l.RMSNorm(x, "router_norm", 1e-5)
				y := l.Experts(l.RMSNorm(x, "norm", 1e-5), r, routed)
				x = l.Result(l.Add(l.Add(x, l.FFN(l.RMSNorm(x, "dense_norm", 1e-5), dense)), y))
			}
			e.Logits(e.FinalNorm(x, 1e-5, "final"), "embd")
		},
	}
}

// alike gives every tensor one type.
func alike(t ggml.Type) func(layer, i int) ggml.Type { return func(int, int) ggml.Type { return t } }

var (
	grouped = layer.Router{Sigmoid: true, Bias: "bias", Groups: 4, GroupsUsed: 2, Normalize: true, Scale: 2.5}
	scaled  = layer.Router{InputScale: 0.25, Normalize: true, Scale: 1, ExpertScale: "scale"}
)

// Every ggml type is a gate, an up or a down somewhere, beside others, and layers differ; so does what the routers can do.
func TestMoEConformance(t *testing.T) {
	var types []ggml.Type
	for typ := range ggml.Type(64) {
		if _, ok := ggml.Form(typ); ok {
			types = append(types, typ)
		}
	}
	for name, m := range map[string]moeTest{
		"all types": {layers: 3, hidden: 256, ff: 256, experts: 8, topK: 3, router: grouped, act: layer.SiLU, limit: 0.5,
			types: func(l, i int) ggml.Type { return types[(6*l+i)%len(types)] }},
		"fused": {layers: 2, hidden: 64, ff: 96, experts: 8, topK: 2, router: scaled, act: layer.GELU, fused: true,
			types: func(l, i int) ggml.Type { return []ggml.Type{ggml.Q4_0, ggml.Q8_0, ggml.Q5_1}[(l+i)%3] }},
	} {
		t.Run(name, func(t *testing.T) { plugintest.Run(t, m.author(), m.file()) })
	}
}

// Gate and up in one tensor are one part of the record, and take the same kernels as two.
func TestFusedProgram(t *testing.T) {
	m := moeTest{layers: 1, hidden: 64, ff: 96, experts: 8, topK: 2, router: grouped, act: layer.SiLU, fused: true, types: alike(ggml.Q4_0)}
	limits := &program.Limits{WorkgroupBytes: 32 << 10, MaxGroups: 65535, MaxBindings: 8, MaxBinding: 1 << 30, MaxInvocations: 1024}
	plan, _, records, prog := plugintest.Encode(t, m.author(), m.file(), limits, false)
	if n := len(plan.Records[0].Parts); n != 2 || records[0].Parts[0].Rows != 192 {
		t.Errorf("have a record of %d parts, %d rows in the first, want 2 and 192", n, records[0].Parts[0].Rows)
	}
	want(t, "one token", kernelsOf(prog, program.Kind_EXPERTS, 1), "expert_pair.silu.staged", "expert_matvec.staged", "moe_sum.put.four")
	want(t, "many tokens", kernelsOf(prog, program.Kind_EXPERTS, 9), "expert_matmul_pair.silu.shared", "expert_matmul.shared")
	for _, k := range prog.Kernels {
		if strings.HasPrefix(k.Name, "topk") && (k.Params["GROUPS"] != 4 || k.Params["USED"] != 2) {
			t.Errorf("have kernel %s, want 2 of 4 groups", k.Name)
		}
	}
}

// What a router or a feed-forward block can't be is refused by naming the key or the tensors.
func TestMoERefusals(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*program.Model, *layer.Router, *layer.GatedFFN)
		want   string
	}{
		"experts":         {func(m *program.Model, _ *layer.Router, _ *layer.GatedFFN) { m.Experts = 513 }, "key test.expert_count: have 513 experts, want 1 to 512"},
		"no experts":      {func(m *program.Model, _ *layer.Router, _ *layer.GatedFFN) { m.Experts = 0 }, "key test.expert_count: have 0"},
		"top k":           {func(m *program.Model, _ *layer.Router, _ *layer.GatedFFN) { m.TopK = 5 }, "key test.expert_used_count: have 5 of 4 experts, want 1 to 4"},
		"large top k":     {func(m *program.Model, _ *layer.Router, _ *layer.GatedFFN) { m.Experts, m.TopK = 64, 33 }, "have 33 of 64 experts, want 1 to 32"},
		"uneven groups":   {func(_ *program.Model, r *layer.Router, _ *layer.GatedFFN) { r.Groups, r.GroupsUsed = 3, 1 }, "key test.expert_group_count: have 3 groups of 4 experts"},
		"groups of one":   {func(_ *program.Model, r *layer.Router, _ *layer.GatedFFN) { r.Groups, r.GroupsUsed = 4, 2 }, "have 4 groups of 4 experts, want equal groups of 2 or more"},
		"no group used":   {func(_ *program.Model, r *layer.Router, _ *layer.GatedFFN) { r.Groups = 2 }, "key test.expert_group_used_count: have 0 of 2 groups"},
		"too many used":   {func(_ *program.Model, r *layer.Router, _ *layer.GatedFFN) { r.Groups, r.GroupsUsed = 2, 3 }, "have 3 of 2 groups, want 1 to 2"},
		"few experts":     {func(m *program.Model, r *layer.Router, _ *layer.GatedFFN) { m.TopK, r.Groups, r.GroupsUsed = 3, 2, 1 }, "have 3 experts a token, want at most the 2 of 1 groups"},
		"input scale":     {func(_ *program.Model, r *layer.Router, _ *layer.GatedFFN) { r.InputScale = -1 }, "input scale of -1"},
		"no width":        {func(_ *program.Model, _ *layer.Router, f *layer.GatedFFN) { f.FF = 0 }, "feed-forward: have a width of 0"},
		"negative clamp":  {func(_ *program.Model, _ *layer.Router, f *layer.GatedFFN) { f.Limit = -1 }, "have a clamp at -1"},
		"neither":         {func(_ *program.Model, _ *layer.Router, f *layer.GatedFFN) { f.Gate, f.GateUp = "g", "gu" }, "tensor blk.1.g is missing, and so is blk.1.gu"},
		"fused only":      {func(_ *program.Model, _ *layer.Router, f *layer.GatedFFN) { f.Gate, f.Up, f.GateUp = "", "", "gu" }, "tensor blk.1.gu is missing"},
		"shape of fused":  {func(_ *program.Model, _ *layer.Router, f *layer.GatedFFN) { f.GateUp = "gate" }, "tensor blk.1.gate: have shape [64, 32, 4], want [64, 64, 4]"},
		"shape of scales": {func(_ *program.Model, r *layer.Router, _ *layer.GatedFFN) { r.ExpertScale = "norm" }, "tensor blk.1.norm: have shape [64], want 4 values"},
	} {
		t.Run(name, func(t *testing.T) {
			p, r, f := facts(), router, routed
			test.change(p.Model, &r, &f)
			err := layer.Plan(file().Header(), p, func(e *layer.Encoder) {
				x, l := e.Embed("embd", 1), e.Layer(1)
				e.Logits(e.FinalNorm(l.Add(x, l.Experts(x, r, f)), 1e-5, "final"), "embd")
			})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("have error %v, want one with %q", err, test.want)
			}
		})
	}
}

// A dense block refuses as the experts do.
func TestFFNRefusals(t *testing.T) {
	for want, f := range map[string]layer.GatedFFN{
		"feed-forward: have a width of -1":                     {Gate: "dense_gate", Up: "dense_up", Down: "dense_down", FF: -1},
		"tensor blk.0.none is missing, and so is blk.0.no":     {Gate: "none", GateUp: "no", Down: "dense_down", FF: ff},
		"tensor blk.0.no is missing":                           {GateUp: "no", Down: "dense_down", FF: ff},
		"blk.0.dense_gate: have shape [64, 32], want [64, 64]": {GateUp: "dense_gate", Down: "dense_down", FF: ff},
	} {
		err := layer.Plan(file().Header(), facts(), func(e *layer.Encoder) { finish(e, e.Layer(0).FFN(e.Embed("embd", 1), f)) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("have error %v, want one with %q", err, want)
		}
	}
}

// Rows that are no whole blocks of their type, or units of the kernels, are refused by naming the tensor, whoever reads it.
func TestRowLengths(t *testing.T) {
	for _, typ := range []ggml.Type{ggml.F32, ggml.Q8_0, ggml.Q2_K, ggml.Q3_K, ggml.Q4_K, ggml.Q5_K, ggml.Q6_K, ggml.IQ4_XS} {
		cols := 80 // no whole blocks of 32 either
		if typ.BlockSize() > 32 {
			cols = 320
		}
		unit := fmt.Sprintf("rows of %d values, want a multiple of %d for type %v", cols, max(32, typ.BlockSize()), typ)
		for name, dims := range map[string][]int{"embd": {cols, vocab}, "blk.0.w": {cols, cols}, "blk.0.up": {cols, 32, 4}, "blk.0.dense_up": {cols, 32}} {
			f := plugintest.NewFile("test", vocab)
			for other, dims := range map[string][]int{"embd": {cols, vocab}, "blk.0.w": {cols, cols}, "blk.0.gate": {cols, 32, 4}, "blk.0.up": {cols, 32, 4},
				"blk.0.down": {32, cols, 4}, "blk.0.dense_gate": {cols, 32}, "blk.0.dense_up": {cols, 32}, "blk.0.dense_down": {32, cols}, "blk.0.router": {cols, 4}, "final": {cols}} {
				if other != name {
					f.Add(other, ggml.F32, dims...)
				}
			}
			f.Add(name, typ, dims...)
			p := &program.Plan{Model: &program.Model{Architecture: "test", Layers: 1, Hidden: uint32(cols), Vocab: vocab, Experts: 4, TopK: 2, Context: 128}}
			err := layer.Plan(f.Header(), p, func(e *layer.Encoder) {
				l, x := e.Layer(0), e.Embed("embd", 1)
				x = l.Add(x, l.FFN(l.Linear(x, cols, "w"), blockFFN("dense_", 32, false)))
				e.Logits(e.FinalNorm(l.Add(x, l.Experts(x, router, blockFFN("", 32, false))), 1e-5, "final"), "embd")
			})
			if want := "tensor " + name + ": have " + unit; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: have error %v, want one with %q", typ, err, want)
			}
		}
	}
}
