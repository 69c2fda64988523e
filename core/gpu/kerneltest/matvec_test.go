package kerneltest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// split is a work split of lib/lanes.wgsl.
type split struct{ w, l, r, k int }

// splits are all that sdk/layer picks: the software device's first.
var splits = []split{{8, 1, 4, 1},
	{256, 32, 2, 3}, {128, 32, 2, 3}, {128, 32, 1, 4}, {128, 16, 2, 2}, {128, 8, 2, 1},
	{64, 64, 1, 2}, {256, 32, 1, 3}, {64, 16, 1, 1}, {64, 8, 1, 1}, {128, 8, 4, 1}, {128, 16, 4, 1}}

func (s split) params() map[string]uint32 {
	return map[string]uint32{"W": uint32(s.w), "L": uint32(s.l), "R": uint32(s.r), "K": uint32(s.k), "RW": uint32(s.r * s.w)}
}

// pairParams is params for two matrices.
func (s split) pairParams() map[string]uint32 {
	p := s.params()
	p["RW"] *= 2
	return p
}

// ways are the choices x.
var ways = []string{"plain", "norm", "staged"}

// groups is how many workgroups compute rows rows.
func (s split) groups(rows int) uint32 {
	per := s.w / s.l * s.r
	return uint32((rows + per - 1) / per)
}

// Sums of a few thousand f32 products: each step rounds by 2^-24 of the partial sum at most, and the signs of the
// roundings are random. n/6 · 2^-48 is 3e-14 for the 50 steps of one lane; formats with a minimum cancel some more.
// The error is that of the summands: where they happen to cancel, a lone result is small and its error is not.
func sumBound(summands int) kerneltest.Bound {
	return kerneltest.Bound{NMSE: 2e-12, Max: 1e-5, Rms: math.Sqrt(float64(summands)) / 4}
}

// shape draws rows, units of 32 columns and T: i counts through the corners.
func (s split) shape(r *rand.Rand, i int, types ...ggml.Type) (rows, units, tokens int) {
	per := s.w / s.l * s.r
	rows = []int{1, 3, per + 1, per, 2*per - 1}[i%5]
	units = []int{47, 1, 3}[i%3]
	tokens = []int{5, 1}[i%2]
	if i >= 2*3*5 {
		rows, units, tokens = 1+r.IntN(3*per), 1+r.IntN(70), 1+r.IntN(6)
	}
	for _, t := range types {
		if t.BlockSize() > 32 {
			units = (units + 7) / 8 * 8
		}
	}
	return min(rows, 150), units, tokens
}

// input binds x (T rows of units · 32 values), perhaps with a norm before it.
func input(r *rand.Rand, c kerneltest.Case, x string, rows, units int) {
	c.Memory["x"] = kerneltest.F32(normal(r, rows*units*32))
	c.Constants["units"], c.Constants["eps"] = uint32(units), 1e-6
	if x == "norm" {
		c.Memory["nw"] = kerneltest.F32(normal(r, units*32))
	}
}

func TestMatvec(t *testing.T) {
	r := random(t)
	types := kerneltest.Types()
	axes := []int{len(types), len(splits), 2, len(ways), 3}
	for i, row := range also(r, 2, pairs(r, axes...), axes...) {
		typ, s := types[row[0]], splits[row[1]]
		c := build(t, kernels.Spec{Name: "matvec", Types: map[string]ggml.Type{"w": typ}, Params: s.params(), Choices: map[string]string{
			"rows": []string{"all", "outs"}[row[2]], "x": ways[row[3]], "out": []string{"put", "add", "cap"}[row[4]]}})
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for j := range 2 {
				m := matvecCase(r, c, s, 2*i+j)
				if row[4] == 2 {
					m.Constants["cap"] = pick(r, 0.01, 1, 30, 1000) // from all at the cap to none near it
				}
				check(t, "matvec", m)
			}
		})
	}
}

// matvecCase is one shape: a band of a wider output, whose other elements stay.
func matvecCase(r *rand.Rand, c kerneltest.Case, s split, i int) kerneltest.Case {
	typ := ggml.Type(c.Kernel.Types["w"])
	rows, units, tokens := s.shape(r, i%60, typ)
	has := slots(c)
	off, behind := r.IntN(4), r.IntN(3)
	stride := off + rows + behind
	c = fresh(c)
	xRows := tokens
	if has["outs"] {
		xRows = tokens + 3
		outs := make([]uint32, tokens)
		for j := range outs {
			outs[j] = uint32(r.IntN(xRows))
		}
		c.Memory["outs"] = kerneltest.U32(outs...)
	}
	input(r, c, normed(has), xRows, units)
	w := kerneltest.RandomMatrix(r, typ, rows, units*32)
	c.Memory["w"] = &program.Memory{Form: w.Form}
	if has["res"] {
		c.Memory["res"] = kerneltest.F32(normal(r, tokens*stride))
	}
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, tokens*stride)
	c.Constants["planes"], c.Constants["rows"] = w.Planes, uint32(rows)
	c.Constants["y_stride"], c.Constants["y_off"], c.Constants["cap"] = uint32(stride), uint32(off), 0.0
	c.Grid = [3]uint32{s.groups(rows), uint32(tokens), 1}
	c.Bounds["y"] = sumBound(units * 32)
	return c
}

// slots are the names of the kernel's variables.
func slots(c kerneltest.Case) map[string]bool {
	has := map[string]bool{}
	for _, s := range c.Kernel.Slots {
		has[s.Name] = true
	}
	return has
}

// fresh is a case on the same kernel with nothing bound.
func fresh(c kerneltest.Case) kerneltest.Case {
	return kerneltest.Case{Kernel: c.Kernel, Ref: c.Ref, Grid: [3]uint32{1, 1, 1}, Constants: map[string]any{},
		Memory: map[string]*program.Memory{}, Bounds: map[string]kerneltest.Bound{}}
}

// normed is the choice x of a kernel with these variables.
func normed(has map[string]bool) string {
	if has["nw"] {
		return "norm"
	}
	return "plain"
}
