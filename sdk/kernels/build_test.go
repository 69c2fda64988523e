package kernels

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// allChoices is every choice of each kernel of the library.
var allChoices = map[string]map[string][]string{
	"matvec":      {"rows": {"all", "outs"}, "x": {"plain", "norm", "staged"}, "out": {"put", "add", "cap"}},
	"pair":        {"x": {"plain", "norm", "staged"}, "act": {"silu", "gelu"}},
	"expert_pair": {"x": {"plain", "norm", "staged"}, "act": {"silu", "gelu"}},
	"expert_down": {"out": {"put", "add"}},
	"heads":       {"kv": {"f16", "f32"}},
	"attn_split":  {"kv": {"f16", "f32"}, "split": {"keys", "lanes"}},
	"rmsnorm":     {"more": {"none", "one", "two"}, "value": {"one", "four"}, "rows": {"all", "outs"}, "out": {"put", "add", "scaled"}},
	"gate":        {"out": {"put", "add"}},
	"topk":        {"score": {"sigmoid", "softmax"}, "weight": {"plain", "scaled"}},

	"matmul":             {"tile": {"lanes", "shared"}, "out": {"put", "add"}},
	"matmul_pair":        {"tile": {"lanes", "shared"}, "act": {"silu", "gelu"}},
	"expert_matmul":      {"tile": {"lanes", "shared"}},
	"expert_matmul_pair": {"tile": {"lanes", "shared"}, "act": {"silu", "gelu"}},
	"moe_sum":            {"value": {"one", "four"}, "out": {"put", "add"}},
	"attn_chunk":         {"kv": {"f16", "f32"}, "chunk": {"lanes", "shared"}},
	"delta_rule":         {"decay": {"head", "channel"}},
	"matmul_heads":       {"tile": {"lanes", "shared"}},
	"expert_matvec":      {"x": {"plain", "staged"}},
	"matvec_heads":       {"x": {"plain", "staged"}},
}

// allSlots is every weight slot of each kernel.
var allSlots = map[string][]string{"matvec": {"w"}, "pair": {"gate", "up"}, "expert_pair": {"gate", "up"}, "expert_down": {"down"}, "expert_matvec": {"down"},
	"matvec_heads": {"w"}, "matmul_heads": {"w"}, "matmul": {"w"}, "matmul_pair": {"gate", "up"}, "expert_matmul": {"down"}, "expert_matmul_pair": {"gate", "up"}}

// specs is every form of a kernel, apart from params, with weights of type t.
func specs(name string, t ggml.Type) []Spec {
	out := []Spec{{Name: name, Choices: map[string]string{}, Types: map[string]ggml.Type{}}}
	for what, values := range allChoices[name] {
		var next []Spec
		for _, s := range out {
			for _, v := range values {
				c := map[string]string{what: v}
				for k, v := range s.Choices {
					c[k] = v
				}
				next = append(next, Spec{Name: name, Choices: c, Types: s.Types})
			}
		}
		out = next
	}
	for _, slot := range allSlots[name] {
		out[0].Types[slot] = t // the map is shared
	}
	return out
}

// TestBuild builds every form of every kernel, and holds the WGSL against what is declared of it.
func TestBuild(t *testing.T) {
	for _, name := range Names() {
		for _, s := range specs(name, ggml.Q6_K) {
			k, err := Build(s)
			if err != nil {
				t.Fatal(err)
			}
			d, err := program.ParseWGSL(k.Wgsl)
			if err != nil {
				t.Fatal(err)
			}
			for _, bad := range []string{"override ", "//!", "\nenable ", "num_workgroups", "arrayLength"} {
				if strings.Contains(k.Wgsl, bad) {
					t.Errorf("%s: its WGSL has %q", k.Name, bad)
				}
			}
			if d.Workgroup != [3]uint32{k.Params["W"], 1, 1} {
				t.Errorf("%s: have workgroup %v, want W = %d", k.Name, d.Workgroup, k.Params["W"])
			}
			var names []string
			for _, s := range k.Slots {
				names = append(names, s.Name)
			}
			if slices.Sort(names); len(slices.Compact(names)) != len(k.Slots) {
				t.Errorf("%s: two variables have one name: %v", k.Name, names)
			}
			if Ref(k.Ref) == nil {
				t.Errorf("%s: no reference", k.Name)
			}
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	q4 := map[string]ggml.Type{"down": ggml.Q4_0}
	put := map[string]string{"out": "put"}
	for _, c := range []struct {
		name string
		spec Spec
		want string
	}{
		{"no such kernel", Spec{Name: "nothing"}, "nothing.wgsl"},
		{"no such param", Spec{Name: "add", Params: map[string]uint32{"Q": 1}}, "no override constant Q"},
		{"no choice", Spec{Name: "expert_down", Types: q4}, `have choice "", want one of [put add]`},
		{"bad choice", Spec{Name: "expert_down", Types: q4, Choices: map[string]string{"out": "set"}}, `have choice "set"`},
		{"no type", Spec{Name: "expert_down", Choices: put}, "no type given for weight slot down"},
		{"type without form", Spec{Name: "expert_down", Choices: put, Types: map[string]ggml.Type{"down": ggml.IQ1_S}}, "no kernel reads ggml type IQ1_S"},
	} {
		if _, err := Build(c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: have error %v, want %q in it", c.name, err, c.want)
		}
	}
}

// TestBuildFrom builds a file of a plugin's own, which includes the library's.
func TestBuildFrom(t *testing.T) {
	files := func(main string) fstest.MapFS {
		return fstest.MapFS{"mine.wgsl": {Data: []byte(main)}, "loop.wgsl": {Data: []byte("//!include loop.wgsl\n")}, "lib/step.wgsl": {Data: []byte("// mine\n")}, "filled.wgsl": {Data: []byte("// have $of\n")}}
	}
	const body = `//!include lib/step.wgsl
//!include filled.wgsl of two words
//!include lib/order.wgsl
override N: u32 = 7u;
@group(0) @binding(9) var<storage, read> bank: array<vec4<u32>>;
@group(0) @binding(9) var<storage, read_write> y: array<u32>;
//!type a from bank
//!type b from bank
@compute @workgroup_size(N) fn main() {}
`
	k, err := BuildFrom(files(body), Spec{Name: "mine", Params: map[string]uint32{"N": 8}, Types: map[string]ggml.Type{"a": ggml.F16, "b": ggml.Q8_0}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"// mine", "// have two words", "fn order_key", "const N: u32 = 8u;", "@binding(1) var<storage, read_write> y", "fn a_dot", "fn b_load", "bank[p.x"} {
		if !strings.Contains(k.Wgsl, want) {
			t.Errorf("have no %q in\n%s", want, k.Wgsl)
		}
	}
	if want := "mine[a=f16 b=q8_0 N=8]"; k.Name != want || k.Params["N"] != 8 || k.Types["b"] != uint32(ggml.Q8_0) {
		t.Errorf("have %v, want %s", k, want)
	}
	for _, c := range []struct{ line, want string }{
		{"//!include loop.wgsl", "deeper than 8"},
		{"//!include lib/none.wgsl", "none.wgsl"},
		{"//!includes x", "not a directive"},
		{"//!include", "not a directive"},
		{"//!include filled.wgsl of", "not a directive"},
		{"//!include filled.wgsl on x", "has no $on"},
		{"//!include none.wgsl of x", "none.wgsl"},
		{"//!", "not a directive"},
		{"//!type a of bank", "not a directive"},
		{"//!choose x", "not a directive"},
	} {
		if k, err := BuildFrom(files(c.line+"\n"), Spec{Name: "mine"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: have %v, error %v, want %q in it", c.line, k, err, c.want)
		}
	}
}

func ExampleSpec_String() {
	fmt.Println(Spec{Name: "matvec", Choices: map[string]string{"x": "norm", "rows": "all", "out": "put"},
		Types: map[string]ggml.Type{"w": ggml.Q4_0}, Params: map[string]uint32{"W": 64}})
	// Output: matvec.put.all.norm[w=q4_0 W=64]
}

func TestRepeat(t *testing.T) {
	params := map[string]uint32{"R": 2, "K": 2, "N": maxRepeats + 1, "NONE": 0}
	for _, c := range []struct{ src, want string }{
		{"a\n  //!each r R: x$r = $ru;\nb", "a\nx0 = 0u;\nx1 = 1u;\nb"},
		{"//!each k K\n{\n//!each r R: w$k_$r;\n}\n//!end\nb", "{\nw0_0;\nw0_1;\n}\n{\nw1_0;\nw1_1;\n}\nb"},
		{"a\n//!each r NONE: x$r\nb", "a\nb"},
		{"//!each m in gate up: $m_$m;", "gate_gate;\nup_up;"},
		{"//!each m at in gate c.gate up at\n//!each r R: $m$r($at);\n//!end", "gate0(c.gate);\ngate1(c.gate);\nup0(at);\nup1(at);"},
	} {
		if have, err := repeat(c.src, params); err != nil || have != c.want {
			t.Errorf("%q: have %q and error %v, want %q", c.src, have, err, c.want)
		}
	}
	for src, want := range map[string]string{"//!each r R\nx": "no //!end", "//!each r X: x": "param of 0", "//!each r N: x": "at most", "//!each m at in a b c: x": "have 3 words"} {
		if _, err := repeat(src, params); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: have error %v, want %q in it", src, err, want)
		}
	}
}
