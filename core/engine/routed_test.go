package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

// Routed is told every layer's picks once a step, one set a token.
func TestRouted(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 12)
	picked := map[[2]int]int{}
	m := load(t, dev, f, engine.Options{Routed: func(layer, pos int, picks, _ []int) { picked[[2]int{layer, pos}] += len(picks) }})
	feed(t, session(t, m), tokens)
	if m.Guesses(0) != 1 || m.Guesses(1) != 0 || m.Counters(nil)[0].Guessed != 0 {
		t.Errorf("have guesses at %d and %d layers, want 1 and 0", m.Guesses(0), m.Guesses(1))
	}
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

// Each layer's guesses are told with its picks in steps of one token, whatever depth is read ahead, and change nothing.
func TestRoutedGuesses(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 8)
	want := oneByOne(t, load(t, dev, f, engine.Options{}), tokens)
	told, right := map[int]int{}, 0
	var last []int
	m := load(t, dev, f, engine.Options{Sessions: 2, Lookahead: -1, Budget: smallestBudget(load(t, dev, f, engine.Options{Sessions: 2})), Routed: func(layer, pos int, picks, guesses []int) {
		told[layer] += len(guesses)
		for _, p := range picks {
			if layer == 1 && slices.Contains(last, p) {
				right++
			}
		}
		last = slices.Clone(guesses)
	}})
	if !equalRows(oneByOne(t, m, tokens), want) {
		t.Error("a trace changes logits")
	}
	if n := 2 * len(tokens) * toyTopK; told[0] != n || told[1] != 0 || right*3 < n {
		t.Errorf("have %v guesses by layer, %d right; want %d, more than a third of them right", told, right, n)
	}
	if c := guesses(m); c.Guessed != 0 {
		t.Errorf("have %d guesses read, want none", c.Guessed)
	}
}

// A depth that the plan does not have is refused.
func TestLookaheadTooDeep(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	m := load(t, dev, toyFile(t, seed), engine.Options{})
	if _, _, err := m.Predict(dev.Limits(), engine.Options{Lookahead: 2}); err == nil || !strings.Contains(err.Error(), "lookahead: have 2 layers, want at most 1") {
		t.Errorf("have error %v", err)
	}
}
