package engine_test

import (
	"context"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/stream"
)

// oneByOne gives the logits after each token, fed alone to two sessions in turn, which must agree.
func oneByOne(t *testing.T, m *engine.Model, tokens []int32) [][]float32 {
	t.Helper()
	a, b := session(t, m), session(t, m)
	var out [][]float32
	for _, id := range tokens {
		row := feed(t, a, []int32{id})
		if !equalRows(row, feed(t, b, []int32{id})) {
			t.Error("two sessions that take turns differ")
		}
		out = append(out, row...)
	}
	return out
}

// Routing on the GPU gives the bits that waiting for each layer gives, whatever the pool.
func TestRoutingOnTheGPU(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 14)
	waiting := load(t, dev, f, engine.Options{Wait: true})
	want := oneByOne(t, waiting, tokens)
	smallest := smallestBudget(load(t, dev, f, engine.Options{Sessions: 2}))
	whole := waiting.Budget.Total() + 1<<20
	for i, budget := range []uint64{smallest, smallest + (whole-smallest)/4, smallest + (whole-smallest)/2, whole} {
		m := load(t, dev, f, engine.Options{Budget: budget, Sessions: 2, Lookahead: []int{-1, 1, 0, 1}[i]})
		if !equalRows(oneByOne(t, m, tokens), want) {
			t.Errorf("budget %d: logits differ from those with a wait for each layer", budget)
		}
		checkAhead(t, m, len(tokens), budget == whole)
		if c := guesses(m); (c.Guessed > 0) != (i == 1 || i == 3) && i != 2 || c.Useful+c.Wasted > c.Guessed {
			t.Errorf("budget %d: have %+v guesses", budget, c)
		}
	}
	smallest = smallestBudget(load(t, dev, f, engine.Options{Sessions: 2, Top: 3}))
	m := load(t, dev, f, engine.Options{Budget: smallest, Sessions: 2, Top: 3}) // results of another form
	oneByOne(t, m, tokens)
	checkAhead(t, m, len(tokens), false)
}

// guesses sums up what came of guesses.
func guesses(m *engine.Model) (sum stream.Counters) {
	for _, c := range m.Counters(nil) {
		sum.Guessed += c.Guessed
		sum.Useful += c.Useful
		sum.Wasted += c.Wasted
	}
	return sum
}

// checkAhead checks the counts: each pick of each token once, and no stop once everything is resident.
func checkAhead(t *testing.T, m *engine.Model, tokens int, whole bool) {
	t.Helper()
	s, sum, missed := m.Stats(), int64(0), int64(0)
	for _, c := range m.Counters(nil) {
		sum += c.Hits + c.Late + c.Misses
		missed += c.Misses + c.Guessed // a guess may come between the stop and the asking
	}
	layers := len(m.Plan.Model.MoeLayers)
	if want := int64(2 * tokens * layers * toyTopK); sum != want {
		t.Errorf("have %d picks booked, want %d", sum, want)
	}
	if s.Stops == 0 || int64(s.Stops) > missed {
		t.Errorf("have %d layers that stopped, want 1 to the %d picks that missed or were guessed", s.Stops, missed)
	}
	if most := 2 * tokens * (layers + 1); s.Readbacks > most {
		t.Errorf("have %d readbacks, want at most %d, those of waiting", s.Readbacks, most)
	}
	if whole && s.Stops > layers*int(m.Plan.Model.Experts) {
		t.Errorf("have %d stops with everything resident in the end", s.Stops)
	}
}

// Once everything is resident a token has one readback, and the commands of the next one are encoded before it ends; the logits are
// those of waiting for each layer.
func TestOneReadbackWhenResident(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 8)
	want := oneByOne(t, load(t, dev, f, engine.Options{Wait: true}), tokens)
	m := load(t, dev, f, engine.Options{Sessions: 2})
	feed(t, session(t, m), tokens[:3])
	if err := m.Fill(context.Background(), append(m.Hot(), stream.Key{Layer: 99, Expert: 1})); err != nil || !m.Resident() {
		t.Fatalf("have error %v, resident %v, want all experts on the GPU", err, m.Resident())
	}
	s := session(t, m)
	for i, id := range tokens {
		before := m.Stats()
		if !equalRows(feed(t, s, []int32{id}), want[i:i+1]) {
			t.Errorf("token %d: logits differ from those with a wait for each layer", i)
		}
		if now := m.Stats(); now.Readbacks != before.Readbacks+1 || now.Stops != before.Stops {
			t.Errorf("token %d: have %d readbacks and %d stops, want 1 and 0", i, now.Readbacks-before.Readbacks, now.Stops-before.Stops)
		}
		if !engine.NextEncoded(m) {
			t.Errorf("token %d: the next one's commands are not encoded", i)
		}
	}
}
