package engine_test

import (
	"context"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/store"
)

// BenchmarkDecode is one token of the toy: what the engine and the driver cost a token, for its arithmetic is next to
// nothing. Once with everything resident, and once with the smallest pool, where experts come and go all the time.
func BenchmarkDecode(b *testing.B) {
	dev := gputest.Open(b)
	f := toyFile(b, 1)
	whole, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, opener(f), engine.Options{Top: 1})
	if err != nil {
		b.Fatal(err)
	}
	smallest := smallestBudget(whole)
	b.Run("resident", func(b *testing.B) { benchDecode(b, whole) })
	if err := whole.Close(); err != nil {
		b.Fatal(err)
	}
	small, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, opener(f), engine.Options{Top: 1, Budget: smallest})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("streaming", func(b *testing.B) { benchDecode(b, small) })
	if err := small.Close(); err != nil {
		b.Fatal(err)
	}
}

func benchDecode(b *testing.B, m *engine.Model) {
	s, err := m.NewSession()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	emit := func(int, *engine.Logits) error { return nil }
	token := int32(0)
	step := func() {
		if s.Room() == 0 {
			if err := s.Reset(); err != nil {
				b.Fatal(err)
			}
		}
		token = (token*5 + 1) % int32(m.Plan.Model.Vocab)
		if err := s.Feed(context.Background(), []int32{token}, 1, emit); err != nil {
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
