package kerneltest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// logits draws router logits of a kind: what a model gives, ties, and what only a broken one gives.
func logits(r *rand.Rand, kind string, n int) []float64 {
	v := normal(r, n)
	for i := range v {
		switch kind {
		case "ties":
			v[i] = float64(r.IntN(3)) - 1
		case "equal":
			v[i] = 0.25
		case "huge": // sigmoid is 0 or 1; one probability of softmax is 1
			v[i] *= 1e4
		case "tiny":
			v[i] *= 1e-30
		case "infinite":
			v[i] = pick(r, v[i], math.Inf(-1), v[i]-200)
		}
	}
	return v
}

var logitKinds = []string{"normal", "ties", "equal", "huge", "tiny", "infinite"}

func TestTopK(t *testing.T) {
	r := random(t)
	sizes := [][2]uint32{{3, 1}, {3, 3}, {8, 2}, {32, 4}, {64, 6}, {65, 5}, {128, 8}, {256, 8}, {512, 7}, {512, 10}}
	axes := []int{len(sizes), 2, 2, len(laneWidths), 2}
	for i, row := range also(r, 2, pairs(r, axes...), axes...) {
		size, score := sizes[row[0]], choice(row[1], "sigmoid", "softmax")
		c := build(t, kernels.Spec{Name: "topk", Choices: map[string]string{"score": score, "weight": choice(row[4], "plain", "scaled")},
			Params: map[string]uint32{"E": size[0], "K": size[1], "NORM": uint32(row[2]), "W": laneWidths[row[3]]}})
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for _, kind := range logitKinds {
				if kind != "infinite" || score == "sigmoid" || size[0] > 2*size[1] {
					topK(t, topKCase(r, c, kind), kind)
				}
			}
		})
	}
}

// exp is good to about 2^-21 on lavapipe, less for large arguments.
var weightBound = kerneltest.Bound{NMSE: 1e-11, Max: 1e-5}

func topKCase(r *rand.Rand, c kerneltest.Case, kind string) kerneltest.Case {
	has := slots(c)
	c = fresh(c)
	e := int(c.Kernel.Params["E"])
	tokens := pick(r, 1, 5)
	c.Memory["r"] = kerneltest.F32(logits(r, kind, e*tokens))
	for i := r.IntN(e); i < e*tokens && kind == "infinite"; i += e {
		c.Memory["r"].Values[i] = float64(float32(r.NormFloat64())) // softmax of nothing but -inf is NaN
	}
	if has["bias"] {
		c.Memory["bias"] = kerneltest.F32(logits(r, pick(r, "normal", "ties", "equal"), e))
	}
	c.Constants["in_scale"] = pick(r, 1.0, 0.3)
	return routes(r, c, tokens)
}

// routes binds what does not depend on the logits.
func routes(r *rand.Rand, c kerneltest.Case, tokens int) kerneltest.Case {
	e, k := int(c.Kernel.Params["E"]), int(c.Kernel.Params["K"])
	if slots(c)["expert_scale"] {
		c.Memory["expert_scale"] = kerneltest.F32(normal(r, e))
	}
	c.Memory["picks"] = kerneltest.Output(program.Elem_U32, k*tokens)
	c.Memory["pw"] = kerneltest.Output(program.Elem_F32, k*tokens)
	c.Constants["scale"] = pick(r, 1.0, 2.5)
	c.Grid[0] = uint32(tokens)
	return c
}

func topK(t *testing.T, c kerneltest.Case, kind string) {
	k, tokens := int(c.Kernel.Params["K"]), int(c.Grid[0])
	want, have := kerneltest.Reference(t, c), kerneltest.Dispatch(t, c)
	for row := range tokens {
		if err := checkPicks(c, row, have["picks"].Values[row*k:][:k], keptExperts(c, row)); err != nil {
			t.Fatalf("%s, %s logits, row %d: %v\npicks %v, want %v", c.Kernel.Name, kind, row, err,
				have["picks"].Values[row*k:][:k], want["picks"].Values[row*k:][:k])
		}
	}
	s, err := kerneltest.Compare(have["pw"], weights(c, have["picks"].Values), weightBound)
	if err != nil {
		t.Errorf("%s, %s logits: weights: %v", c.Kernel.Name, kind, err)
	}
	key := "topk pw"
	worst[key] = kerneltest.Stat{Bound: kerneltest.Bound{NMSE: max(worst[key].NMSE, s.NMSE), Max: max(worst[key].Max, s.Max)}}
}

// rank is the probability of expert e of a row and what it is picked by, in float64.
func rank(c kerneltest.Case, row, e int) (prob, by float64) {
	n := int(c.Kernel.Params["E"])
	r := slices.Clone(c.Memory["r"].Values[row*n:][:n])
	for i := range r {
		r[i] *= float64(float32(c.Constants["in_scale"].(float64)))
	}
	if bias := c.Memory["bias"]; bias != nil {
		p := 1 / (1 + math.Exp(-r[e]))
		return p, p + bias.Values[e]
	}
	m, sum := math.Inf(-1), 0.0
	for _, v := range r {
		m = max(m, v)
	}
	for _, v := range r {
		sum += math.Exp(v - m)
	}
	p := math.Exp(r[e]-m) / sum
	return p, p
}

// checkPicks holds a row's picks against float64 ranks: no expert twice, none passed over that ranks higher by more than
// f32 can tell, and of experts with equal input the lower id first. kept are those that may be picked, nil for all.
func checkPicks(c kerneltest.Case, row int, picks []float64, kept []bool) error {
	const noise = 4e-7 // f32 rounding of a probability and a sum, about 1
	n := int(c.Kernel.Params["E"])
	left := map[int]bool{}
	for e := range n {
		left[e] = kept == nil || kept[e]
	}
	for _, p := range picks {
		have := int(p)
		if !left[have] {
			return fmt.Errorf("expert %v is no expert, or picked twice", p)
		}
		left[have] = false
		_, rankHave := rank(c, row, have)
		for e := range n {
			if !left[e] {
				continue
			}
			_, rankE := rank(c, row, e)
			if rankE > rankHave+noise*max(1, math.Abs(rankE)) {
				return fmt.Errorf("expert %d (%v) is picked before %d (%v)", have, rankHave, e, rankE)
			}
			if e < have && same(c, row, e, have) {
				return fmt.Errorf("expert %d is picked before its equal %d", have, e)
			}
		}
	}
	return nil
}

// same reports whether two experts' inputs are equal.
func same(c kerneltest.Case, row, a, b int) bool {
	n := int(c.Kernel.Params["E"])
	r, bias := c.Memory["r"].Values[row*n:], c.Memory["bias"]
	return r[a] == r[b] && (bias == nil || bias.Values[a] == bias.Values[b])
}

// weights are the float64 weights of the picks.
func weights(c kerneltest.Case, picks []float64) *program.Memory {
	k := int(c.Kernel.Params["K"])
	out := kerneltest.Output(program.Elem_F32, len(picks))
	for row := range len(picks) / k {
		sum := 0.0
		for _, p := range picks[row*k:][:k] {
			prob, _ := rank(c, row, int(p))
			sum += prob
		}
		for i, p := range picks[row*k:][:k] {
			prob, _ := rank(c, row, int(p))
			f := c.Constants["scale"].(float64)
			if c.Kernel.Params["NORM"] == 1 {
				f /= max(sum, 0x1p-14)
			}
			if prob *= f; prob < 0x1p-126 {
				prob = 0 // less than f32 can hold
			}
			if scale := c.Memory["expert_scale"]; scale != nil {
				prob *= scale.Values[int(p)]
			}
			out.Values[row*k+i] = prob
		}
	}
	return out
}
