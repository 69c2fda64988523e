package kerneltest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// widths are the workgroup sizes that sdk/layer gives element-wise kernels: for a software device, and not.
var widths = []uint32{16, 64}

// laneWidths are a software device's and those of kernels that give an invocation as little as there is to do.
var laneWidths = []uint32{16, 64, 128, 512}

// A few roundings a value.
var fewBound = kerneltest.Bound{NMSE: 1e-12, Max: 1e-5}

// place is a token position and the cache around it.
type place struct{ pos0, window, chunk int }

// places are the corners of a ring and of a plain cache in turn, and chance between them. A place leaves room for tokens tokens.
func places(r *rand.Rand, i, tokens int) place {
	w := pick(r, 7, 128, 200)
	chunk := tokens + r.IntN(4)
	ring := w + chunk
	corners := []place{{0, 0, chunk}, {300, 0, chunk}, {0, w, chunk}, {w - 1, w, chunk}, {w, w, chunk}, {w + 1, w, chunk},
		{ring - 1, w, chunk}, {ring, w, chunk}, {3*ring - 1, w, chunk}}
	if i%3 != 0 {
		return corners[(i-i/3)%len(corners)]
	}
	return place{r.IntN(700), pick(r, 0, w), chunk}
}

// rows is how many rows the cache has.
func (p place) rows(tokens int) int {
	if p.window > 0 {
		return p.window + p.chunk
	}
	return p.pos0 + tokens + 3
}

func (p place) step(tokens, row0 int) program.StepUniform {
	return program.StepUniform{T: uint32(tokens), Pos0: uint32(p.pos0), S: uint32(p.pos0 + tokens), Row0: uint32(row0), Chunk: uint32(p.chunk)}
}

func elem(kv string) program.Elem {
	if kv == "f16" {
		return program.Elem_F16
	}
	return program.Elem_F32
}

func TestHeads(t *testing.T) {
	r := random(t)
	sizes := [][2]uint32{{16, 16}, {32, 8}, {64, 64}, {80, 32}, {128, 128}, {256, 64}, {512, 512}, {48, 2}}
	axes := []int{len(sizes), 2, 2, 2, len(laneWidths)}
	for i, row := range also(r, 2, pairs(r, axes...), axes...) {
		hd, kv := sizes[row[0]], choice(row[1], "f16", "f32")
		c := build(t, kernels.Spec{Name: "heads", Choices: map[string]string{"kv": kv}, Params: map[string]uint32{
			"HD": hd[0], "ROT": hd[1], "NEOX": uint32(row[2]), "VNORM": uint32(row[3]), "W": laneWidths[row[4]]}})
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for j := range 3 {
				check(t, "heads "+kv, headsCase(r, c, kv, 3*i+j))
			}
		})
	}
}

func headsCase(r *rand.Rand, c kerneltest.Case, kv string, i int) kerneltest.Case {
	c = fresh(c)
	hd, rot := int(c.Kernel.Params["HD"]), int(c.Kernel.Params["ROT"])
	tokens, row0 := pick(r, 1, 5), pick(r, 0, 3)
	kvHeads := pick(r, 1, 2, 5)
	heads := kvHeads * pick(r, 1, 3, 8)
	p := places(r, i, tokens)
	gap := pick(r, 0, hd) // q may be followed by a gate in each head
	kOff := heads*(hd+gap) + r.IntN(3)
	vOff := kOff + kvHeads*hd + r.IntN(3)
	stride := vOff + kvHeads*hd + r.IntN(3)
	if i%4 == 3 {
		vOff = kOff // V is K before its norm
	}
	c.Step = p.step(tokens, row0)
	for k, v := range map[string]int{"stride": stride, "q_off": 0, "q_step": hd + gap, "k_off": kOff, "v_off": vOff,
		"heads": heads, "kv_heads": kvHeads, "window": p.window} {
		c.Constants[k] = uint32(v)
	}
	c.Constants["eps"] = 1e-6
	c.Memory["qkv"] = after(row0*stride, normal(r, tokens*stride))
	c.Memory["rope"] = after(row0*rot, normal(r, tokens*rot))
	c.Memory["q_norm"], c.Memory["k_norm"] = kerneltest.F32(normal(r, hd)), kerneltest.F32(normal(r, hd))
	c.Memory["q"] = kerneltest.Output(program.Elem_F32, (row0+tokens)*heads*hd)
	c.Memory["kc"] = kerneltest.Output(elem(kv), p.rows(tokens)*kvHeads*hd)
	c.Memory["vc"] = kerneltest.Output(elem(kv), p.rows(tokens)*kvHeads*hd)
	c.Grid = [3]uint32{uint32(heads + 2*kvHeads), uint32(tokens), 1}
	c.Bounds["q"], c.Bounds["kc"], c.Bounds["vc"] = fewBound, fewBound, fewBound
	return c
}

// after is n elements of another session, which are poison, then values.
func after(n int, values []float64) *program.Memory {
	return kerneltest.F32(append(kerneltest.Output(program.Elem_F32, n).Values, values...))
}

// Softmax sums of up to some hundred keys; exp is good to about 2^-21 on lavapipe. It makes a relative error of the
// absolute error of a score, which HD products of a score near 30 bring to 1e-5.
var (
	softmaxBound = kerneltest.Bound{NMSE: 2e-12, Max: 2e-5}
	sharpBound   = kerneltest.Bound{NMSE: 4e-11, Max: 1e-4}
)

func TestAttnSplit(t *testing.T) {
	r := random(t)
	sizes := [][3]uint32{{16, 1, 1}, {16, 16, 1}, {32, 3, 1}, {64, 4, 2}, {80, 2, 1}, {128, 8, 1}, {256, 8, 1}, {256, 2, 8}, {512, 8, 1}, {512, 4, 2},
		{512, 1, 3}, {256, 16, 1}, {576, 8, 4}}
	axes := []int{len(sizes), 2, 2}
	for i, row := range also(r, 2, pairs(r, axes...), axes...) {
		hd, g, cuts, kv := sizes[row[0]][0], sizes[row[0]][1], sizes[row[0]][2], choice(row[1], "f16", "f32")
		vd := hd - pick[uint32](r, 0, 8, 6) // less than a key: the value is a part of it
		c := build(t, kernels.Spec{Name: "attn_split", Choices: map[string]string{"kv": kv, "split": "keys"}, Params: map[string]uint32{
			"HD": hd, "VD": vd, "VROW": hd, "G": g, "CUTS": cuts, "KEYS": 128, "W": []uint32{16, 128}[row[2]], "LS": []uint32{1, 16}[row[2]], "GHD": g * hd, "GKEYS": g * 128}})
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for j := range 3 {
				check(t, "attn_split "+kv, splitCase(r, c, kv, 3*i+j))
			}
		})
	}
}

// TestAttnSplitLanes is the form for a GPU, with runs of one block and of several, caches of keys that are values too, and
// few and many heads and keys a lane.
func TestAttnSplitLanes(t *testing.T) {
	r := random(t)
	sizes := [][2]uint32{{16, 16}, {32, 24}, {64, 64}, {80, 80}, {128, 64}, {192, 192}, {256, 256}, {512, 512}, {576, 512}}
	heads := []uint32{1, 2, 3, 5, 8}
	axes := []int{len(sizes), len(heads), 3, 2, 2, 3} // pairs, for these compile slowly on a software device
	for i, row := range also(r, 2, pairs(r, axes...), axes...) {
		s := lanesOf{hd: sizes[row[0]][0], vd: sizes[row[0]][1], g: heads[row[1]], b: 1 << row[2], cuts: 1 + uint32(row[3]), same: uint32(row[4]),
			most: []uint32{0, 2, 64}[row[5]], slots: []uint32{1, 3, 8}[i%3]}
		s.slots = max(1, min(s.slots, 256/(s.hd/8)))
		kv := choice(i%2, "f16", "f32")
		c := build(t, s.spec(kv))
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for j := range 3 {
				check(t, "attn_split "+kv, splitCase(r, c, kv, 3*i+j))
			}
		})
	}
}

// lanesOf is a shape of attn_split's form lanes.
type lanesOf struct{ hd, vd, g, cuts, slots, b, most, same uint32 }

func (s lanesOf) spec(kv string) kernels.Spec {
	kl := s.hd / 8
	w := s.slots * kl
	return kernels.Spec{Name: "attn_split", Choices: map[string]string{"kv": kv, "split": "lanes"}, Params: map[string]uint32{
		"HD": s.hd, "VD": s.vd, "VROW": s.hd, "G": s.g, "CUTS": s.cuts, "KEYS": s.slots * s.b, "MOST": s.most, "W": w, "KL": kl,
		"SLOTS": s.slots, "B": s.b, "SAME": s.same, "ROOM": max(s.slots*s.b*s.g*(kl+4), 8*(w+4))}}
}

// runsOf is how many runs of lib/runs.wgsl a kernel makes of the positions that a token sees.
func runsOf(c kerneltest.Case, seen int) int {
	run := int(c.Kernel.Params["KEYS"])
	if most := int(c.Kernel.Params["MOST"]); most > 0 {
		run *= max(1, (seen+run*most-1)/(run*most))
	}
	return (seen + run - 1) / run
}

func splitCase(r *rand.Rand, c kerneltest.Case, kv string, i int) kerneltest.Case {
	c = fresh(c)
	hd, cuts := int(c.Kernel.Params["HD"]), int(c.Kernel.Params["CUTS"])
	row0, kvHeads := pick(r, 0, 2), pick(r, 1, 3)
	heads := kvHeads * cuts * int(c.Kernel.Params["G"])
	p := places(r, i, 1)
	c.Step = p.step(1, row0)
	seen := int(c.Step.S)
	if p.window > 0 {
		seen = min(seen, p.window)
	}
	runs := runsOf(c, seen)
	c.Constants["kv_heads"], c.Constants["window"] = uint32(kvHeads), uint32(p.window)
	// Scores of a few units, and now and then of hundreds: one key takes all.
	sharp := pick(r, 1.0, 1, 1, 100)
	c.Constants["scale"] = sharp / float64(hd)
	c.Memory["q"] = after(row0*heads*hd, normal(r, heads*hd))
	c.Memory["kc"] = cache(r, kv, p, seen, kvHeads*hd)
	c.Memory["vc"] = cache(r, kv, p, seen, kvHeads*int(c.Kernel.Params["VROW"]))
	if c.Kernel.Params["SAME"] == 1 {
		c.Memory["vc"] = c.Memory["kc"]
	}
	c.Memory["part"] = kerneltest.Output(program.Elem_F32, (runs+1)*heads*(int(c.Kernel.Params["VD"])+2))
	c.Grid = [3]uint32{uint32(kvHeads * cuts), uint32(runs), 1}
	c.Bounds["part"] = softmaxBound
	if sharp > 1 {
		c.Bounds["part"] = sharpBound
	}
	return c
}

// cache is rows of keys or values at the last seen positions, poison elsewhere.
func cache(r *rand.Rand, kv string, p place, seen, width int) *program.Memory {
	m := kerneltest.Output(elem(kv), p.rows(1)*width)
	for pos := p.pos0 + 1 - seen; pos <= p.pos0; pos++ {
		row := pos
		if p.window > 0 {
			row = pos % (p.window + p.chunk)
		}
		for i := range width {
			v := r.NormFloat64()
			if m.Elem == program.Elem_F16 {
				v = ggml.RoundF16(v)
			}
			m.Values[row*width+i] = float64(float32(v))
		}
	}
	return m
}

func TestAttnMerge(t *testing.T) {
	r := random(t)
	sizes := []uint32{16, 64, 80, 256, 512}
	shapes := [][2]uint32{{16, 1}, {64, 1}, {64, 4}, {256, 8}, {256, 32}} // W, RG
	axes := []int{len(sizes), len(shapes), 3, 3}
	for i, row := range pairs(r, axes...) {
		shape := shapes[row[1]]
		c := build(t, kernels.Spec{Name: "attn_merge", Params: map[string]uint32{"HD": sizes[row[0]], "KEYS": []uint32{128, 16, 12}[row[3]], "MOST": []uint32{0, 3, 128}[row[3]],
			"W": shape[0], "RG": shape[1], "PARTS": uint32(1 + row[2])}})
		t.Run(c.Kernel.Name, func(t *testing.T) {
			for j := range 4 {
				check(t, "attn_merge", mergeCase(r, c, 4*i+j))
			}
		})
	}
}

func mergeCase(r *rand.Rand, c kerneltest.Case, i int) kerneltest.Case {
	c = fresh(c)
	hd := int(c.Kernel.Params["HD"])
	row0, heads := pick(r, 0, 2), pick(r, 1, 3, 16)
	p := places(r, i, 1)
	if i%5 == 4 {
		p = place{20000 + r.IntN(1000), 0, 1}
	}
	c.Step = p.step(1, row0)
	seen := int(c.Step.S)
	if p.window > 0 {
		seen = min(seen, p.window)
	}
	runs := runsOf(c, seen)
	c.Constants["heads"], c.Constants["window"] = uint32(heads), uint32(p.window)
	// Runs whose greatest scores lie far apart: only the best counts.
	spread := pick(r, 1.0, 1, 200)
	var part []float64
	for range runs * heads {
		part = append(part, r.NormFloat64()*spread, 1+100*r.Float64())
		part = append(part, normal(r, hd)...)
	}
	c.Memory["part"] = kerneltest.F32(append(part, kerneltest.Output(program.Elem_F32, heads*(hd+2)).Values...))
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, (row0+1)*heads*hd)
	c.Grid = [3]uint32{uint32(heads), c.Kernel.Params["PARTS"], 1}
	c.Bounds["y"] = softmaxBound
	return c
}
