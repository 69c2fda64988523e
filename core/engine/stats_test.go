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
	if have, want := m.Kernels(), len(m.Program.Kernels)+1; have != want {
		t.Errorf("have %d kernels, want %d: the program's and the one that resolves picks", have, want)
	}
	s := m.Stats()
	if s.Tokens != 10 || s.Steps != 2 || s.Readbacks != 6 || s.Waves != 0 { // two MoE layers and the logits
		t.Errorf("have %+v, want 10 tokens, 2 steps, 6 readbacks, no waves", s)
	}
	if s.GPUWait <= 0 || s.DiskWait <= 0 || s.Upload <= 0 || s.Encode <= 0 {
		t.Errorf("have %+v, want time in each part", s)
	}
}
