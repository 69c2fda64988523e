package kerneltest_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// chunkForms are the limits by which sdk/kernels picks a form of attn_chunk.
var chunkForms = []*program.Limits{{Cpu: true, LoopLimit: 65535}, {WorkgroupBytes: 48 << 10}, {WorkgroupBytes: 16 << 10}}

// attnChunk builds attn_chunk with runs of run positions; with vd for one latent.
func attnChunk(t *testing.T, l *program.Limits, heads, kvHeads, hd, vd, run int, kv string) (kernels.AttnChunk, kerneltest.Case) {
	a, err := kernels.NewAttnChunk(l, heads, kvHeads, hd)
	if vd > 0 {
		a, err = kernels.NewLatentChunk(l, heads, hd, vd)
	}
	if err != nil {
		t.Fatal(err)
	}
	if run > 0 {
		a.Run, a.Params = run, maps.Clone(a.Params)
		a.Params["RUN"] = uint32(run)
	}
	c := build(t, kernels.Spec{Name: "attn_chunk", Choices: map[string]string{"kv": kv, "chunk": a.Choice}, Params: a.Params})
	return a, c
}

func TestAttnChunk(t *testing.T) {
	r := random(t)
	for i, x := range []struct {
		form                        int
		heads, kvHeads, hd, vd, run int
		kv                          string
	}{
		{0, 4, 1, 64, 0, 0, "f16"}, {0, 6, 2, 80, 0, 64, "f32"}, {0, 80, 1, 16, 0, 32, "f16"}, {0, 4, 2, 256, 0, 128, "f16"},
		{1, 4, 1, 64, 0, 0, "f16"}, {1, 6, 2, 136, 0, 64, "f32"}, {1, 80, 1, 16, 0, 32, "f16"},
		{2, 6, 2, 80, 0, 64, "f32"}, {2, 8, 1, 512, 0, 64, "f16"},
		{0, 3, 1, 96, 64, 64, "f32"}, {0, 32, 1, 576, 512, 0, "f32"}, {1, 5, 1, 104, 72, 64, "f32"}, {1, 32, 1, 576, 512, 0, "f32"},
	} {
		if x.form == 1 && x.vd == 512 && gputest.Open(t).Limits().CPU {
			continue // a minute to compile on a software device, which has a form of its own
		}
		a, c := attnChunk(t, chunkForms[x.form], x.heads, x.kvHeads, x.hd, x.vd, x.run, x.kv)
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for j := range 5 {
				checkParts(t, "attn_chunk "+x.kv, attnChunkCase(r, c, a, x.kv, x.kvHeads, r.IntN(27), 1+r.IntN(40)*(j%2)))
			}
		})
	}
}

// attnChunkCase has a cache that holds what any query sees, and nothing else.
func attnChunkCase(r *rand.Rand, c kerneltest.Case, a kernels.AttnChunk, kv string, kvHeads, i, tokens int) kerneltest.Case {
	return attnChunkAt(r, c, a, kv, kvHeads, pick(r, 0, 2), places(r, i, tokens), tokens)
}

func attnChunkAt(r *rand.Rand, c kerneltest.Case, a kernels.AttnChunk, kv string, kvHeads, row0 int, p place, tokens int) kerneltest.Case {
	c = fresh(c)
	hd, vd, heads := int(c.Kernel.Params["HD"]), int(c.Kernel.Params["VD"]), kvHeads*int(c.Kernel.Params["G"])
	c.Step = p.step(tokens, row0)
	first := 0
	if p.window > 0 {
		first = max(0, p.pos0+1-p.window)
	}
	for _, name := range []string{"kc", "vc"} {
		m := kerneltest.Output(elem(kv), p.rows(tokens)*kvHeads*hd)
		for pos := first; pos < p.pos0+tokens; pos++ {
			row := pos
			if p.window > 0 {
				row = pos % (p.window + p.chunk)
			}
			copy(m.Values[row*kvHeads*hd:], rounded(elem(kv), normal(r, kvHeads*hd)))
		}
		c.Memory[name] = m
	}
	c.Memory["q"] = after(row0*heads*hd, normal(r, tokens*heads*hd))
	sharp := pick(r, 1.0, 1, 1, 20) // now and then one key takes all
	c.Constants = map[string]any{"kv_heads": uint32(kvHeads), "window": uint32(p.window), "scale": sharp / math.Sqrt(float64(hd))}
	c.Grid = grid(a.Grid(p.window), c.Step)
	c.Memory["part"] = kerneltest.Output(program.Elem_F32, int(c.Grid[2])*tokens*heads*(vd+2))
	c.Bounds["part"] = softmaxBound
	if vd == 512 { // of hundreds of softmaxes the error of one with a large sum is the worst
		c.Bounds["part"] = kerneltest.Bound{NMSE: 2e-12, Max: 5e-5}
	}
	if sharp > 1 {
		c.Bounds["part"] = sharpBound
	}
	return c
}

// grid evaluates terms for a step.
func grid(terms []*program.Term, s program.StepUniform) (g [3]uint32) {
	for i, t := range terms {
		n := map[program.Var]uint32{program.Var_ONE: 1, program.Var_T: s.T, program.Var_S: s.S, program.Var_SW: min(s.S, t.Window)}[t.N]
		g[i] = (max(1, t.Mul)*n + max(1, t.Div) - 1) / max(1, t.Div)
	}
	return g
}

// rounded is values as a buffer of type e holds them.
func rounded(e program.Elem, values []float64) []float64 {
	for i, v := range values {
		if values[i] = float64(float32(v)); e == program.Elem_F16 {
			values[i] = ggml.RoundF16(v)
		}
	}
	return values
}

// checkParts is check for partial results: where a row sees nothing of a run, its maximum is -3e38, beside which no error counts.
func checkParts(t *testing.T, name string, c kerneltest.Case) {
	t.Helper()
	want, have := kerneltest.Reference(t, c)["part"], kerneltest.Dispatch(t, c)["part"]
	for i, w := range want.Values {
		if w == -3e38 && have.Values[i] == float64(float32(w)) {
			want.Values[i], have.Values[i] = 0, 0
		}
	}
	s, err := kerneltest.Compare(have, want, c.Bounds["part"])
	if err != nil {
		t.Errorf("%s: %v\n%s", c.Kernel.Name, err, c)
	}
	w := worst[name]
	worst[name] = kerneltest.Stat{Bound: kerneltest.Bound{NMSE: max(w.NMSE, s.NMSE), Max: max(w.Max, s.Max)}}
}

// TestAttnChunkMerged joins the runs again: the result is the attention of each query over all that it sees.
func TestAttnChunkMerged(t *testing.T) {
	r := random(t)
	const heads, kvHeads, hd, tokens = 6, 2, 16, 21
	for i, l := range chunkForms {
		a, c := attnChunk(t, l, heads, kvHeads, hd, 0, 64, "f32")
		for _, at := range []int{1, 2, 7, 8, 11} { // of places
			c := attnChunkCase(r, c, a, "f32", kvHeads, at, tokens)
			window := int(c.Constants["window"].(uint32))
			merge := fresh(build(t, kernels.Spec{Name: "attn_merge", Params: map[string]uint32{"HD": hd, "KEYS": uint32(a.Run), "W": 16}}))
			merge.Step = c.Step
			merge.Constants = map[string]any{"heads": uint32(heads), "window": uint32(a.MergeWindow(window))}
			merge.Memory["part"] = kerneltest.Dispatch(t, c)["part"]
			merge.Memory["y"] = kerneltest.Output(program.Elem_F32, (int(c.Step.Row0)+tokens)*heads*hd)
			merge.Grid = [3]uint32{heads, 1, tokens}
			want := kerneltest.Output(program.Elem_F32, len(merge.Memory["y"].Values))
			for token := range tokens {
				for h := range heads {
					at := ((int(c.Step.Row0)+token)*heads + h) * hd
					copy(want.Values[at:], attend(c, c.Memory["q"].Values[at:at+hd], token, h/(heads/kvHeads), kvHeads, window))
				}
			}
			if _, err := kerneltest.Compare(kerneltest.Dispatch(t, merge)["y"], want, sharpBound); err != nil {
				t.Errorf("form %d, place %d: %v\n%s", i, at, err, c)
			}
		}
	}
}

// attend is the attention of one query of a case's step.
func attend(c kerneltest.Case, q []float64, token, kvHead, kvHeads, window int) []float64 {
	newest := int(c.Step.Pos0) + token
	first, ring := 0, newest+1
	if window > 0 {
		first, ring = max(0, newest+1-window), window+int(c.Step.Chunk)
	}
	out, sum := make([]float64, len(q)), 0.0
	for pos := first; pos <= newest; pos++ {
		at := (pos%ring*kvHeads + kvHead) * len(q)
		var s float64
		for i, v := range q {
			s += v * c.Memory["kc"].Values[at+i]
		}
		p := math.Exp(s * c.Constants["scale"].(float64))
		sum += p
		for i := range out {
			out[i] += p * c.Memory["vc"].Values[at+i]
		}
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}
