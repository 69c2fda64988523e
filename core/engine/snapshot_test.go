package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/program"
)

// continueWith makes s hold tokens and gives the last logits and how many tokens were kept.
func continueWith(t *testing.T, s *engine.Session, tokens []int32) (last []float32, kept int) {
	t.Helper()
	kept, err := s.Continue(context.Background(), tokens, 1, func(_ int, l *engine.Logits) error {
		last = append([]float32(nil), l.All...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return last, kept
}

// A second turn re-uses the prefix up to the snapshot and gives the logits of a fresh session.
func TestContinueReusesPrefix(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f := toyFile(t, seed)
	m := load(t, dev, f, engine.Options{Snapshots: 2, Chunk: 1})
	s := session(t, m)
	one := tokensOf(seed, 20)
	other := append(append([]int32(nil), one[:12]...), tokensOf(seed+1, 6)...)
	steps := []struct {
		name   string
		tokens []int32
		kept   int
		snap   bool
	}{
		{"first prompt", one[:8], 0, true},
		{"longer prompt", one[:12], 8, true},
		{"reply and next turn", one, 12, false},
		{"the same again", one, 12, false}, // the state at 19 is gone: back to the snapshot
		{"another branch", other, 12, false},
		{"back before the second snapshot", one[:10], 8, false},
		{"nothing in common", tokensOf(seed+2, 5), 0, false},
		{"empty again", one[:9], 0, false},
	}
	for _, step := range steps {
		got, kept := continueWith(t, s, step.tokens)
		if kept != step.kept {
			t.Errorf("%s: kept %d tokens, want %d", step.name, kept, step.kept)
		}
		fresh := session(t, m)
		want := feed(t, fresh, step.tokens)
		if !equalRows([][]float32{got}, want[len(want)-1:]) {
			t.Errorf("%s: logits differ from a fresh session's", step.name)
		}
		if step.snap {
			if err := s.Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A session whose step failed is rebuilt from its snapshot.
func TestContinueRebuildsBrokenSession(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 40)
	src := &faulty{}
	open := func(p *program.Plan, w []*program.Placed, r []*program.PlacedRecord) (store.Source, error) {
		s, err := opener(f)(p, w, r)
		src.Source = s
		return src, err
	}
	whole := load(t, dev, f, engine.Options{Chunk: 1})
	want := feed(t, session(t, whole), tokens)
	o := engine.Options{Snapshots: 1, KVF32: true, Chunk: 1}
	m, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, open, o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o.Budget = m.Budget.Total() - m.Budget.Pool + smallestBudget(whole) - (whole.Budget.Total() - whole.Budget.Pool)
	small, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, open, o)
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	s := session(t, small)
	continueWith(t, s, tokens[:6])
	if err := s.Snapshot(); err != nil {
		t.Fatal(err)
	}
	src.failing.Store(true)
	if _, err := s.Continue(context.Background(), tokens, 0, nil); !errors.Is(err, errDisk) {
		t.Fatalf("have error %v, want the disk's", err)
	}
	src.failing.Store(false)
	got, kept := continueWith(t, s, tokens)
	if kept != 6 {
		t.Errorf("kept %d tokens, want 6", kept)
	}
	if !equalRows([][]float32{got}, want[len(want)-1:]) {
		t.Error("logits differ after the rebuild")
	}
}
