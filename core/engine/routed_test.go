package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

// Routed is told every layer's picks once a step, one set a token.
func TestRouted(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 12)
	picked := map[[2]int]int{}
	m := load(t, dev, f, engine.Options{Routed: func(layer, pos int, picks []int) { picked[[2]int{layer, pos}] += len(picks) }})
	feed(t, session(t, m), tokens)
	k, sum := int(m.Plan.Model.TopK), 0
	for key, n := range picked {
		if sum += n; n%k != 0 {
			t.Errorf("layer and position %v: have %d picks, want a multiple of %d", key, n, k)
		}
	}
	if want := len(tokens) * k * len(m.Plan.Model.MoeLayers); sum != want {
		t.Errorf("have %d picks in all, want %d", sum, want)
	}
}
