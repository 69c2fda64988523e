package kernels

import (
	"maps"
	"math"
	"slices"

	"github.com/sluicehost/sluice/sdk/program"
)

// Ref finds the float64 reference of a kernel by its file name, nil where the
// library has none.
func Ref(name string) program.Ref { return refs[name] }

// Names lists the library's kernels.
func Names() []string { return slices.Sorted(maps.Keys(refs)) }

var refs = map[string]program.Ref{
	"matvec":        refMatvec,
	"pair":          refPair,
	"expert_pair":   refExpertPair,
	"expert_down":   refExpertDown,
	"expert_matvec": refExpertMatvec,
	"heads":         refHeads,
	"attn_split":    refAttnSplit,
	"attn_merge":    refAttnMerge,
	"shortconv":     refShortconv,
	"topk":          refTopK,
	"add":           refAdd,
	"rmsnorm":       refRMSNorm,
	"gate":          refGate,
	"scale":         refScale,
	"topn":          refTopN,
	"topn_merge":    refTopNMerge,
	"resolve":       refResolve,

	"matmul":             refMatmul,
	"matmul_pair":        refMatmulPair,
	"expert_matmul":      refExpertMatmul,
	"expert_matmul_pair": refExpertMatmulPair,
	"moe_sum":            refMoESum,
	"conv":               refConv,
	"delta_rule":         refDeltaRule,
	"gated_norm":         refGatedNorm,
	"attn_chunk":         refAttnChunk,

	"latent":       refLatent,
	"matvec_heads": refMatvecHeads,
	"matmul_heads": refMatmulHeads,
}

// norm is x / sqrt(mean(x²) + eps) · w; a nil w stands for ones.
func norm(x, w []float64, eps float64) []float64 {
	var s float64
	for _, v := range x {
		s += v * v
	}
	scale := 1 / math.Sqrt(s/float64(len(x))+eps)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * scale
		if w != nil {
			y[i] *= w[i]
		}
	}
	return y
}

// activations is row t of x as lib/x_*.wgsl and lib/rows_*.wgsl read it: units of 32
// values, perhaps of the row that outs names, perhaps normed.
func activations(c *program.Call, t int) []float64 {
	n := 32 * int(c.U32("units"))
	if c.Has("outs") {
		t = int(c.Values("outs")[t])
	}
	x := c.Values("x")[t*n : (t+1)*n]
	if c.Has("nw") {
		return norm(x, c.Values("nw"), c.F32("eps"))
	}
	return x
}

// dot is row · x for a row of a weight slot.
func dot(c *program.Call, slot, variable string, planes [4]uint32, row int, x []float64) float64 {
	units := len(x) / 32
	var s float64
	for u := range units {
		w := c.Unit(slot, variable, planes, uint64(row*units+u))
		for i, v := range w {
			s += v * x[u*32+i]
		}
	}
	return s
}

// put writes y[i], with the residual where the kernel has one, and then times the factor.
func put(c *program.Call, i int, v float64) {
	if c.Has("res") {
		v += c.Values("res")[i]
	}
	if c.Has("factor") {
		v *= c.Values("factor")[0]
	}
	c.Store("y", i, v)
}

// glu is the gated activation; gelu tells the tanh form from silu, limit > 0 clamps (bailingmoe3).
func glu(c *program.Call, gate, up float64) float64 {
	act := gate / (1 + math.Exp(-gate))
	if c.Param("GELU") == 1 {
		act = 0.5 * gate * (1 + math.Tanh(math.Sqrt(2/math.Pi)*gate*(1+0.044715*gate*gate)))
	}
	if limit := c.F32("limit"); limit > 0 {
		return min(act, limit) * max(-limit, min(limit, up))
	}
	return act * up
}

func refMatvec(c *program.Call) {
	rows, stride, off := int(c.U32("rows")), int(c.U32("y_stride")), int(c.U32("y_off"))
	for t := range int(c.Grid[1]) {
		x := activations(c, t)
		for row := range rows {
			v := dot(c, "w", "w", c.Planes("planes"), row, x)
			if limit := c.F32("cap"); limit > 0 {
				v = limit * math.Tanh(v/limit)
			}
			put(c, t*stride+off+row, v)
		}
	}
}

func refPair(c *program.Call) {
	rows, stride, off := int(c.U32("rows")), int(c.U32("y_stride")), int(c.U32("y_off"))
	for t := range int(c.Grid[1]) {
		x := activations(c, t)
		for row := range rows {
			g := dot(c, "gate", "gate", c.Planes("gate"), int(c.U32("gate_row0"))+row, x)
			u := dot(c, "up", "up", c.Planes("up"), int(c.U32("up_row0"))+row, x)
			c.Store("y", t*stride+off+row, glu(c, g, u))
		}
	}
}

// record gives the planes of a part within the record of pick's expert.
func record(c *program.Call, part string, pick int) [4]uint32 {
	p := c.Planes(part)
	slot := uint32(c.Values("residency")[int(c.Values("picks")[pick])])
	for i := range p {
		p[i] += slot * c.U32("stride")
	}
	return p
}

func refExpertPair(c *program.Call) {
	rows, k := int(c.U32("rows")), int(c.U32("top_k"))
	for t := range int(c.Grid[1]) {
		x := activations(c, t)
		for pick := t * k; pick < (t+1)*k; pick++ {
			gate, up := record(c, "gate", pick), record(c, "up", pick)
			for row := range rows {
				g := dot(c, "gate", "bank", gate, int(c.U32("gate_row0"))+row, x)
				u := dot(c, "up", "bank", up, int(c.U32("up_row0"))+row, x)
				c.Store("y", pick*rows+row, glu(c, g, u))
			}
		}
	}
}

func refExpertDown(c *program.Call) {
	rows, n, k := int(c.U32("rows")), 32*int(c.U32("units")), int(c.U32("top_k"))
	act, pw := c.Values("act"), c.Values("pw")
	for t := range int(c.Grid[1]) {
		for row := range rows {
			var sum float64
			for pick := t * k; pick < (t+1)*k; pick++ {
				sum += pw[pick] * dot(c, "down", "bank", record(c, "down", pick), row, act[pick*n:(pick+1)*n])
			}
			put(c, t*rows+row, sum)
		}
	}
}

func refExpertMatvec(c *program.Call) {
	rows, n, k := int(c.U32("rows")), 32*int(c.U32("units")), int(c.U32("top_k"))
	for pick := range int(c.Grid[1]) * k {
		at := record(c, "down", pick)
		for row := range rows {
			c.Store("y", pick*rows+row, dot(c, "down", "bank", at, row, c.Values("x")[pick*n:(pick+1)*n]))
		}
	}
}

func refAdd(c *program.Call) {
	a, b := c.Values("a"), c.Values("b")
	for i := range int(c.Grid[1]) * int(c.U32("n")) {
		c.Store("y", i, a[i]+b[i])
	}
}

func refRMSNorm(c *program.Call) {
	n := int(c.U32("n"))
	for t := range int(c.Grid[0]) {
		from := t
		if c.Has("outs") {
			from = int(c.Values("outs")[t])
		}
		for i, v := range norm(c.Values("x")[from*n:(from+1)*n], c.Values("nw"), c.F32("eps")) {
			put(c, t*n+i, v)
		}
		for _, more := range []string{"1", "2"} {
			if !c.Has("nw" + more) {
				continue
			}
			for i, v := range norm(c.Values("x")[from*n:(from+1)*n], c.Values("nw"+more), c.F32("eps")) {
				c.Store("y"+more, t*n+i, v)
			}
		}
	}
}

func refGate(c *program.Call) {
	n, width := int(c.U32("n")), int(c.U32("width"))
	for t := range int(c.Grid[1]) {
		for i := range n {
			at := t*int(c.U32("g_row")) + int(c.U32("g_off")) + i/width*int(c.U32("g_step"))
			if c.Param("EACH") == 1 {
				at += i % width
			}
			put(c, t*n+i, c.Values("x")[t*n+i]/(1+math.Exp(-c.Values("g")[at])))
		}
	}
}

func refScale(c *program.Call) {
	for i := range int(c.Grid[1]) * int(c.U32("n")) {
		put(c, i, c.Values("x")[i])
	}
}
