package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

// The GPU's time is taken of prompts and tokens, resident or not, without changing them.
func TestTiming(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	if !dev.Limits().Timestamps {
		t.Skip("this GPU has no timestamp queries")
	}
	f, tokens := toyFile(t, seed), tokensOf(seed, 40)
	whole := load(t, dev, f, engine.Options{})
	want := append(feed(t, session(t, whole), tokens[:20]), oneByOne(t, whole, tokens[20:])...)
	for name, o := range map[string]engine.Options{
		"resident": {}, "waiting": {Wait: true}, "streaming": {Budget: smallestBudget(load(t, dev, f, engine.Options{Timing: true, Sessions: 3}))},
	} {
		o.Timing, o.Sessions = true, 3
		m := load(t, dev, f, o)
		before := m.Stats()
		have := feed(t, session(t, m), tokens[:20])
		prompt := m.Stats()
		have = append(have, oneByOne(t, m, tokens[20:])...)
		after := m.Stats()
		if !equalRows(have, want) {
			t.Errorf("%s: logits differ", name)
		}
		if p, d := prompt.GPU-before.GPU, after.GPU-prompt.GPU; p <= 0 || d <= 0 || p > 2*prompt.Time || d > 2*(after.Time-prompt.Time) {
			t.Errorf("%s: have %v of %v for the prompt, %v of %v for the tokens", name, p, prompt.Time, d, after.Time-prompt.Time)
		}
	}
	if n := whole.Stats().GPU; n != 0 {
		t.Errorf("have %v without timing", n)
	}
}
