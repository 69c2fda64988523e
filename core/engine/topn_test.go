package engine_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/sample"
	"github.com/sluicehost/sluice/core/store"
)

// The best tokens found on the GPU are those of the whole row, suppressed ones left out of both.
func TestTopIsTheTopOfAll(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 6)
	plain := feed(t, session(t, load(t, dev, f, engine.Options{})), tokens)
	ids, _ := sample.Top(plain[5], 3)
	suppress := ids[1:2]
	all := feed(t, session(t, load(t, dev, f, engine.Options{Suppress: suppress})), tokens)
	for _, n := range []int{1, 5, engine.MaxTop} {
		m := load(t, dev, f, engine.Options{Top: n, Suppress: suppress})
		s, i := session(t, m), 0
		err := s.Feed(context.Background(), tokens, len(tokens), func(pos int, l *engine.Logits) error {
			want, logits := sample.Top(all[pos], n)
			if !slices.Equal(l.IDs, want) || !slices.Equal(l.Top, logits) {
				t.Errorf("top %d at %d: have %v %v, want %v %v", n, pos, l.IDs, l.Top, want, logits)
			}
			if lse := sample.LogSumExp(all[pos]); math.Abs(l.LogSumExp-lse) > 1e-5*math.Abs(lse) {
				t.Errorf("logsumexp at %d: have %g, want %g", pos, l.LogSumExp, lse)
			}
			if l.All != nil || slices.Contains(l.IDs, suppress[0]) {
				t.Errorf("top %d at %d: suppressed token %d shows, or every logit came back", n, pos, suppress[0])
			}
			i++
			return nil
		})
		if err != nil || i != len(tokens) {
			t.Errorf("top %d: %d rows, error %v", n, i, err)
		}
	}
	for name, o := range map[string]engine.Options{"top": {Top: engine.MaxTop + 1}, "suppressed": {Suppress: []int32{toyVocab}}} {
		if _, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, opener(f), o); err == nil {
			t.Errorf("%s out of range: no error", name)
		}
	}
}
