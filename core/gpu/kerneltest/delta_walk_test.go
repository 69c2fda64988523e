package kerneltest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// TestDeltaRuleCut: a walk in pieces leaves the same bits as in one: rows before a piece are another session's.
func TestDeltaRuleCut(t *testing.T) {
	r := random(t)
	for _, decay := range []string{"head", "channel"} {
		c := deltaOf(r, fresh(build(t, deltaSpec(decay, 64, deltaShapes[0]))), 29, 2, 4, 0)
		whole := kerneltest.Dispatch(t, c)
		var y []float64
		for _, n := range []int{1, 7, 8, 13} {
			piece := c
			piece.Memory = map[string]*program.Memory{}
			for k, m := range c.Memory {
				piece.Memory[k] = m
			}
			piece.Step.Row0, piece.Step.T = uint32(len(y)/256), uint32(n)
			out := kerneltest.Dispatch(t, piece)
			y = append(y, out["y"].Values[len(y):len(y)+n*256]...)
			c.Memory["state"] = out["state"]
		}
		if gputest.Open(t).Limits().CPU { // a GPU's compiler may contract other products in the form for one token
			if n := differ(y, whole["y"].Values) + differ(c.Memory["state"].Values, whole["state"].Values); n > 0 {
				t.Errorf("%s: %d values differ", decay, n)
			}
		}
		near := kerneltest.Bound{NMSE: 1e-11, Max: 1e-5}
		if _, err := kerneltest.Compare(kerneltest.F32(y), whole["y"], near); err != nil {
			t.Errorf("%s: %v", decay, err)
		}
	}
}

// walk is one head of size 128 over many tokens whose raw decays are given, from an empty state.
func walk(t *testing.T, decay string, shape [3]uint32, tokens int, a float64, raw func(token, i int) float64) kerneltest.Case {
	r := random(t)
	c := deltaOf(r, fresh(build(t, deltaSpec(decay, 128, shape))), tokens, 1, 1, 0)
	m := c.Memory["raw"].Values
	width := len(m) / tokens
	for i := range m {
		m[i] = float64(float32(raw(i/width, i%width)))
	}
	clear(c.Memory["dt"].Values)
	c.Memory["a"].Values[0] = float64(float32(a))
	clear(c.Memory["state"].Values)
	return c
}

// TestDeltaRuleWalks holds long walks and decays at their ends to the float64 reference. What a token's roundings leave in
// S lives as long as S does: with decays near 1, which f32 has in steps of 2^-24, thousands of tokens add up.
func TestDeltaRuleWalks(t *testing.T) {
	drift := kerneltest.Bound{NMSE: 2e-10, Max: 3e-4}
	for _, x := range []struct {
		name, decay string
		tokens      int
		a           float64
		raw         func(token, i int) float64
		bound       kerneltest.Bound
	}{
		{"forgets within 10 to 1000 tokens", "head", 3000, -1, func(t, _ int) float64 { return -2 - 5*math.Abs(math.Sin(float64(t))) }, drift},
		{"decay 1 - 3e-7", "head", 3000, -1, func(int, int) float64 { return -15 }, drift},
		{"decay 1", "head", 3000, -8, func(int, int) float64 { return -1e4 }, drift},
		{"decay 0", "head", 40, -8, func(int, int) float64 { return 1e4 }, deltaBound},
		{"softplus at its bend", "head", 200, -0.1, func(t, _ int) float64 { return float64(t%41) - 20 }, deltaBound},
		{"softplus of 88 and more", "head", 200, -1e-3, func(t, _ int) float64 { return 80 + float64(t) }, deltaBound},
		{"KDA at its floor", "channel", 200, 1, func(int, int) float64 { return 1e4 }, deltaBound},
		{"KDA without decay", "channel", 3000, 4, func(int, int) float64 { return -1e4 }, drift},
		{"KDA from floor to none, by channel", "channel", 3000, 1, func(_, i int) float64 { return float64(i%128)/4 - 16 }, drift},
		{"KDA of huge logits", "channel", 200, 3e4, func(t, i int) float64 { return 3e4 * math.Sin(float64(t*7+i)) }, deltaBound},
	} {
		for _, shape := range deltaShapes {
			if x.tokens > 200 && shape != deltaShapes[0] {
				continue // the reference takes its time
			}
			t.Run(fmt.Sprint(x.name, shape), func(t *testing.T) {
				c := walk(t, x.decay, shape, x.tokens, x.a, x.raw)
				c.Bounds["y"], c.Bounds["state"] = x.bound, x.bound
				for name, s := range kerneltest.Run(t, c) {
					t.Logf("%s: NMSE %.1g, worst %.1g", name, s.NMSE, s.Max)
				}
			})
		}
	}
}

// TestConvLong: 3,000 tokens in one dispatch, whatever the lanes.
func TestConvLong(t *testing.T) {
	r := random(t)
	for _, shape := range [][2]uint32{{16, 1}, {256, 8}} {
		c := build(t, kernels.Spec{Name: "conv", Params: map[string]uint32{"TAPS": 4, "W": shape[0], "LANES": shape[1]}})
		check(t, "conv", convCase(r, c, 3000))
	}
}

// BenchmarkDeltaRule is the recurrence of a layer of Qwen3.5-35B-A3B, for one token and for a chunk.
func BenchmarkDeltaRule(b *testing.B) {
	for _, decay := range []string{"head", "channel"} {
		for _, x := range []struct {
			tokens int
			shape  [3]uint32
		}{{1, [3]uint32{1, 32}}, {64, [3]uint32{8, 32}}} {
			b.Run(fmt.Sprintf("%s/T=%d/TB=%d", decay, x.tokens, x.shape[0]), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				bench(b, deltaOf(r, fresh(build(b, deltaSpec(decay, 128, x.shape))), x.tokens, 16, 32, 0))
			})
		}
	}
}
