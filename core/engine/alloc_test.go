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
			// The first runs still meet new experts and lists that grow, and any may meet a pool that the runtime has emptied.
			least := testing.AllocsPerRun(20, step)
			for i := 0; i < 10 && least > 0; i++ {
				least = min(least, testing.AllocsPerRun(20, step))
			}
			if least > 0 {
				t.Errorf("have %v allocations a token, want none", least)
			}
		})
	}
}
