package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

// Stats count steps exactly and find time in each part of them.
func TestStats(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	m := load(t, dev, toyFile(t, seed), engine.Options{Chunk: 5})
	feed(t, session(t, m), tokensOf(seed, 10))
	cold := m.Stats().Waves // of experts that were read meanwhile
	if have, want := m.Kernels(), len(m.Program.Kernels)+1; have != want {
		t.Errorf("have %d kernels, want %d: the program's and the one that resolves picks", have, want)
	}
	s := m.Stats()
	if s.Tokens != 10 || s.Steps != 2 || s.Readbacks != 6 || s.Waves > 2*6 { // two MoE layers and the logits
		t.Errorf("have %+v, want 10 tokens, 2 steps, 6 readbacks, at most a wave for each expert", s)
	}
	feed(t, session(t, m), tokensOf(seed, 10))
	if n := m.Stats().Waves - cold; n != 0 {
		t.Errorf("have %d waves with every expert resident, want none beyond one a layer and step", n)
	}
	if s.GPUWait <= 0 || s.DiskWait <= 0 || s.Upload <= 0 || s.Encode <= 0 {
		t.Errorf("have %+v, want time in each part", s)
	}
}

// The pool's counters are summed up once a token: the next one begins where it ended, unless a prompt came between.
func TestTallied(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 10)
	m := load(t, dev, f, engine.Options{Chunk: 5, Budget: smallestBudget(load(t, dev, f, engine.Options{Chunk: 5}))})
	s := session(t, m)
	for _, n := range []int{1, 1, 5, 1, 1} {
		if err := s.Feed(t.Context(), tokens[:n], 0, nil); err != nil {
			t.Fatal(err)
		}
		if have, want := engine.Tallied(m), n == 1; have != want {
			t.Errorf("after a step of %d tokens: have %v, want %v", n, have, want)
		}
	}
}
