package kerneltest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

func TestConv(t *testing.T) {
	r := random(t)
	for _, taps := range []uint32{2, 3, 4, 7} {
		for _, shape := range [][2]uint32{{16, 1}, {64, 1}, {256, 8}} {
			c := build(t, kernels.Spec{Name: "conv", Params: map[string]uint32{"TAPS": taps, "W": shape[0], "LANES": shape[1]}})
			t.Run(c.Kernel.Name, func(t *testing.T) {
				for _, tokens := range []int{1, 2, 5, 9, 1 + r.IntN(60)} { // fewer than the taps or lanes, and more
					check(t, "conv", convCase(r, c, tokens))
				}
			})
		}
	}
}

func convCase(r *rand.Rand, c kerneltest.Case, tokens int) kerneltest.Case {
	c = fresh(c)
	taps, channels := int(c.Kernel.Params["TAPS"]), int(c.Kernel.Params["W"]/c.Kernel.Params["LANES"])
	n, row0, off := pick(r, 1, channels, channels+1, 3*channels-1), pick(r, 0, 3), pick(r, 0, 5)
	stride := off + n + pick(r, 0, 4)
	c.Step = program.StepUniform{T: uint32(tokens), Row0: uint32(row0), S: uint32(tokens), Chunk: uint32(tokens)}
	c.Constants["n"], c.Constants["stride"], c.Constants["off"] = uint32(n), uint32(stride), uint32(off)
	c.Memory["x"] = after(row0*stride, normal(r, tokens*stride))
	c.Memory["kernel"] = kerneltest.F32(normal(r, taps*n))
	c.Memory["state"] = kerneltest.F32(normal(r, (taps-1)*n))
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, (row0+tokens)*n)
	c.Grid[0] = uint32((n + channels - 1) / channels)
	c.Bounds["state"] = kerneltest.Bound{}
	c.Bounds["y"] = kerneltest.Bound{NMSE: fewBound.NMSE, Max: fewBound.Max, Rms: 0.1} // taps may cancel in a lone channel
	return c
}

// deltaShapes are TB and columns as sdk/layer picks them: for a software device and many tokens, and for one token on a GPU, where
// invocations share a column, and do not.
var deltaShapes = [][3]uint32{{8, 32, 0}, {1, 32, 1}, {1, 32, 0}}

// deltaBound is of results that a few hundred f32 products and sums make, token after token.
// The worst are what is left of large values of the state; where all of it has decayed, exp is wrong by the error of its argument.
var deltaBound = kerneltest.Bound{NMSE: 4e-12, Max: 1e-4, Rms: 1e-3}

func TestDeltaRule(t *testing.T) {
	r := random(t)
	sizes := []uint32{32, 64, 96, 128}
	axes := []int{2, len(sizes), len(deltaShapes)}
	for i, row := range also(r, 2, pairs(r, axes...), axes...) {
		c := build(t, deltaSpec(choice(row[0], "head", "channel"), sizes[row[1]], deltaShapes[row[2]]))
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for _, tokens := range []int{1, 2, 7, 8, 9, 1 + r.IntN(40)} {
				check(t, "delta_rule", deltaCase(r, c, tokens))
			}
		})
	}
}

func deltaSpec(decay string, d uint32, shape [3]uint32) kernels.Spec {
	split := uint32(1)
	if shape[2] > 0 {
		split = d / 32
	}
	return kernels.Spec{Name: "delta_rule", Choices: map[string]string{"decay": decay},
		Params: map[string]uint32{"D": d, "TB": shape[0], "W": shape[1] * split, "SPLIT": split}}
}

func deltaCase(r *rand.Rand, c kerneltest.Case, tokens int) kerneltest.Case {
	c = fresh(c)
	keyHeads := pick(r, 1, 2, 3)
	return deltaOf(r, c, tokens, keyHeads, keyHeads*pick(r, 1, 2), pick(r, 0, 2))
}

// deltaOf has decays of all sizes, a zero key and a zero query.
func deltaOf(r *rand.Rand, c kerneltest.Case, tokens, keyHeads, heads, row0 int) kerneltest.Case {
	d, perHead := int(c.Kernel.Params["D"]), c.Kernel.Params["CHANNEL"] == 0
	width, raws := (2*keyHeads+heads)*d, heads
	if !perHead {
		raws *= d
	}
	rows := row0 + tokens
	betaOff, rawOff := pick(r, 0, 3), pick(r, 0, 3)
	betaStride, rawStride := betaOff+heads+pick(r, 0, 2), rawOff+raws+pick(r, 0, 2)
	c.Step = program.StepUniform{T: uint32(tokens), Row0: uint32(row0), S: uint32(rows), Chunk: uint32(rows)}
	for k, v := range map[string]int{"heads": heads, "key_heads": keyHeads, "beta_stride": betaStride, "beta_off": betaOff,
		"raw_stride": rawStride, "raw_off": rawOff} {
		c.Constants[k] = uint32(v)
	}
	c.Constants["lower"], c.Constants["eps"] = -5.0, 1e-6
	qkv := normal(r, tokens*width)
	clear(qkv[:d]) // the first head's first q, and its k at the last token
	clear(qkv[(tokens-1)*width+keyHeads*d:][:d])
	c.Memory["qkv"] = after(row0*width, qkv)
	c.Memory["beta"] = after(row0*betaStride, normal(r, tokens*betaStride))
	c.Memory["raw"] = after(row0*rawStride, scaled(normal(r, tokens*rawStride), 4))
	c.Memory["dt"] = kerneltest.F32(normal(r, raws))
	a := make([]float64, heads)
	for i := range a {
		a[i] = math.Exp(2 * r.NormFloat64()) // KDA's is positive
		if perHead {
			a[i] = -a[i]
		}
	}
	c.Memory["a"] = kerneltest.F32(a)
	c.Memory["state"] = kerneltest.F32(normal(r, heads*d*d))
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, rows*heads*d)
	c.Grid = [3]uint32{uint32(heads), uint32(d) * c.Kernel.Params["SPLIT"] / c.Kernel.Params["W"], 1}
	c.Bounds["y"], c.Bounds["state"] = deltaBound, deltaBound
	return c
}

func scaled(v []float64, by float64) []float64 {
	for i := range v {
		v[i] *= by
	}
	return v
}

func TestGatedNorm(t *testing.T) {
	r := random(t)
	for _, w := range laneWidths {
		for silu := range uint32(2) {
			c := build(t, kernels.Spec{Name: "gated_norm", Params: map[string]uint32{"W": w, "SILU": silu}})
			for _, d := range []int{32, 96, 128, 256} {
				check(t, "gated_norm", gatedNormCase(r, c, d))
			}
		}
	}
}

func gatedNormCase(r *rand.Rand, c kerneltest.Case, d int) kerneltest.Case {
	c = fresh(c)
	heads, tokens, off := pick(r, 1, 3), pick(r, 1, 5), pick(r, 0, 3)
	stride := off + heads*d + pick(r, 0, 2)
	c.Constants["d"], c.Constants["heads"], c.Constants["stride"], c.Constants["off"] = uint32(d), uint32(heads), uint32(stride), uint32(off)
	c.Constants["eps"] = 1e-6
	gate := normal(r, tokens*stride)
	gate[off], gate[off+1] = 200, -200 // e^200 is infinite
	c.Memory["x"], c.Memory["nw"], c.Memory["gate"] = kerneltest.F32(normal(r, tokens*heads*d)), kerneltest.F32(normal(r, d)), kerneltest.F32(gate)
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, tokens*heads*d)
	c.Grid = [3]uint32{uint32(heads), uint32(tokens), 1}
	c.Bounds["y"] = fewBound
	return c
}
