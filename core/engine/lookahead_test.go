package engine

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Whatever the costs, most tokens run at the cheapest depth, the average is near it, and a change is noticed.
func TestLookahead(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const tokens = 6000
	for _, costs := range [][]float64{{10, 8, 7, 9}, {10, 40, 40, 40}, {10, 11, 12, 13}, {9, 9, 9, 6}, {10, 5, 20, 40}} {
		l := newLookahead(len(costs)-1, -1)
		spend := func(costs []float64) (mean float64) {
			for range tokens {
				ms := costs[l.depth] * (1 + 0.1*r.NormFloat64())
				mean += ms / tokens
				l.token(time.Duration(ms*float64(time.Millisecond)), true)
			}
			return mean
		}
		for range 2 {
			least := costs[0]
			for _, c := range costs {
				least = min(least, c)
			}
			if mean := spend(costs); mean > 1.1*least {
				t.Errorf("costs %v: have %.2f a token, want at most 10 %% above %v", costs, mean, least)
			}
			costs = []float64{costs[3], costs[2], costs[1], costs[0]} // the second time the habits have changed
		}
	}
}

// After a calm the trials go on where they were.
func TestLookaheadCalm(t *testing.T) {
	l := newLookahead(3, -1)
	for range 2 * windowTokens {
		l.token(time.Millisecond, true)
	}
	depth := l.depth
	for range 2 * windowTokens {
		l.token(time.Microsecond, false)
	}
	if l.depth != 0 {
		t.Errorf("have depth %d while nothing waits, want 0", l.depth)
	}
	if l.token(time.Millisecond, true); l.depth != depth {
		t.Errorf("have depth %d after it, want %d", l.depth, depth)
	}
}

// A fixed depth stays, no more than there are; nothing is tried while nothing waits.
func TestLookaheadStays(t *testing.T) {
	for _, test := range []struct{ deepest, fixed, want int }{{3, 2, 2}, {1, 9, 1}, {0, -1, 0}, {3, 0, 0}, {3, -1, 0}} {
		l := newLookahead(test.deepest, test.fixed)
		for range 500 {
			l.token(time.Millisecond, false)
		}
		if l.depth != test.want {
			t.Errorf("%+v: have depth %d", test, l.depth)
		}
	}
}
