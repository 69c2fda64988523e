package kerneltest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
	"google.golang.org/protobuf/proto"
)

// TestIterations counts loop passes on the GPU, in a copy of each kernel that adds one at each loop's head, and wants what
// kernels.Iterations says.
func TestIterations(t *testing.T) {
	r := random(t)
	covered := map[string]bool{}
	for _, c := range countedCases(t, r) {
		covered[c.Kernel.Ref] = true
		t.Run(c.Kernel.Name, func(t *testing.T) {
			consts, err := kerneltest.Constants(c)
			if err != nil {
				t.Fatal(err)
			}
			want, err := kernels.Iterations(c.Kernel, c.Step, consts)
			if err != nil {
				t.Fatal(err)
			}
			if have := countPasses(t, c); have != want {
				t.Errorf("have %d loop passes, Iterations says %d\n%s", have, want, c)
			}
		})
	}
	for _, name := range kernels.Names() {
		if !covered[name] {
			t.Errorf("kernel %s: no case counts its loops", name)
		}
	}
}

// countedCases has cases of every kernel whose first invocation runs each of its loops to the end.
func countedCases(t *testing.T, r *rand.Rand) []kerneltest.Case {
	var out []kerneltest.Case
	mk := func(name string, params map[string]uint32, choices ...string) kerneltest.Case {
		s := kernels.Spec{Name: name, Params: params, Choices: map[string]string{}, Types: map[string]ggml.Type{}}
		for i := 0; i < len(choices); i += 2 {
			s.Choices[choices[i]] = choices[i+1]
		}
		for _, slot := range map[string][]string{"matvec": {"w"}, "pair": {"gate", "up"}, "expert_pair": {"gate", "up"}, "expert_down": {"down"}, "expert_matvec": {"down"}}[name] {
			s.Types[slot] = ggml.Q4_0
		}
		return build(t, s)
	}
	for i := range 2 {
		s := pick(r, fewSplits...)
		full := 3 + 5*r.IntN(4) // the shape whose last workgroup is full
		x := pick(r, ways...)
		out = append(out,
			matvecCase(r, mk("matvec", s.params(), "rows", "all", "x", x, "out", "put"), s, full),
			pairCase(r, mk("pair", s.pairParams(), "x", x, "act", "silu"), s, full),
			expertPairCase(r, mk("expert_pair", s.pairParams(), "x", x, "act", "gelu"), s, full),
			expertMatvecCase(r, mk("expert_matvec", s.params(), "x", []string{"plain", "staged"}[i]), s, full),
			expertDownCase(r, mk("expert_down", s.params(), "out", "add"), s, full))
		hd, g, w := pick[uint32](r, 16, 64, 80), pick[uint32](r, 1, 3, 8), pick(r, widths...)
		out = append(out,
			headsCase(r, mk("heads", map[string]uint32{"HD": hd, "ROT": pick(r, hd, hd/4*2), "W": w}, "kv", "f16"), "f16", 6+i),
			splitCase(r, mk("attn_split", map[string]uint32{"HD": hd, "VD": hd - 8*uint32(i), "VROW": hd, "G": g, "CUTS": 1 + uint32(i), "GHD": g * hd, "GKEYS": g * 128, "W": w, "LS": min(w, []uint32{1, 8}[i])}, "kv", "f32", "split", "keys"), "f32", 2+3*i),
			splitCase(r, build(t, lanesOf{hd: max(64, hd), vd: max(64, hd), g: g, cuts: 1, slots: 1 + 3*uint32(i), b: 2, most: uint32(7 * i)}.spec("f16")), "f16", 2+3*i),
			mergeCase(r, mk("attn_merge", map[string]uint32{"HD": hd, "W": w, "PARTS": uint32(1 + i), "RG": 1 + 3*uint32(i), "MOST": uint32(50 * i)}), 4+5*i))
		e, k := uint32(512), pick[uint32](r, 1, 3, 8)
		out = append(out,
			countedTopK(topKCase(r, mk("topk", map[string]uint32{"E": e, "K": k, "GROUPS": []uint32{1, 32}[i], "USED": []uint32{1, 8}[i], "W": w},
				"score", []string{"sigmoid", "softmax"}[i], "weight", "plain"), "normal")),
			shortConvCase(r, mk("shortconv", map[string]uint32{"TAPS": uint32(3 + i), "W": w}), 1+r.IntN(9)),
			countedResolve(resolveCase(r, mk("resolve", map[string]uint32{"W": w}))),
			addCase(r, mk("add", nil), 50, 2),
			convCase(r, mk("conv", map[string]uint32{"TAPS": uint32(3 + i), "W": 64, "LANES": uint32(1 + 7*i)}), 8*(1+r.IntN(4))), // whole runs
			deltaCase(r, build(t, deltaSpec("head", 96, deltaShapes[i])), 1+r.IntN(30)),
			deltaCase(r, build(t, deltaSpec("channel", 32, deltaShapes[i])), 1+r.IntN(30)),
			gatedNormCase(r, mk("gated_norm", map[string]uint32{"W": w}), 96),
			gateCase(r, mk("gate", nil, "out", "put"), i),
			scaleCase(r, mk("scale", nil), 50, 2),
			rmsNormCase(r, mk("rmsnorm", map[string]uint32{"W": w}, "rows", []string{"all", "outs"}[i], "out", "add", "value", []string{"one", "four"}[i], "more", []string{"none", "two"}[i]), 4+4*r.IntN(125), 1))
		out = append(out, countedTopN(t, r, []*program.Limits{{Cpu: true}, {}}[i])...)
	}
	return append(append(out, countedChunk(t, r)...), countedLatent(t, r)...)
}

// countedTopK gives the first invocation the best experts: it offers anew in each round.
func countedTopK(c kerneltest.Case) kerneltest.Case {
	for i := range c.Memory["r"].Values {
		if i%int(c.Kernel.Params["E"])%int(c.Kernel.Params["W"]) == 0 {
			c.Memory["r"].Values[i] += 20
		}
	}
	if bias := c.Memory["bias"]; bias != nil {
		clear(bias.Values)
	}
	return c
}

// countedResolve is a token that has not stopped, and does now.
func countedResolve(c kerneltest.Case) kerneltest.Case {
	c.Memory["token"].Values[0] = 0
	c.Memory["residency"].Values[int(c.Memory["picks"].Values[0])%len(c.Memory["residency"].Values)] = 0xFFFFFFFF
	return c
}

// countedTopN has logits whose best are all the first invocation's, the later the better: each goes into its queue, and it
// gives all N. N is such that one queue is enough; TestTopNLoops has the others.
func countedTopN(t *testing.T, r *rand.Rand, limits *program.Limits) []kerneltest.Case {
	top, err := kernels.NewTopN(limits, uint32(1300+20*r.IntN(25)), 4)
	if err != nil {
		t.Fatal(err)
	}
	w := int(top.First.Params["W"])
	mask := kerneltest.U32(make([]uint32, (top.Vocab+31)/32)...)
	top.Chunk = 1100 // an invocation has at least 4 tokens of it
	l := normal(r, int(top.Vocab))
	for id := range l {
		if id%1100%w == 0 {
			l[id] = 100 + float64(id)
		}
	}
	first, _ := topNCases(t, top, kerneltest.F32(l), mask, 1)
	top.Chunk = 4 // and here 4 candidates
	_, merge := topNCases(t, top, kerneltest.F32(l), mask, 1)
	for i, id := range merge.Memory["ids"].Values {
		l[int(id)] = 0
		if i%w == 0 {
			l[int(id)] = 100 + float64(i)
		}
	}
	merge.Memory["logits"] = kerneltest.F32(l)
	return []kerneltest.Case{first, merge}
}

// TestTopNLoops: where queues are filled again, Iterations is an upper bound.
func TestTopNLoops(t *testing.T) {
	r := random(t)
	for _, limits := range []*program.Limits{{Cpu: true}, {}} {
		top, err := kernels.NewTopN(limits, 3000, kernels.MaxTopN)
		if err != nil {
			t.Fatal(err)
		}
		l := normal(r, 3000)
		for id := range l {
			if id%int(top.First.Params["W"]) == 0 { // the first invocation has the best, in falling order
				l[id] = 5000 - float64(id)
			}
		}
		first, merge := topNCases(t, top, kerneltest.F32(l), kerneltest.U32(make([]uint32, 94)...), 1)
		for _, c := range []kerneltest.Case{first, merge} {
			most, err := kernels.Iterations(c.Kernel, c.Step, top.Constants())
			if err != nil {
				t.Fatal(err)
			}
			if have := countPasses(t, c); have > most {
				t.Errorf("%s: have %d loop passes, Iterations says at most %d", c.Kernel.Name, have, most)
			}
		}
	}
}

var (
	lineComment = regexp.MustCompile(`//[^\n]*`)
	entryPoint  = regexp.MustCompile(`(@compute @workgroup_size\(W\)\s*fn main)\((.*)\) \{`)
	attribute   = regexp.MustCompile(`@builtin\(\w+\) `)
	parameter   = regexp.MustCompile(`(\w+):`)
)

// countPasses runs c with its loops counted and returns the most of an invocation.
func countPasses(t *testing.T, c kerneltest.Case) uint64 {
	t.Helper()
	k := proto.CloneOf(c.Kernel)
	src := countLoops(t, lineComment.ReplaceAllString(k.Wgsl, ""))
	m := entryPoint.FindStringSubmatch(src)
	if m == nil {
		t.Fatalf("%s: no entry point as expected", k.Name)
	}
	var args []string
	for _, p := range parameter.FindAllStringSubmatch(m[2], -1) {
		args = append(args, p[1])
	}
	src = strings.Replace(src, m[0], "fn counted("+attribute.ReplaceAllString(m[2], "")+") {", 1)
	k.Wgsl = src + fmt.Sprintf(`
var<private> passes: u32;
@group(0) @binding(%d) var<storage, read_write> most: atomic<u32>;
%s(%s) { counted(%s); atomicMax(&most, passes); }
`, len(k.Slots), m[1], m[2], strings.Join(args, ", "))
	k.Slots = append(k.Slots, &program.Slot{Name: "most", Access: program.Access_READ_WRITE})
	c.Kernel = k
	c.Memory = maps.Clone(c.Memory)
	c.Memory["most"] = kerneltest.U32(0)
	return uint64(kerneltest.Dispatch(t, c)["most"].Values[0])
}

// countLoops adds a count before each loop, for the pass that ends it, and at the head of its body.
func countLoops(t *testing.T, src string) string {
	parts := regexp.MustCompile(`\bfor \(`).Split(src, -1)
	for i, p := range parts[1:] {
		depth, end := 1, 0
		for depth > 0 {
			depth += strings.Count(p[end:end+1], "(") - strings.Count(p[end:end+1], ")")
			end++
		}
		if !strings.HasPrefix(p[end:], " {") {
			t.Fatalf("a loop without a body: %.60s", p)
		}
		parts[i+1] = "passes += 1u; for (" + p[:end] + " { passes += 1u; " + p[end+2:]
	}
	return strings.Join(parts, "")
}

func TestCountLoops(t *testing.T) {
	have := countLoops(t, "a for (var i = 0u; i < (b + c); i++) { for (;;) { x } }")
	const want = "a passes += 1u; for (var i = 0u; i < (b + c); i++) { passes += 1u;  passes += 1u; for (;;) { passes += 1u;  x } }"
	if have != want {
		t.Errorf("have %q\nwant %q", have, want)
	}
}

// TestKernelsUseForOnly: countLoops and the loop formulas know no other loop.
func TestKernelsUseForOnly(t *testing.T) {
	for _, c := range countedCases(t, random(t)) {
		src := lineComment.ReplaceAllString(c.Kernel.Wgsl, "")
		if words := regexp.MustCompile(`\b(while|loop)\b`).FindAllString(src, -1); len(words) > 0 {
			t.Errorf("%s: has %v", c.Kernel.Name, slices.Compact(words))
		}
	}
}
