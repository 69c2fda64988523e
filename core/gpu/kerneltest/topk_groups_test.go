package kerneltest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/kernels"
)

// grouped are experts, picks, groups and groups used.
type grouped struct{ e, k, groups, used uint32 }

var groupSizes = []grouped{{8, 2, 4, 2}, {8, 2, 4, 1}, {12, 4, 2, 1}, {64, 8, 8, 4}, {96, 5, 3, 2}, {256, 8, 8, 4}, {512, 8, 8, 4}, {512, 32, 256, 200}}

func groupedCase(t *testing.T, g grouped, score, weight string, norm, w uint32) kerneltest.Case {
	return build(t, kernels.Spec{Name: "topk", Choices: map[string]string{"score": score, "weight": weight},
		Params: map[string]uint32{"E": g.e, "K": g.k, "NORM": norm, "GROUPS": g.groups, "USED": g.used, "W": w}})
}

func TestTopKGroups(t *testing.T) {
	r := random(t)
	axes := []int{len(groupSizes), 2, 2, 2, len(laneWidths)}
	for i, row := range also(r, 2, pairs(r, axes...), axes...) {
		c := groupedCase(t, groupSizes[row[0]], choice(row[1], "sigmoid", "softmax"), choice(row[2], "plain", "scaled"), uint32(row[3]), laneWidths[row[4]])
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for _, kind := range []string{"normal", "tiny"} {
				c := topKCase(r, c, kind)
				for row := range int(c.Grid[0]) {
					for keptExperts(c, row) == nil {
						redraw(r, c, row)
					}
				}
				topK(t, c, kind)
			}
		})
	}
}

// redraw gives a row other logits.
func redraw(r *rand.Rand, c kerneltest.Case, row int) {
	n := int(c.Kernel.Params["E"])
	copy(c.Memory["r"].Values[row*n:][:n], kerneltest.F32(normal(r, n)).Values)
}

// keptExperts are the experts of the groups that a row keeps, in float64; nil for all, and where f32 could keep others.
func keptExperts(c kerneltest.Case, row int) []bool {
	p := c.Kernel.Params
	groups, size, used := int(p["GROUPS"]), int(p["E"]/p["GROUPS"]), int(p["USED"])
	if groups == 1 {
		return nil
	}
	sums := make([]float64, groups)
	for g := range sums {
		ranks := make([]float64, size)
		for i := range ranks {
			_, ranks[i] = rank(c, row, g*size+i)
		}
		slices.Sort(ranks)
		sums[g] = ranks[size-1] + ranks[size-2]
	}
	sorted := slices.Clone(sums)
	slices.Sort(sorted)
	last, next := sorted[groups-used], sorted[groups-used-1]
	if last-next < 1e-5*max(1e-3, math.Abs(last)) {
		return nil
	}
	kept := make([]bool, p["E"])
	for e := range kept {
		kept[e] = sums[e/size] >= last
	}
	return kept
}

// TestTopKTies: where ranks are such that f32 has no noise, picks are the reference's, whatever ties there are between experts
// and between groups, and NaN is last. Ranks are 0.5 and a bias in eighths, or the probabilities of three logits far apart.
func TestTopKTies(t *testing.T) {
	r := random(t)
	sizes := append([]grouped{{5, 5, 1, 1}, {65, 7, 1, 1}, {512, 32, 1, 1}}, groupSizes...)
	axes := []int{len(sizes), 2, 2, len(laneWidths)}
	for i, row := range also(r, 2, pairs(r, axes...), axes...) {
		c := groupedCase(t, sizes[row[0]], choice(row[1], "sigmoid", "softmax"), choice(row[2], "plain", "scaled"), uint32(r.IntN(2)), laneWidths[row[3]])
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for _, rare := range []int{0, 1, 4, 16} {
				check(t, "topk", tiedCase(r, c, rare))
			}
		})
	}
}

// tiedCase has a NaN among its sigmoid router's logits once in rare, never where that is 0.
func tiedCase(r *rand.Rand, c kerneltest.Case, rare int) kerneltest.Case {
	sigmoid := slots(c)["bias"]
	c = fresh(c)
	e, tokens := int(c.Kernel.Params["E"]), pick(r, 1, 5)
	l, bias := make([]float64, e*tokens), make([]float64, e)
	for i := range l {
		switch {
		case !sigmoid:
			l[i] = float64(-r.IntN(3))
		case rare > 0 && r.IntN(rare) == 0:
			l[i] = math.NaN()
		}
	}
	for i := range bias {
		bias[i] = float64(r.IntN(9)-4) / 8
	}
	c.Memory["r"] = kerneltest.F32(l)
	if sigmoid {
		c.Memory["bias"] = kerneltest.F32(bias)
	}
	c.Constants["in_scale"] = 2.0
	c.Bounds["pw"] = weightBound
	return routes(r, c, tokens)
}
