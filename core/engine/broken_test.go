package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
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
