package engine_test

import (
	"context"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/store"
)

// BenchmarkDecode is one token of the toy with everything resident: what the engine and the
// driver cost a token, for its arithmetic is next to nothing.
func BenchmarkDecode(b *testing.B) {
	dev := gputest.Open(b)
	f := toyFile(b, 1)
	m, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, opener(f), engine.Options{Top: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	emit := func(int, *engine.Logits) error { return nil }
	step := func() {
		if s.Room() == 0 {
			if err := s.Reset(); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Feed(context.Background(), []int32{1}, 1, emit); err != nil {
			b.Fatal(err)
		}
	}
	for range 20 {
		step()
	}
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
}
