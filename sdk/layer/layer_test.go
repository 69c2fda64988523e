package layer_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/layer"
	"github.com/sluicehost/sluice/sdk/place"
	"github.com/sluicehost/sluice/sdk/plugintest"
	"github.com/sluicehost/sluice/sdk/program"
)

const hidden, vocab, experts, ff = 64, 96, 4, 32

// file holds what the tests' models ask for.
func file() *plugintest.File {
	f := plugintest.NewFile("test", vocab)
	f.Add("embd", ggml.Q8_0, hidden, vocab).Add("final", ggml.F32, hidden)
	f.Add("blk.0.factor", ggml.F32, 1).Add("blk.0.q_norm", ggml.F32, 16).Add("blk.0.k_norm", ggml.F32, 16).Add("blk.0.gated", ggml.Q4_0, hidden, 160)
	for _, p := range []string{"blk.0.", "blk.1."} {
		f.Add(p+"norm", ggml.F32, hidden)
		f.Add(p+"a", ggml.Q4_0, hidden, 64).Add(p+"b", ggml.Q4_0, hidden, 32).Add(p+"c", ggml.Q8_0, hidden, 32)
		f.Add(p+"router", ggml.F32, hidden, experts)
		f.Add(p+"gate", ggml.Q4_0, hidden, ff, experts).Add(p+"up", ggml.Q4_0, hidden, ff, experts).Add(p+"down", ggml.Q4_0, ff, hidden, experts)
		f.Add(p+"dense_gate", ggml.Q4_0, hidden, ff).Add(p+"dense_up", ggml.Q4_0, hidden, ff).Add(p+"dense_down", ggml.Q4_0, ff, hidden)
	}
	return f
}

func facts() *program.Plan {
	return &program.Plan{Model: &program.Model{Architecture: "test", Layers: 2, Hidden: hidden, Vocab: vocab, Experts: experts, TopK: 2, Context: 128}}
}

var (
	router = layer.Router{Weight: "router", Normalize: true, Scale: 1}
	routed = layer.GatedFFN{Gate: "gate", Up: "up", Down: "down", FF: ff, Act: layer.SiLU}
	dense  = layer.GatedFFN{Gate: "dense_gate", Up: "dense_up", Down: "dense_down", FF: ff, Act: layer.SiLU}
)

// finish ends a model that is right otherwise.
func finish(e *layer.Encoder, x *layer.Value) {
	l := e.Layer(1)
	x = l.Add(x, l.Experts(l.RMSNorm(x, "norm", 1e-5), router, routed))
	e.Logits(e.FinalNorm(x, 1e-5, "final"), "embd")
}

// encode plans, places and encodes; it checks that the program is valid.
func encode(t *testing.T, author func(*layer.Encoder)) *program.Program {
	t.Helper()
	return encodeFile(t, file(), author)
}

// software is a device like lavapipe.
var software = &program.Limits{WorkgroupBytes: 32 << 10, MaxGroups: 65535, Cpu: true}

func encodeOn(t *testing.T, limits *program.Limits, author func(*layer.Encoder)) *program.Program {
	t.Helper()
	return encodeFor(t, limits, file(), author)
}

// encodeFile encodes for a GPU.
func encodeFile(t *testing.T, f *plugintest.File, author func(*layer.Encoder)) *program.Program {
	t.Helper()
	return encodeFor(t, &program.Limits{WorkgroupBytes: 32 << 10, MaxGroups: 65535}, f, author)
}

func encodeFor(t *testing.T, limits *program.Limits, f *plugintest.File, author func(*layer.Encoder)) *program.Program {
	t.Helper()
	h, p := f.Header(), facts()
	if err := layer.Plan(h, p, author); err != nil {
		t.Fatal(err)
	}
	weights, err := place.Weights(h, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	records, err := place.Records(h, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := layer.Encode(&program.EncodeRequest{Header: h, Plan: p, Limits: limits, Weights: weights, Records: records}, author)
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Validate(p, weights, records, prog, program.Bounds{Limits: limits, Chunk: 16, Outs: 2, Context: 128}); err != nil {
		t.Fatal(err)
	}
	return prog
}

// kernelsOf lists the kernels of a section's variant for n rows, by their files' names and choices.
func kernelsOf(p *program.Program, kind program.Kind, n uint32) []string {
	var out []string
	for _, s := range p.Sections {
		if s.Kind != kind {
			continue
		}
		for _, d := range s.Pick(n).Dispatches {
			name, _, _ := strings.Cut(p.Kernels[d.Kernel].Name, "[")
			out = append(out, name)
		}
	}
	return out
}

func want(t *testing.T, what string, have []string, want ...string) {
	t.Helper()
	if strings.Join(have, " ") != strings.Join(want, " ") {
		t.Errorf("%s: have %v, want %v", what, have, want)
	}
}

// A residual sum is made by the kernel before it. A norm is made by the kernels behind it on a software device, and on a GPU
// once for all of them.
func TestFusion(t *testing.T) {
	author := func(e *layer.Encoder) {
		x := e.Embed("embd", 1)
		l := e.Layer(0)
		x = l.Add(x, l.Linear(l.RMSNorm(x, "norm", 1e-5), hidden, "a"))
		finish(e, x)
	}
	p := encodeOn(t, software, author)
	want(t, "one token", kernelsOf(p, program.Kind_TRUNK, 1), "matvec.add.all.norm", "matvec.put.all.norm", "topk.softmax.plain")
	want(t, "experts of one token", kernelsOf(p, program.Kind_EXPERTS, 1), "expert_pair.silu.norm", "expert_down.add")
	want(t, "head", kernelsOf(p, program.Kind_HEAD, 1), "matvec.put.outs.norm")
	p = encode(t, author)
	want(t, "one token on a GPU", kernelsOf(p, program.Kind_TRUNK, 1), "rmsnorm.none.put.all.four", "matvec.add.all.staged", "rmsnorm.none.put.all.four", "matvec.put.all.staged", "topk.softmax.plain")
	want(t, "experts of one token on a GPU", kernelsOf(p, program.Kind_EXPERTS, 1), "expert_pair.silu.staged", "expert_matvec.staged", "moe_sum.add.four")
	want(t, "head on a GPU", kernelsOf(p, program.Kind_HEAD, 1), "rmsnorm.none.put.outs.four", "matvec.put.all.staged")
	want(t, "combine of one token", kernelsOf(p, program.Kind_COMBINE, 1))
	want(t, "many tokens", kernelsOf(p, program.Kind_TRUNK, 9), "rmsnorm.none.put.all.four", "matmul.add.shared", "rmsnorm.none.put.all.four", "matmul.put.shared", "topk.softmax.plain")
	want(t, "experts of many", kernelsOf(p, program.Kind_EXPERTS, 9), "expert_matmul_pair.silu.shared", "expert_matmul.shared")
	want(t, "combine of many", kernelsOf(p, program.Kind_COMBINE, 9), "moe_sum.add.four")
}

// What was read already, or computed before the residual was, can take none: the sum gets a kernel of its own.
func TestAddOfReadValue(t *testing.T) {
	p := encode(t, func(e *layer.Encoder) {
		x := e.Embed("embd", 1)
		l := e.Layer(0)
		y := l.Linear(x, hidden, "a")
		z := l.Linear(y, hidden, "a")
		finish(e, l.Add(l.Add(x, y), z))
	})
	want(t, "one token", kernelsOf(p, program.Kind_TRUNK, 1), "matvec.put.all.staged", "matvec.put.all.staged", "add", "add", "rmsnorm.none.put.all.four", "matvec.put.all.staged", "topk.softmax.plain")
}

// A stack of unlike types is one value, written by a dispatch per type.
func TestStackOfUnlikeTypes(t *testing.T) {
	p := encode(t, func(e *layer.Encoder) {
		x := e.Embed("embd", 1)
		l := e.Layer(0)
		y := l.Linear(x, 128, "a", "b", "c")
		if y.Width() != 128 {
			t.Errorf("have width %d, want 128", y.Width())
		}
		finish(e, l.Add(x, l.Linear(l.Linear(x, hidden, "b", "c"), hidden, "a")))
	})
	var stack []string
	for _, d := range p.Sections[0].Pick(1).Dispatches {
		if d.Label == "blk.0.a+b+c" {
			stack = append(stack, p.Kernels[d.Kernel].Name)
		}
	}
	if len(stack) != 2 || !strings.Contains(stack[0], "w=q4_0") || !strings.Contains(stack[1], "w=q8_0") {
		t.Errorf("have dispatches %v, want one of Q4_0 and one of Q8_0", stack)
	}
}

// Layers after the last one with experts belong to its combine; those before to its trunk.
func TestDenseLayersAround(t *testing.T) {
	p := encode(t, func(e *layer.Encoder) {
		x := e.Embed("embd", 1)
		l := e.Layer(0)
		x = l.Add(x, l.Experts(l.RMSNorm(x, "norm", 1e-5), router, routed))
		l = e.Layer(1)
		x = l.Add(x, l.FFN(l.RMSNorm(x, "norm", 1e-5), dense))
		e.Logits(e.FinalNorm(x, 1e-5, "final"), "embd")
	})
	want(t, "combine", kernelsOf(p, program.Kind_COMBINE, 1), "rmsnorm.none.put.all.four", "pair.silu.staged", "matvec.add.all.staged")
	want(t, "head", kernelsOf(p, program.Kind_HEAD, 1), "rmsnorm.none.put.outs.four", "matvec.put.all.staged")
}

// A norm that is added to a residual is made with the sum, and so is a factor on that; elsewhere they have kernels of their own.
func TestNormsOfResults(t *testing.T) {
	p := encode(t, func(e *layer.Encoder) {
		x := e.Embed("embd", 1)
		l := e.Layer(0)
		x = l.Add(x, l.RMSNorm(l.Linear(x, hidden, "a"), "norm", 1e-5))
		x = l.Scale(l.Add(x, l.RMSNorm(l.Linear(x, hidden, "a"), "norm", 1e-5)), "factor")
		finish(e, l.Scale(x, "factor"))
	})
	want(t, "one token", kernelsOf(p, program.Kind_TRUNK, 1), "matvec.put.all.staged", "rmsnorm.none.add.all.four", "matvec.put.all.staged", "rmsnorm.none.scaled.all.four",
		"scale", "rmsnorm.none.put.all.four", "matvec.put.all.staged", "topk.softmax.plain")
}

// Norms of one value that nothing comes between are computed at once for one token, three at most.
func TestNormsOfOneValue(t *testing.T) {
	p := encode(t, func(e *layer.Encoder) {
		x := e.Embed("embd", 1)
		l := e.Layer(0)
		x = l.Add(x, l.Linear(x, hidden, "a"))
		read := func(eps float64) *layer.Value { return l.Linear(l.RMSNorm(x, "norm", eps), hidden, "a") }
		y := l.Add(l.Add(read(1e-5), read(1e-5)), l.Add(read(1e-5), read(1e-5)))
		finish(e, l.Add(y, read(1e-6)))
	})
	want(t, "one token", normsOf(kernelsOf(p, program.Kind_TRUNK, 1)), "rmsnorm.two.put.all.four", "rmsnorm.none.put.all.four", "rmsnorm.none.put.all.four", "rmsnorm.none.put.all.four")
	for _, k := range normsOf(kernelsOf(p, program.Kind_TRUNK, 9)) {
		want(t, "many tokens", []string{k}, "rmsnorm.none.put.all.four")
	}
}

func normsOf(kernels []string) []string {
	return slices.DeleteFunc(kernels, func(k string) bool { return !strings.HasPrefix(k, "rmsnorm") })
}

// A soft cap is the head's own, and nobody else's.
func TestCappedLogits(t *testing.T) {
	for limit, head := range map[float64]string{0: "matvec.put.all.staged", 30: "matvec.cap.all.staged"} {
		p := encode(t, func(e *layer.Encoder) {
			l := e.Layer(1)
			x := e.Embed("embd", 1)
			x = l.Add(x, l.Experts(l.RMSNorm(x, "norm", 1e-5), router, routed))
			e.CappedLogits(e.FinalNorm(x, 1e-5, "final"), "embd", limit)
		})
		want(t, "head", kernelsOf(p, program.Kind_HEAD, 1), "rmsnorm.none.put.outs.four", head)
		want(t, "trunk", kernelsOf(p, program.Kind_TRUNK, 1), "rmsnorm.none.put.all.four", "matvec.put.all.staged", "topk.softmax.plain")
	}
}

// The kinds of attention: gates beside the queries, values from keys, a window.
func TestAttentionKinds(t *testing.T) {
	for _, c := range []struct {
		a      layer.Attention
		tensor string
		rows   int
		gate   []string
	}{
		{layer.Attention{}, "a", 64, nil},
		{layer.Attention{VNorm: true, Window: 8}, "a", 64, nil},
		{layer.Attention{KeyAsValue: true, Heads: 3}, "a", 64, nil},
		{layer.Attention{Gated: true, Heads: 4}, "gated", 160, []string{"gate.put"}},
	} {
		c.a.KVHeads, c.a.HeadDim, c.a.QNorm, c.a.KNorm, c.a.Scale = 1, 16, "q_norm", "k_norm", 1
		if c.a.Heads == 0 {
			c.a.Heads = 2
		}
		p := encode(t, func(e *layer.Encoder) {
			a := c.a
			a.Rope = e.RopeTable("r", 16, 1e4, "")
			x := e.Embed("embd", 1)
			l := e.Layer(0)
			y := l.Attention(l.Linear(x, c.rows, c.tensor), a)
			if y.Width() != 16*a.Heads {
				t.Errorf("%+v: have width %d", c.a, y.Width())
			}
			finish(e, l.Add(x, l.FFN(x, dense)))
		})
		list := append([]string{"matvec.put.all.staged", "heads.f16", "attn_split.f16.lanes", "attn_merge"}, c.gate...)
		want(t, "attention", kernelsOf(p, program.Kind_TRUNK, 1)[:len(list)], list...)
	}
}

// Every mistake of an author or a file is an error that names the tensor or layer.
func TestErrors(t *testing.T) {
	for name, test := range map[string]struct {
		author func(*layer.Encoder)
		want   string
	}{
		"no head":       {func(e *layer.Encoder) { e.Embed("embd", 1) }, "without Logits"},
		"no experts":    {func(e *layer.Encoder) { e.Logits(e.Embed("embd", 1), "embd") }, "no layer has routed experts"},
		"absent tensor": {func(e *layer.Encoder) { l := e.Layer(0); finish(e, l.Linear(e.Embed("embd", 1), 64, "x")) }, "tensor blk.0.x is missing"},
		"rows":          {func(e *layer.Encoder) { l := e.Layer(0); finish(e, l.Linear(e.Embed("embd", 1), 100, "a")) }, "tensor blk.0.a: have shape [64, 64], want [64, 100]"},
		"too many rows": {func(e *layer.Encoder) { l := e.Layer(0); finish(e, l.Linear(e.Embed("embd", 1), 32, "a")) }, "tensor blk.0.a: have shape [64, 64], want [64, 32]"},
		"stacked rows":  {func(e *layer.Encoder) { l := e.Layer(0); finish(e, l.Linear(e.Embed("embd", 1), 100, "a", "b")) }, "tensors blk.0.a, blk.0.b: have shapes [64, 64], [64, 32], want 100 rows in all"},
		"vector":        {func(e *layer.Encoder) { l := e.Layer(0); finish(e, l.RMSNorm(e.Embed("embd", 1), "router", 1)) }, "tensor blk.0.router: have shape [64, 4], want 64 values"},
		"embedding":     {func(e *layer.Encoder) { finish(e, e.Embed("blk.0.a", 1)) }, "tensor blk.0.a: have shape [64, 64], want [64, 96]"},
		"latent sizes": {func(e *layer.Encoder) {
			l, x := e.Layer(0), e.Embed("embd", 1)
			finish(e, l.Latent(x, x, layer.Latent{Heads: 2, Rank: 32, Nope: 24, Rot: 8, Value: 32}))
		}, "blk.0: latent attention: have 2 heads of 24 + 8 values over a latent of 32"},
		"latent rope": {func(e *layer.Encoder) {
			l, x := e.Layer(0), e.Embed("embd", 1)
			finish(e, l.Latent(x, x, layer.Latent{Heads: 2, Rank: 32, Nope: 32, Rot: 8, Value: 32}))
		}, "blk.0: latent attention: have rotations of 0 dims, want 8"},
		"latent rows": {func(e *layer.Encoder) {
			l, x := e.Layer(0), e.Embed("embd", 1)
			finish(e, l.Latent(x, x, layer.Latent{Heads: 2, Rank: 32, Nope: 32, Rot: 8, Value: 32, Rope: e.RopeTable("r", 8, 1e4, "")}))
		}, "blk.0: latent attention: have 64 values of q and 64 of kv, want 80 and at least 40"},
		"head matrix": {func(e *layer.Encoder) {
			l, x := e.Layer(0), e.Embed("embd", 1)
			q := l.Linear(x, 64, "a")
			finish(e, l.Latent(q, x, layer.Latent{Heads: 1, Rank: 32, Nope: 32, Rot: 32, Value: 32, KeyUp: "gate", ValueUp: "none", Rope: e.RopeTable("r", 32, 1e4, "")}))
		}, "tensor blk.0.gate: have shape [64, 32, 4], want [32, 32, 1]"},
		"odd rope": {func(e *layer.Encoder) { e.RopeTable("r", 7, 1e4, ""); finish(e, e.Embed("embd", 1)) }, "rope r: have 7 rotated dims"},
		"expert shape": {func(e *layer.Encoder) {
			l := e.Layer(0)
			bad := routed
			bad.FF = 64
			finish(e, l.Experts(e.Embed("embd", 1), router, bad))
		}, "tensor blk.0.gate: have shape [64, 32, 4], want [64, 64, 4]"},
		"conv": {func(e *layer.Encoder) {
			l := e.Layer(0)
			finish(e, l.ShortConv(e.Embed("embd", 1), "norm", 1))
		}, "blk.0: short convolution"},
		"conv taps": {func(e *layer.Encoder) {
			l := e.Layer(0)
			finish(e, l.Add(e.Embed("embd", 1), l.ShortConv(l.Linear(e.Embed("embd", 1), 96, "a", "b"), "gate", 3)))
		}, "tensor blk.0.gate: have shape [64, 32, 4], want [3, …]"},
		"heads": {func(e *layer.Encoder) {
			l := e.Layer(0)
			finish(e, l.Attention(e.Embed("embd", 1), layer.Attention{Heads: 3, KVHeads: 2, HeadDim: 16}))
		}, "blk.0: attention: have 3 heads, 2 KV heads"},
		"attention rows": {func(e *layer.Encoder) {
			l := e.Layer(0)
			finish(e, l.Attention(e.Embed("embd", 1), layer.Attention{Heads: 2, KVHeads: 1, HeadDim: 16, Gated: true}))
		}, "blk.0: attention: have 64 values of q | k | v, want 96"},
		"gate": {func(e *layer.Encoder) {
			l := e.Layer(0)
			x := e.Embed("embd", 1)
			finish(e, l.Gate(x, l.Linear(x, 32, "b"), layer.Gate{Width: 32, Offset: 31}))
		}, "blk.0: gate: have 64 values in groups of 32, gates from 31"},
		"gate of one value each": {func(e *layer.Encoder) {
			l := e.Layer(0)
			x := e.Embed("embd", 1)
			finish(e, l.Gate(x, l.Linear(x, 32, "b"), layer.Gate{Width: 16, Each: true}))
		}, "want whole groups, and gates within 32 values"},
		"factor": {func(e *layer.Encoder) { l := e.Layer(0); finish(e, l.Scale(e.Embed("embd", 1), "norm")) }, "tensor blk.0.norm: have shape [64], want 1 values"},
	} {
		t.Run(name, func(t *testing.T) {
			err := layer.Plan(file().Header(), facts(), test.author)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("have error %v, want one with %q", err, test.want)
			}
		})
	}
}

// One cause is one error: a wrong key is named once, not for each layer and regime, and what follows from it isn't named.
func TestOneError(t *testing.T) {
	p := facts()
	p.Model.TopK = 5
	err := layer.Plan(file().Header(), p, func(e *layer.Encoder) {
		x := e.Embed("embd", 1)
		for i := range 2 {
			l := e.Layer(i)
			x = l.Add(x, l.Experts(x, router, routed))
		}
		e.Logits(e.FinalNorm(x, 1e-5, "final"), "embd")
	})
	if have := strings.Split(fmt.Sprint(err), "\n"); len(have) != 1 || !strings.Contains(have[0], "key test.expert_used_count: have 5") {
		t.Errorf("have %q, want one error", have)
	}
}

// A window over the whole context is none: its cache is no ring.
func TestWideWindow(t *testing.T) {
	for window, class := range map[int]program.Class{127: program.Class_RING, 128: program.Class_KV, math.MaxInt32: program.Class_KV} {
		p := encode(t, func(e *layer.Encoder) {
			l, x := e.Layer(0), e.Embed("embd", 1)
			l.Attention(l.Linear(x, 64, "a"), layer.Attention{Heads: 2, KVHeads: 1, HeadDim: 16, QNorm: "q_norm", KNorm: "k_norm", Scale: 1,
				Rope: e.RopeTable("r", 16, 1e4, ""), Window: window})
			finish(e, l.Add(x, l.FFN(x, dense)))
		})
		i := slices.IndexFunc(p.Buffers, func(b *program.Buffer) bool { return b.Name == "blk.0.k_cache" })
		if have := p.Buffers[i].Class; have != class {
			t.Errorf("window %d of 128: have class %v, want %v", window, have, class)
		}
	}
}

// An Encode that asks for something else the second time is told so.
func TestChangingItsMind(t *testing.T) {
	h, p := file().Header(), facts()
	author := func(tensor string) func(*layer.Encoder) {
		return func(e *layer.Encoder) { l := e.Layer(0); finish(e, l.Linear(e.Embed("embd", 1), hidden, tensor)) }
	}
	if err := layer.Plan(h, p, author("a")); err != nil {
		t.Fatal(err)
	}
	weights, err := place.Weights(h, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	records, err := place.Records(h, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	req := &program.EncodeRequest{Header: h, Plan: p, Limits: &program.Limits{}, Weights: weights, Records: records}
	if _, err := layer.Encode(req, func(e *layer.Encoder) {
		l := e.Layer(0)
		finish(e, l.Linear(e.Embed("embd", 1), 96, "a", "b"))
	}); err == nil || !strings.Contains(err.Error(), "not in the plan") {
		t.Errorf("have error %v, want one about the plan", err)
	}
}
