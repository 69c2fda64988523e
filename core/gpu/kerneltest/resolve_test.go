package kerneltest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/kernels"
)

func TestResolve(t *testing.T) {
	r := random(t)
	for _, w := range widths {
		c := build(t, kernels.Spec{Name: "resolve", Params: map[string]uint32{"W": w}})
		t.Run(c.Kernel.Name, func(t *testing.T) {
			for range 12 {
				check(t, "resolve", resolveCase(r, c))
			}
		})
	}
}

// resolveCase is a layer whose picks may miss, of a token that may have stopped before, and now and then a pick that no layer has.
func resolveCase(r *rand.Rand, c kerneltest.Case) kerneltest.Case {
	c = fresh(c)
	const layers, absent = 3, 0xFFFFFFFF
	experts, ops := 1+r.IntN(300), r.IntN(200)
	topK, index := 1+r.IntN(min(experts, 10)), r.IntN(layers)
	depth, stride := r.IntN(4), topK+r.IntN(9)
	grids := 1 + layers*topK*(1+depth)
	guesses := make([]uint32, max(1, depth*stride))
	for i := range guesses {
		guesses[i] = uint32(r.IntN(experts))
	}
	residency := make([]uint32, experts)
	for i := range residency {
		residency[i] = uint32(r.IntN(1000))
		if r.IntN(20) == 0 {
			residency[i] = absent
		}
	}
	var picks []uint32
	for _, e := range r.Perm(experts)[:topK] {
		picks = append(picks, uint32(e))
	}
	if r.IntN(8) == 0 {
		picks[r.IntN(topK)] = uint32(experts + r.IntN(5))
	}
	token := make([]uint32, grids+3*ops)
	for i := range token[1:] {
		token[1+i] = uint32(1 + r.IntN(65535))
	}
	token[0] = uint32(pick(r, 0, 0, 0, 1+r.IntN(layers)))
	c.Memory["picks"], c.Memory["residency"], c.Memory["token"] = kerneltest.U32(picks...), kerneltest.U32(residency...), kerneltest.U32(token...)
	c.Memory["guesses"] = kerneltest.U32(guesses...)
	for name, v := range map[string]int{"depth": depth, "stride": stride, "index": index, "top_k": topK, "experts": experts, "first": grids + r.IntN(3*ops+1), "last": len(token), "log": 1 + index*topK*(1+depth)} {
		c.Constants[name] = uint32(v)
	}
	c.Grid = [3]uint32{1, 1, 1}
	return c
}
