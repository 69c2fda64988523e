package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

// A token allocates nothing, with everything resident and while experts come and go, read ahead or not.
func TestTokensAllocateNothing(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 16)
	smallest := smallestBudget(load(t, dev, f, engine.Options{Top: 1}))
	for name, o := range map[string]engine.Options{
		"resident":        {Top: 1},
		"streaming":       {Top: 1, Budget: smallest, Lookahead: 1},
		"without guesses": {Top: 1, Budget: smallest, Lookahead: -1},
		"waiting":         {Top: 1, Budget: smallest, Wait: true},
		"every logit":     {Budget: smallestBudget(load(t, dev, f, engine.Options{}))},
	} {
		t.Run(name, func(t *testing.T) {
			m := load(t, dev, f, o)
			s, at := session(t, m), 0
			emit := func(int, *engine.Logits) error { return nil }
			step := func() {
				if s.Room() == 0 {
					if err := s.Reset(); err != nil {
						t.Fatal(err)
					}
				}
				at = (at + 1) % len(tokens)
				if err := s.Feed(t.Context(), tokens[at:at+1], 1, emit); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 * len(tokens) { // lists and pools grow to their sizes
				step()
			}
			if n := testing.AllocsPerRun(50, step); n != 0 { // rounded down: the runtime may empty a pool
				t.Errorf("have %v allocations a token, want none", n)
			}
		})
	}
}
