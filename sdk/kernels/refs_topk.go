package kernels

import (
	"math"
	"slices"

	"github.com/sluicehost/sluice/sdk/program"
)

// refTopK follows the spec's Routing section: rank is softmax(r), or sigmoid(r) + bias.
func refTopK(c *program.Call) {
	e, k := int(c.Param("E")), int(c.Param("K"))
	for t := range int(c.Grid[0]) {
		prob, rank := scores(c, c.Values("r")[t*e:(t+1)*e])
		picks := best(rank, k, keptGroups(c, rank))
		var sum float64
		for _, p := range picks {
			sum += prob[p]
		}
		f := c.F32("scale")
		if c.Param("NORM") == 1 {
			f /= max(sum, 6.103515625e-5)
		}
		for i, p := range picks {
			w := prob[p] * f
			if c.Has("expert_scale") {
				w *= c.Values("expert_scale")[p]
			}
			c.Store("picks", t*k+i, float64(p))
			c.Store("pw", t*k+i, w)
		}
	}
}

// best lists the k of greatest rank, the lower index among equals, of those that may be picked.
func best(rank []float64, k int, may []bool) []int {
	var out []int
	for range k {
		pick := -1
		for j := range rank {
			if may[j] && !slices.Contains(out, j) && (pick < 0 || above(rank[j], rank[pick])) {
				pick = j
			}
		}
		out = append(out, pick)
	}
	return out
}

// keptGroups tells the experts of the USED best groups: by the sum of a group's two best ranks.
func keptGroups(c *program.Call, rank []float64) []bool {
	groups := int(c.Param("GROUPS"))
	kept := slices.Repeat([]bool{groups == 1}, len(rank))
	if groups == 1 {
		return kept
	}
	size, all := len(rank)/groups, slices.Repeat([]bool{true}, len(rank))
	sums := make([]float64, groups)
	for g := range sums {
		of := rank[g*size : (g+1)*size]
		for _, i := range best(of, 2, all) {
			sums[g] += of[i]
		}
	}
	for _, g := range best(sums, int(c.Param("USED")), all) {
		copy(kept[g*size:], all[:size])
	}
	return kept
}

// above is lib/order.wgsl's order: NaN lies below all numbers.
func above(a, b float64) bool { return a > b || !math.IsNaN(a) && math.IsNaN(b) }

// scores gives each expert's probability and the rank it is picked by.
func scores(c *program.Call, logits []float64) (prob, rank []float64) {
	prob, rank = make([]float64, len(logits)), make([]float64, len(logits))
	r := make([]float64, len(logits))
	for i, v := range logits {
		r[i] = v * c.F32("in_scale")
	}
	if c.Has("bias") {
		for i, v := range r {
			prob[i] = 1 / (1 + math.Exp(-v))
			rank[i] = prob[i] + c.Values("bias")[i]
		}
		return prob, rank
	}
	m, sum := r[0], 0.0
	for _, v := range r {
		m = max(m, v)
	}
	for _, v := range r {
		sum += math.Exp(v - m)
	}
	for i, v := range r {
		prob[i] = math.Exp(v-m) / sum
		rank[i] = prob[i]
	}
	return prob, rank
}
