package kerneltest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// decodeShape is a model's attention of one token.
type decodeShape struct {
	name             string
	heads, kvHeads   int
	keyDim, valueDim int
	window           int
	kv               string
	latent           bool
	contexts         []int
}

var decodeShapes = []decodeShape{
	{"gemma4-sliding", 16, 8, 256, 256, 1024, "f16", false, []int{64, 512, 8192}},
	{"gemma4-full", 16, 2, 512, 512, 0, "f16", false, []int{64, 512, 8192}},
	{"qwen35moe", 16, 2, 256, 256, 0, "f16", false, []int{64, 512, 8192}},
	{"lfm2moe", 32, 8, 64, 64, 0, "f16", false, []int{64, 512, 8192}},
	{"bailingmoe3", 32, 1, 576, 512, 0, "f32", true, []int{64, 512, 8192}},
}

// decodeVariant is a shape of attn_split, and of attn_merge after it.
type decodeVariant struct {
	name         string
	split, merge map[string]uint32
	choice       string
	cuts, parts  int
}

// variants are what kernels.NewAttnSplit chooses, that with one thing changed, and what it chooses for a software device.
func (s decodeShape) variants(b *testing.B) []decodeVariant {
	chosen := func(name string, cpu bool) decodeVariant {
		l := &program.Limits{Cpu: cpu, WorkgroupBytes: 48 << 10}
		a, err := kernels.NewAttnSplit(l, s.heads, s.kvHeads, s.keyDim)
		if s.latent {
			a, err = kernels.NewLatentSplit(l, s.heads, s.keyDim, s.valueDim)
		}
		if err != nil {
			b.Fatal(err)
		}
		return decodeVariant{name, a.Params, a.Merge, a.Choice, int(a.Params["CUTS"]), a.Parts}
	}
	base := chosen("chosen", false)
	out := []decodeVariant{base}
	change := func(name string, do func(p, m map[string]uint32)) {
		v := decodeVariant{name, maps.Clone(base.split), maps.Clone(base.merge), base.choice, 0, 0}
		do(v.split, v.merge)
		p := v.split
		p["KEYS"], p["W"] = p["SLOTS"]*p["B"], p["SLOTS"]*p["KL"]
		p["ROOM"] = max(p["SLOTS"]*p["B"]*p["G"]*(p["KL"]+4), 8*(p["W"]+4))
		v.merge["KEYS"], v.merge["MOST"] = p["KEYS"], p["MOST"]
		columns := v.merge["W"] / v.merge["RG"]
		v.merge["PARTS"] = (uint32(s.valueDim)/2 + columns - 1) / columns
		v.cuts, v.parts = int(p["CUTS"]), int(v.merge["PARTS"])
		out = append(out, v)
	}
	change("B=1", func(p, _ map[string]uint32) { p["B"] = 1 })
	change("B=2", func(p, _ map[string]uint32) { p["B"] = 2 })
	change("B=4", func(p, _ map[string]uint32) { p["B"] = 4 })
	change("half-W", func(p, _ map[string]uint32) { p["SLOTS"] = max(1, p["SLOTS"]/2) })
	change("quarter-W", func(p, _ map[string]uint32) { p["SLOTS"] = max(1, p["SLOTS"]/4) })
	change("MOST=64", func(p, _ map[string]uint32) { p["MOST"] = 64 })
	change("MOST=32", func(p, _ map[string]uint32) { p["MOST"] = 32 })
	change("half-G", func(p, _ map[string]uint32) {
		if p["G"]%2 == 0 {
			p["G"], p["CUTS"] = p["G"]/2, p["CUTS"]*2
		}
	})
	change("double-G", func(p, _ map[string]uint32) {
		if p["CUTS"]%2 == 0 && p["G"] < 8 {
			p["G"], p["CUTS"] = p["G"]*2, p["CUTS"]/2
		}
	})
	change("merge64x1", func(_, m map[string]uint32) { m["W"], m["RG"] = 64, 1 })
	change("merge128x4", func(_, m map[string]uint32) { m["W"], m["RG"] = 128, 4 })
	change("merge256x4", func(_, m map[string]uint32) { m["W"], m["RG"] = 256, 4 })
	change("merge256x16", func(_, m map[string]uint32) { m["W"], m["RG"] = 256, 16 })
	return append(out, chosen("software", true))
}

// cases are both dispatches of a variant at a context; kc and vc are the caches.
func (s decodeShape) cases(b *testing.B, v decodeVariant, context int, kc, vc *program.Memory) (split, merge kerneltest.Case) {
	seen, window := context, 0
	if s.window > 0 && s.window < context {
		seen, window = s.window, s.window
	}
	step := program.StepUniform{T: 1, Pos0: uint32(context - 1), S: uint32(context), Chunk: 1}
	split = build(b, kernels.Spec{Name: "attn_split", Choices: map[string]string{"kv": s.kv, "split": v.choice}, Params: v.split})
	split.Step = step
	runs := runsOf(split, seen)
	split.Constants = map[string]any{"kv_heads": uint32(s.kvHeads), "window": uint32(window), "scale": 0.0625}
	part := kerneltest.F32(make([]float64, runs*s.heads*(s.valueDim+2)))
	split.Memory = map[string]*program.Memory{"q": kerneltest.F32(wave(s.heads * s.keyDim)), "kc": kc, "vc": vc, "part": part}
	split.Grid = [3]uint32{uint32(s.kvHeads * v.cuts), uint32(runs), 1}
	merge = build(b, kernels.Spec{Name: "attn_merge", Params: v.merge})
	merge.Step = step
	merge.Constants = map[string]any{"heads": uint32(s.heads), "window": uint32(window)}
	merge.Memory = map[string]*program.Memory{"part": part, "y": kerneltest.Output(program.Elem_F32, s.heads*s.valueDim)}
	merge.Grid = [3]uint32{uint32(s.heads), uint32(v.parts), 1}
	return split, merge
}

// wave is n values of some size, fast.
func wave(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(i*37%64)/64 - 0.5
	}
	return out
}

// BenchmarkDecodeAttn is one token's attention, as chosen and with one thing changed: both dispatches as a turn, and over short contexts
// each by itself.
func BenchmarkDecodeAttn(b *testing.B) {
	for _, s := range decodeShapes {
		variants := s.variants(b)
		for _, context := range s.contexts {
			rows := context
			if s.window > 0 {
				rows = min(context, s.window+1)
			}
			kc := &program.Memory{Elem: elem(s.kv), Values: wave(rows * s.kvHeads * s.keyDim)}
			vc := &program.Memory{Elem: elem(s.kv), Values: kc.Values}
			for _, v := range variants {
				name := fmt.Sprintf("%s/S=%d/%s", s.name, context, v.name)
				split, merge := s.cases(b, v, context, kc, vc)
				b.Run(name+"/both", func(b *testing.B) { bench(b, split, merge) })
				if context > 512 || context < 512 && v.name != "chosen" && v.name != "software" {
					continue
				}
				b.Run(name+"/split", func(b *testing.B) { bench(b, split) })
				b.Run(name+"/merge", func(b *testing.B) { bench(b, merge) })
			}
		}
	}
}

// BenchmarkDecodeDelta is one token's recurrence with 32 value heads and 16 key heads of 128: qwen35moe's, and bailingmoe3's kind. Its columns are
// shared, or not.
func BenchmarkDecodeDelta(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, decay := range []string{"head", "channel"} {
		for _, shape := range [][3]uint32{{1, 32, 0}, {1, 16, 0}, {1, 64, 0}, {1, 16, 1}, {1, 32, 1}, {1, 64, 1}} {
			b.Run(fmt.Sprintf("%s/columns=%d/shared=%d", decay, shape[1], shape[2]), func(b *testing.B) {
				bench(b, deltaOf(r, fresh(build(b, deltaSpec(decay, 128, shape))), 1, 16, 32, 0))
			})
		}
	}
}
