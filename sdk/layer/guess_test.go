package layer_test

import (
	"slices"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/layer"
	"github.com/sluicehost/sluice/sdk/plugintest"
	"github.com/sluicehost/sluice/sdk/program"
)

// Each MoE layer guesses at those after it, the next first, and at none from a layer on whose router reads no norm.
func TestGuesses(t *testing.T) {
	const layers, odd = 12, 10
	m := moeTest{layers: layers, hidden: 64, ff: 32, experts: 4, topK: 2, types: alike(ggml.F32), router: layer.Router{}}
	a := m.author()
	a.encode = func(e *layer.Encoder) {
		x := e.Embed("embd", 1)
		for i := range layers {
			l := e.Layer(i)
			r := layer.Router{Weight: "router", From: l.RMSNorm(x, "router_norm", 1e-5)}
			if i == odd {
				r.From = x
			}
			x = l.Result(l.Add(x, l.Experts(l.RMSNorm(x, "norm", 1e-5), r, blockFFN("", m.ff, false))))
		}
		e.Logits(e.FinalNorm(x, 1e-5, "final"), "embd")
	}
	limits := &program.Limits{WorkgroupBytes: 32 << 10, MaxGroups: 65535, MaxBindings: 8, MaxBinding: 1 << 30, MaxInvocations: 1024}
	_, _, _, p := plugintest.Encode(t, a, m.file(), limits, false)
	have := map[int][]int{}
	for _, s := range p.Sections {
		if s.Kind == program.Kind_GUESS {
			have[int(s.Layer)] = append(have[int(s.Layer)], int(s.GuessOf))
		}
	}
	for i := range layers {
		var want []int
		for j := i + 1; j < odd && j <= i+8; j++ {
			want = append(want, j)
		}
		if !slices.Equal(have[i], want) {
			t.Errorf("layer %d: have guesses at %v, want %v", i, have[i], want)
		}
	}
}
