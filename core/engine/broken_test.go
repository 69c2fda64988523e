package engine_test

import (
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/stream"
)

// A closed session refuses to step, however the model steps, and others go on.
func TestClosedSessionRefuses(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 6)
	for name, o := range map[string]engine.Options{"on the GPU": {}, "waiting": {Wait: true}} {
		o.Sessions = 2
		m := load(t, dev, f, o)
		gone, other := session(t, m), session(t, m)
		for _, id := range tokens {
			feed(t, gone, []int32{id})
		}
		gone.Close()
		if err := gone.Feed(t.Context(), tokens[:1], 0, nil); err == nil {
			t.Errorf("%s: have no error", name)
		}
		feed(t, other, tokens)
	}
}

// tryOneByOne gives the logits after each token, fed alone to a session that it closes, up to the first that fails.
func tryOneByOne(t *testing.T, m *engine.Model, tokens []int32) (out [][]float32, err error) {
	t.Helper()
	s := session(t, m)
	defer s.Close()
	for i := 0; i < len(tokens) && err == nil; i++ {
		err = s.Feed(t.Context(), tokens[i:i+1], 1, func(_ int, l *engine.Logits) error {
			out = append(out, slices.Clone(l.All))
			return nil
		})
	}
	return out, err
}

// A step that can't be submitted, or whose picks make no sense, breaks its session and no other: what arrived meanwhile comes
// with the next submit, and what was prepared or mapped for the step is not in the way.
func TestFailedSubmitBreaksTheSession(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 12)
	whole := load(t, dev, f, engine.Options{Sessions: 2})
	want := oneByOne(t, whole, tokens)
	timing := dev.Limits().Timestamps
	small := load(t, dev, f, engine.Options{Sessions: 2, Timing: timing, Lookahead: 1, Readers: 4, Budget: smallestBudget(load(t, dev, f, engine.Options{Sessions: 2, Timing: timing, Readers: 4})) + 4<<10})
	for name, m := range map[string]*engine.Model{"resident": whole, "streaming": small} {
		for round := range 3 {
			for i, r := range engine.Readbacks(m) {
				if _, err := r.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := tryOneByOne(t, m, tokens); err == nil && (i == 0 || m == small) {
					t.Errorf("%s: readback %d mapped: have no error", name, i)
				}
				if err := r.Unmap(); err != nil {
					t.Fatal(err)
				}
				if have, err := tryOneByOne(t, m, tokens[:round+1]); err != nil || !equalRows(have, want[:round+1]) {
					t.Errorf("%s: logits differ after readback %d was mapped, or %v", name, i, err)
				}
			}
			experts := m.Plan.Model.Experts
			m.Plan.Model.Experts = 1
			if _, err := tryOneByOne(t, m, tokens); err == nil && m == small {
				t.Errorf("%s: picks that no layer has: have no error", name)
			}
			m.Plan.Model.Experts = experts
			if have, err := tryOneByOne(t, m, tokens); err != nil || !equalRows(have, want) {
				t.Errorf("%s: logits differ after picks that no layer has, or %v", name, err)
			}
		}
	}
}

// A model whose records don't get to their slots any more says so in every step, and waits for nothing.
func TestRecordsThatCannotArrive(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 12)
	budget := smallestBudget(load(t, dev, f, engine.Options{Readers: 1}))
	for _, readers := range []int{1, 3} {
		m := load(t, dev, f, engine.Options{Readers: readers, Lookahead: 1, Budget: budget + 1<<20})
		if _, err := tryOneByOne(t, m, tokens[:1]); err != nil {
			t.Fatal(err)
		}
		engine.BreakArrivals(m)
		for range 3 {
			if _, err := tryOneByOne(t, m, tokens); err == nil {
				t.Errorf("%d readers: have no error", readers)
			}
		}
		if err := m.Fill(t.Context(), []stream.Key{{Layer: 0, Expert: 0}, {Layer: 0, Expert: 1}, {Layer: 0, Expert: 2}, {Layer: 0, Expert: 3}, {Layer: 0, Expert: 4}, {Layer: 0, Expert: 5}}); err == nil {
			t.Errorf("%d readers: filled all the same", readers)
		}
	}
}
