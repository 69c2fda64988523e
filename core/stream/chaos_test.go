package stream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestChaos plays random calls in simulated time, most of them guesses that are given up and asked for after all, while pieces
// of them are read and fail. A call that nothing wakes is a deadlock there.
func TestChaos(t *testing.T) {
	rng := seeded(t)
	for range 100 {
		c := &chaos{seed: rng.Uint64(), pieces: 1 + rng.IntN(9), readers: 1 + rng.IntN(9), fails: 2 + rng.IntN(60)}
		if rng.IntN(4) == 0 {
			c.closes = time.Duration(1+rng.IntN(30)) * time.Millisecond
		}
		synctest.Test(t, c.run)
		if t.Failed() {
			t.Fatalf("in %+v", c)
		}
	}
}

type chaos struct {
	seed                   uint64
	pieces, readers, fails int           // one piece of so many fails
	closes                 time.Duration // when; 0 for at the end
}

func (c *chaos) run(t *testing.T) {
	w := newWorld(t, stressBanks)
	w.pieces = c.pieces
	rng := rand.New(rand.NewPCG(c.seed, 0))
	w.before = func(_ context.Context, k Key) error {
		w.mu.Lock()
		takes, fails := time.Duration(rng.IntN(1000))*time.Microsecond, rng.IntN(c.fails) == 0
		w.mu.Unlock()
		if time.Sleep(takes); fails {
			return fmt.Errorf("%w of %v", errRead, k)
		}
		return nil
	}
	p := newPool(t, w, stressBanks, c.readers)
	done := make(chan struct{})
	for i := range 5 {
		own := rand.New(rand.NewPCG(c.seed, 1+uint64(i)))
		go func() {
			for range 60 {
				chaosCall(own, w, p)
				time.Sleep(time.Duration(own.IntN(700)) * time.Microsecond)
				checkPool(t, p)
				checkSlots(w, p)
			}
			done <- struct{}{}
		}()
	}
	if c.closes > 0 {
		time.Sleep(c.closes)
		p.Close()
	}
	for range 5 {
		<-done
	}
	time.Sleep(time.Minute)
	if c.closes == 0 {
		checkQuiet(t, p)
	}
	if w.under != 0 || w.most > 2*c.readers {
		t.Errorf("have %d transfers not ended, up to %d at once, want at most two for each of %d readers", w.under, w.most, c.readers)
	}
	checkGuesses(t, p)
}

// checkGuesses checks that every guess is counted as useful or wasted, is resident and not asked for, or failed.
func checkGuesses(t *testing.T, p *Pool) {
	c, unused := total(p.Counters(nil)), int64(0)
	for _, b := range p.banks {
		for _, e := range b.entries {
			if e.guessed {
				unused++
			}
		}
	}
	if rest := c.Guessed - c.Useful - c.Wasted - unused; rest < 0 || rest > c.Failed {
		t.Errorf("have %+v and %d guesses resident that nobody asked for: %d are left, want 0 to the %d that failed", c, unused, rest, c.Failed)
	}
}

// chaosCall is one call of the pool.
func chaosCall(rng *rand.Rand, w *world, p *Pool) {
	bank := rng.IntN(len(stressBanks))
	b := stressBanks[bank]
	layer := b.Layers[rng.IntN(len(b.Layers))]
	experts := make([]int, 1+rng.IntN(3))
	for i := range experts {
		experts[i] = rng.IntN(b.Experts)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if rng.IntN(4) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(1+rng.IntN(2000))*time.Microsecond)
	}
	defer cancel()
	switch rng.IntN(6) {
	case 0, 1:
		p.Guess(layer, experts, rng.IntN(3))
	case 2, 3:
		p.DropGuesses(rng.IntN(7))
	case 4:
		_, _ = p.Fill(ctx, layer, experts[0])
	default:
		pins, err := p.Ensure(ctx, layer, experts)
		if err != nil { // a piece's, the context's, or the pool is closed
			return
		}
		w.holds(bank, layer, experts, pins.Slots(), 1)
		time.Sleep(time.Duration(rng.IntN(500)) * time.Microsecond)
		w.holds(bank, layer, experts, pins.Slots(), -1)
		pins.Release()
	}
}
