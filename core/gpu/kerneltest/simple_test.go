package kerneltest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

func TestShortConv(t *testing.T) {
	r := random(t)
	for _, taps := range []uint32{2, 3, 4, 7} {
		for _, w := range widths {
			c := build(t, kernels.Spec{Name: "shortconv", Params: map[string]uint32{"TAPS": taps, "W": w}})
			t.Run(c.Kernel.Name, func(t *testing.T) {
				for _, tokens := range []int{1, 2, 5, 1 + r.IntN(40)} { // fewer than the taps, and more
					check(t, "shortconv", shortConvCase(r, c, tokens))
				}
			})
		}
	}
}

func shortConvCase(r *rand.Rand, c kerneltest.Case, tokens int) kerneltest.Case {
	c = fresh(c)
	taps, w := int(c.Kernel.Params["TAPS"]), int(c.Kernel.Params["W"])
	hidden, row0 := pick(r, 1, w, w+1, 3*w-1), pick(r, 0, 3)
	c.Step = program.StepUniform{T: uint32(tokens), Row0: uint32(row0), S: uint32(tokens), Chunk: uint32(tokens)}
	c.Constants["hidden"] = uint32(hidden)
	c.Memory["bcx"] = after(row0*3*hidden, normal(r, tokens*3*hidden))
	c.Memory["kernel"] = kerneltest.F32(normal(r, taps*hidden))
	c.Memory["state"] = kerneltest.F32(normal(r, (taps-1)*hidden))
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, (row0+tokens)*hidden)
	c.Grid[0] = uint32((hidden + w - 1) / w)
	c.Bounds["state"] = fewBound
	c.Bounds["y"] = kerneltest.Bound{NMSE: fewBound.NMSE, Max: fewBound.Max, Rms: 0.1} // taps may cancel in a lone channel
	return c
}

func TestAdd(t *testing.T) {
	r := random(t)
	for _, w := range widths {
		c := build(t, kernels.Spec{Name: "add", Params: map[string]uint32{"W": w}})
		for _, n := range []int{1, 3, int(w), int(w) + 1, 32 * (1 + r.IntN(60))} {
			for _, tokens := range []int{1, 5} {
				check(t, "add", addCase(r, c, n, tokens))
			}
		}
	}
}

func addCase(r *rand.Rand, c kerneltest.Case, n, tokens int) kerneltest.Case {
	c = fresh(c)
	w := int(c.Kernel.Params["W"])
	c.Constants["n"] = uint32(n)
	c.Memory["a"], c.Memory["b"] = kerneltest.F32(normal(r, n*tokens)), kerneltest.F32(normal(r, n*tokens))
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, n*tokens)
	c.Grid = [3]uint32{uint32((n + w - 1) / w), uint32(tokens), 1}
	c.Bounds["y"] = kerneltest.Bound{NMSE: 1e-14, Max: 1e-6} // one rounding
	return c
}

func TestRMSNorm(t *testing.T) {
	r := random(t)
	for _, w := range widths {
		c := build(t, kernels.Spec{Name: "rmsnorm", Params: map[string]uint32{"W": w}})
		for _, n := range []int{1, 3, int(w), int(w) + 1, 32 * (1 + r.IntN(90))} {
			for _, size := range []float64{0, 1e-12, 1, 1e12} { // eps decides, or the values do
				check(t, "rmsnorm", rmsNormCase(r, c, n, size))
			}
		}
	}
}

func rmsNormCase(r *rand.Rand, c kerneltest.Case, n int, size float64) kerneltest.Case {
	c = fresh(c)
	tokens := pick(r, 1, 5)
	c.Constants["n"], c.Constants["eps"] = uint32(n), 1e-5
	x := normal(r, n*tokens)
	for i := range x {
		x[i] *= size
	}
	c.Memory["x"], c.Memory["nw"] = kerneltest.F32(x), kerneltest.F32(normal(r, n))
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, n*tokens)
	c.Grid = [3]uint32{uint32(tokens), 1, 1}
	c.Bounds["y"] = fewBound
	return c
}
