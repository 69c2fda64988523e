package kerneltest_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// whole is attention from rows of q | k | v to its result: heads, the runs, and their merge, one after the other on the GPU.
type whole struct {
	heads, kvHeads, hd int
	scale              float64
	place
	tokens int
	keys   float64 // rms of the cached keys: how far scores lie apart
}

// Attention as a whole against plain float64 loops: over contexts past 131,072 positions, flat (every key counts) and sharp
// (one takes all), with RoPE at such positions, and where a window begins to slide, for one token and for chunks shorter and
// longer than the window.
func TestAttentionNumerics(t *testing.T) {
	r := random(t)
	w := []whole{
		{heads: 2, kvHeads: 1, hd: 16, scale: 1, place: place{131_300, 0, 1}, tokens: 1, keys: 0.01},
		{heads: 2, kvHeads: 1, hd: 16, scale: 1, place: place{131_300, 0, 1}, tokens: 1, keys: 30},
		{heads: 2, kvHeads: 1, hd: 16, scale: 1, place: place{200_000, 0, 1}, tokens: 1, keys: 3},
		{heads: 1, kvHeads: 1, hd: 16, scale: 0.25, place: place{131_300, 0, 20}, tokens: 20, keys: 1},
		{heads: 4, kvHeads: 2, hd: 64, scale: 0.125, place: place{262_143, 24, 8}, tokens: 8, keys: 1},
	}
	for _, chunk := range []int{1, 5, 9, 40} { // 9 and 40 reach over a window of 8
		for _, pos := range []int{0, 6, 7, 8, 9, 8 + chunk - 1, 8 + chunk, 8 + chunk + 1, 3*(8+chunk) - 1} {
			w = append(w, whole{heads: 4, kvHeads: 2, hd: 16, scale: 1, place: place{pos, 8, chunk}, tokens: chunk, keys: 1})
		}
	}
	for i, a := range w {
		t.Run(fmt.Sprint(i, a), func(t *testing.T) { a.check(t, r) })
	}
}

func (a whole) check(t *testing.T, r *rand.Rand) {
	row := (a.heads + 2*a.kvHeads) * a.hd
	qkv := normal(r, a.tokens*row)
	rope := &program.Rope{Pairs: uint32(a.hd / 2), Base: 1e4, BaseDims: uint32(a.hd)}
	freqs, err := program.RopeFreqs(rope, nil)
	if err != nil {
		t.Fatal(err)
	}
	angles := make([]float64, a.tokens*a.hd)
	for i := range a.tokens {
		program.RopeRow(angles[i*a.hd:][:a.hd], rope, freqs, uint32(a.pos0+i))
	}
	ones := make([]float64, a.hd)
	for i := range ones {
		ones[i] = 1
	}
	first := 0
	if a.window > 0 {
		first = max(0, a.pos0+1-a.window)
	}
	memory := map[string]*program.Memory{"qkv": kerneltest.F32(qkv), "rope": kerneltest.F32(angles), "q_norm": kerneltest.F32(ones), "k_norm": kerneltest.F32(ones),
		"q": kerneltest.Output(program.Elem_F32, a.tokens*a.heads*a.hd), "kc": a.old(r, first, a.keys), "vc": a.old(r, first, 1)}
	want := a.want(memory, first)

	h := build(t, kernels.Spec{Name: "heads", Choices: map[string]string{"kv": "f32"}, Params: map[string]uint32{"HD": uint32(a.hd), "ROT": uint32(a.hd)}})
	h.Step, h.Memory = a.step(a.tokens, 0), memory
	h.Grid = [3]uint32{uint32(a.heads + 2*a.kvHeads), uint32(a.tokens), 1}
	h.Constants = map[string]any{"stride": uint32(row), "q_off": uint32(0), "q_step": uint32(a.hd), "k_off": uint32(a.heads * a.hd),
		"v_off": uint32((a.heads + a.kvHeads) * a.hd), "heads": uint32(a.heads), "kv_heads": uint32(a.kvHeads), "window": uint32(a.window), "eps": 1e-6}
	out := kerneltest.Dispatch(t, h)
	y := a.merge(t, a.runs(t, out))
	// A score is a sum of HD products, whose f32 error is that of scores' size: with keys of 30, 1e-5 of a hundred.
	bound := kerneltest.Bound{NMSE: 4e-10, Max: 1e-4}
	if s, err := kerneltest.Compare(y, kerneltest.F32(want), bound); err != nil {
		t.Errorf("%v", err)
	} else {
		t.Logf("NMSE %.1e, worst %.1e", s.NMSE, s.Max)
	}
}

// old is a cache with values of size rms before pos0, poison elsewhere.
func (a whole) old(r *rand.Rand, first int, rms float64) *program.Memory {
	n := a.kvHeads * a.hd
	m := kerneltest.Output(program.Elem_F32, a.rows(a.tokens)*n)
	for pos := first; pos < a.pos0; pos++ {
		for i := range n {
			m.Values[a.at(pos)*n+i] = float64(float32(rms * r.NormFloat64()))
		}
	}
	return m
}

// at is the cache row of a position.
func (a whole) at(pos int) int {
	if a.window > 0 {
		return pos % (a.window + a.chunk)
	}
	return pos
}

// want is the result in float64, from the step's rows and the cached rows of earlier positions.
func (a whole) want(m map[string]*program.Memory, first int) []float64 {
	n, row := a.kvHeads*a.hd, (a.heads+2*a.kvHeads)*a.hd
	keys, values := map[int][]float64{}, map[int][]float64{}
	for pos := first; pos < a.pos0; pos++ {
		keys[pos], values[pos] = m["kc"].Values[a.at(pos)*n:][:n], m["vc"].Values[a.at(pos)*n:][:n]
	}
	turned := func(x []float64, angles []float64) []float64 {
		out, half := normed64(x), a.hd/2
		for p := range half {
			s, c := angles[half+p], angles[p]
			out[p], out[p+half] = out[p]*c-out[p+half]*s, out[p]*s+out[p+half]*c
		}
		return out
	}
	var y []float64
	for t := range a.tokens {
		x, angles := m["qkv"].Values[t*row:][:row], m["rope"].Values[t*a.hd:][:a.hd]
		var k []float64
		for h := range a.kvHeads {
			k = append(k, turned(x[(a.heads+h)*a.hd:][:a.hd], angles)...)
		}
		pos := a.pos0 + t
		keys[pos], values[pos] = k, x[(a.heads+a.kvHeads)*a.hd:][:n]
		from := 0
		if a.window > 0 {
			from = max(0, pos+1-a.window)
		}
		for h := range a.heads {
			kv := h / (a.heads / a.kvHeads) * a.hd
			y = append(y, softmax64(turned(x[h*a.hd:][:a.hd], angles), a.scale, from, pos, func(p int) (k, v []float64) {
				return keys[p][kv : kv+a.hd], values[p][kv : kv+a.hd]
			})...)
		}
	}
	return y
}

func normed64(x []float64) []float64 {
	var s float64
	for _, v := range x {
		s += v * v
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v / math.Sqrt(s/float64(len(x))+1e-6)
	}
	return out
}

func softmax64(q []float64, scale float64, from, to int, at func(int) (k, v []float64)) []float64 {
	scores, m := make([]float64, to-from+1), math.Inf(-1)
	for i := range scores {
		k, _ := at(from + i)
		for j, x := range q {
			scores[i] += x * k[j] * scale
		}
		m = max(m, scores[i])
	}
	y, sum := make([]float64, len(q)), 0.0
	for i, s := range scores {
		p := math.Exp(s - m)
		_, v := at(from + i)
		sum += p
		for j := range y {
			y[j] += p * v[j]
		}
	}
	for j := range y {
		y[j] /= sum
	}
	return y
}

// runs is attn_split, or attn_chunk for several tokens, on the caches that heads left; the case has part as they left it.
func (a whole) runs(t *testing.T, m map[string]*program.Memory) kerneltest.Case {
	limits := &program.Limits{Cpu: true, LoopLimit: 65535, WorkgroupBytes: 32 << 10}
	step := a.step(a.tokens, 0)
	spec := kernels.Spec{Name: "attn_split", Choices: map[string]string{"kv": "f32"}, Params: map[string]uint32{"W": 16}}
	var terms []*program.Term
	merge := a.window
	var keys int
	if a.tokens == 1 {
		s, err := kernels.NewAttnSplit(limits, a.heads, a.kvHeads, a.hd)
		if err != nil {
			t.Fatal(err)
		}
		spec.Choices["split"] = s.Choice
		maps.Copy(spec.Params, s.Params)
		terms, keys = s.Grid(a.window), s.Run
	} else {
		c, err := kernels.NewAttnChunk(limits, a.heads, a.kvHeads, a.hd)
		if err != nil {
			t.Fatal(err)
		}
		spec.Name, spec.Choices["chunk"], spec.Params = "attn_chunk", c.Choice, c.Params
		terms, keys, merge = c.Grid(a.window), c.Run, c.MergeWindow(a.window)
	}
	c := build(t, spec)
	c.Step, c.Grid = step, grid(terms, step)
	c.Memory = map[string]*program.Memory{"q": m["q"], "kc": m["kc"], "vc": m["vc"],
		"part": kerneltest.Output(program.Elem_F32, int(c.Grid[1]*c.Grid[2])*a.tokens*a.heads*(a.hd+2))}
	if a.tokens > 1 {
		c.Memory["part"] = kerneltest.Output(program.Elem_F32, int(c.Grid[2])*a.tokens*a.heads*(a.hd+2))
	}
	c.Constants = map[string]any{"kv_heads": uint32(a.kvHeads), "window": uint32(a.window), "scale": a.scale}
	part := kerneltest.Dispatch(t, c)["part"]
	out := build(t, kernels.Spec{Name: "attn_merge", Params: map[string]uint32{"HD": uint32(a.hd), "KEYS": uint32(keys), "W": 16}})
	out.Step, out.Memory = step, map[string]*program.Memory{"part": part}
	out.Constants = map[string]any{"heads": uint32(a.heads), "window": uint32(merge)}
	return out
}

func (a whole) merge(t *testing.T, c kerneltest.Case) *program.Memory {
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, a.tokens*a.heads*a.hd)
	c.Grid = [3]uint32{uint32(a.heads), 1, uint32(a.tokens)}
	return kerneltest.Dispatch(t, c)["y"]
}

// Logits that no cap holds: sums far past the cap end at ±cap exactly, sums that are infinite too, and NaN stays NaN.
func TestSoftCapExtremes(t *testing.T) {
	s := splits[0]
	for _, limit := range []float64{1e-3, 30, 1e4} {
		c := build(t, kernels.Spec{Name: "matvec", Types: map[string]ggml.Type{"w": ggml.F32}, Params: s.params(),
			Choices: map[string]string{"rows": "all", "x": "plain", "out": "cap"}})
		x := make([]float64, 32*6)
		for i, v := range []float64{0, 1e30, -1e30, math.Inf(1), math.Inf(-1), math.NaN()} {
			x[32*i] = v
		}
		one := make([]byte, 32*4)
		one[2], one[3] = 0x80, 0x3f // 1, and zeros
		c.Memory = map[string]*program.Memory{"x": kerneltest.F32(x), "w": {Form: one}, "y": kerneltest.Output(program.Elem_F32, 6)}
		for k, v := range map[string]int{"rows": 1, "units": 1, "y_stride": 1, "y_off": 0} {
			c.Constants[k] = uint32(v)
		}
		c.Constants["planes"], c.Constants["eps"], c.Constants["cap"] = [4]uint32{}, 0.0, limit
		c.Grid = [3]uint32{s.groups(1), 6, 1}
		y := kerneltest.Dispatch(t, c)["y"].Values
		bound := float64(float32(limit))
		for i, want := range []float64{0, bound, -bound, bound, -bound, math.NaN()} {
			if y[i] != want && !(math.IsNaN(want) && math.IsNaN(y[i])) {
				t.Errorf("cap %g of %g: have %g, want %g", limit, x[32*i], y[i], want)
			}
		}
	}
}

// A limit on activations hides no NaN, be it the gate's or up's.
func TestLimitedNaN(t *testing.T) {
	s := splits[0]
	for _, act := range []string{"silu", "gelu"} {
		c := build(t, kernels.Spec{Name: "pair", Types: map[string]ggml.Type{"gate": ggml.F32, "up": ggml.F32}, Params: s.params(),
			Choices: map[string]string{"x": "plain", "act": act}})
		inputs := [][2]float64{{1, 1}, {1e30, -1e30}, {math.NaN(), 1}, {1, math.NaN()}}
		x := make([]float64, 32*len(inputs))
		for i, v := range inputs {
			copy(x[32*i:], v[:])
		}
		gate, up := make([]byte, 32*4), make([]byte, 32*4)
		copy(gate[2:], []byte{0x80, 0x3f}) // the unit's first value
		copy(up[6:], []byte{0x80, 0x3f})   // its second
		c.Memory = map[string]*program.Memory{"x": kerneltest.F32(x), "gate": {Form: gate}, "up": {Form: up}, "y": kerneltest.Output(program.Elem_F32, len(inputs))}
		for k, v := range map[string]int{"rows": 1, "units": 1, "gate_row0": 0, "up_row0": 0, "y_stride": 1, "y_off": 0} {
			c.Constants[k] = uint32(v)
		}
		c.Constants["gate"], c.Constants["up"], c.Constants["eps"], c.Constants["limit"] = [4]uint32{}, [4]uint32{}, 0.0, 7.0
		c.Grid = [3]uint32{s.groups(1), uint32(len(inputs)), 1}
		y := kerneltest.Dispatch(t, c)["y"].Values
		if !(y[0] > 0.7 && y[0] < 0.9) || y[1] != -49 {
			t.Errorf("%s: have %v and %v, want about 0.8 and -49", act, y[0], y[1])
		}
		for i := 2; i < len(inputs); i++ {
			if !math.IsNaN(y[i]) {
				t.Errorf("%s of %v: have %v, want NaN", act, inputs[i], y[i])
			}
		}
	}
}
