package kerneltest_test

import (
	"fmt"
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

// wideWidths are widths and all others that lib/sum.wgsl has a form for.
var wideWidths = []uint32{8, 16, 32, 64, 128, 256, 512, 1024}

func TestRMSNorm(t *testing.T) {
	r := random(t)
	for i, row := range pairs(r, len(wideWidths), 3, 2, 2, 3) {
		out, value := []string{"put", "add", "scaled"}[row[1]], choice(row[3], "one", "four")
		w := wideWidths[row[0]]
		c := build(t, kernels.Spec{Name: "rmsnorm", Choices: map[string]string{"out": out, "rows": choice(row[2], "all", "outs"), "value": value,
			"more": []string{"none", "one", "two"}[row[4]]},
			Params: map[string]uint32{"W": w}})
		for _, n := range []int{1, 3, int(w), int(w) + 1, 4 * int(w), 4*int(w) + 1, 32 * (1 + r.IntN(90))} { // as many as stay in registers, and more
			n *= int(c.Kernel.Params["VALUES"])
			for _, size := range []float64{0, 1e-12, 1, 1e12} { // eps decides, or the values do
				t.Run(fmt.Sprint(i, c.Kernel.Name, n, size), func(t *testing.T) { check(t, "rmsnorm", rmsNormCase(r, c, n, size)) })
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
	has := slots(c)
	if has["outs"] {
		var outs []uint32
		for range tokens {
			outs = append(outs, uint32(r.IntN(tokens)))
		}
		c.Memory["outs"] = kerneltest.U32(outs...)
	}
	if has["res"] {
		c.Memory["res"] = kerneltest.F32(normal(r, n*tokens))
	}
	if has["factor"] {
		c.Memory["factor"] = kerneltest.F32(normal(r, 1))
	}
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, n*tokens)
	c.Grid = [3]uint32{uint32(tokens), 1, 1}
	c.Bounds["y"] = kerneltest.Bound{NMSE: fewBound.NMSE, Max: fewBound.Max, Rms: 0.1} // a sum may cancel
	for _, more := range []string{"1", "2"} {
		if has["nw"+more] {
			c.Memory["nw"+more], c.Memory["y"+more] = kerneltest.F32(normal(r, n)), kerneltest.Output(program.Elem_F32, n*tokens)
			c.Bounds["y"+more] = c.Bounds["y"]
		}
	}
	return c
}

func TestGate(t *testing.T) {
	r := random(t)
	for i, row := range pairs(r, len(widths), 2, 2) {
		c := build(t, kernels.Spec{Name: "gate", Choices: map[string]string{"out": choice(row[1], "put", "add")},
			Params: map[string]uint32{"W": widths[row[0]], "EACH": uint32(row[2])}})
		for j := range 8 {
			t.Run(fmt.Sprint(i, c.Kernel.Name, j), func(t *testing.T) { check(t, "gate", gateCase(r, c, j)) })
		}
	}
}

// gateCase has gates from far below to far above zero: exp overflows, and the gate is 0 or 1.
func gateCase(r *rand.Rand, c kerneltest.Case, i int) kerneltest.Case {
	c = fresh(c)
	w, tokens := int(c.Kernel.Params["W"]), pick(r, 1, 4)
	width, groups := pick(r, 1, 3, w, 128), pick(r, 1, 2, 7)
	gates := 1
	if c.Kernel.Params["EACH"] == 1 {
		gates = width
	}
	off, step := r.IntN(5), gates+r.IntN(4)
	row := off + groups*step + r.IntN(3)
	g := normal(r, tokens*row)
	for j := range g {
		g[j] *= []float64{1, 30, 1e4, 3e38}[i%4] / 5
	}
	for name, v := range map[string]int{"n": width * groups, "width": width, "g_row": row, "g_off": off, "g_step": step} {
		c.Constants[name] = uint32(v)
	}
	c.Memory["x"], c.Memory["g"] = kerneltest.F32(normal(r, tokens*width*groups)), kerneltest.F32(g)
	if slots(c)["res"] {
		c.Memory["res"] = kerneltest.F32(normal(r, tokens*width*groups))
	}
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, tokens*width*groups)
	c.Grid = [3]uint32{uint32((width*groups + w - 1) / w), uint32(tokens), 1}
	c.Bounds["y"] = kerneltest.Bound{NMSE: fewBound.NMSE, Max: fewBound.Max, Rms: 0.1}
	return c
}

func TestScale(t *testing.T) {
	r := random(t)
	for _, w := range widths {
		c := build(t, kernels.Spec{Name: "scale", Params: map[string]uint32{"W": w}})
		for _, n := range []int{1, int(w) + 1, 32 * (1 + r.IntN(60))} {
			check(t, "scale", scaleCase(r, c, n, pick(r, 1, 5)))
		}
	}
}

func scaleCase(r *rand.Rand, c kerneltest.Case, n, tokens int) kerneltest.Case {
	c = fresh(c)
	w := int(c.Kernel.Params["W"])
	c.Constants["n"] = uint32(n)
	c.Memory["x"], c.Memory["factor"] = kerneltest.F32(normal(r, n*tokens)), kerneltest.F32(normal(r, 1))
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, n*tokens)
	c.Grid = [3]uint32{uint32((n + w - 1) / w), uint32(tokens), 1}
	c.Bounds["y"] = kerneltest.Bound{NMSE: 1e-14, Max: 1e-6} // one rounding
	return c
}
