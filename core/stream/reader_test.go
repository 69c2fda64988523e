package stream

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// All readers work at one record's pieces.
func TestPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := slowPool(t, 8, 3)
		w.pieces = 6
		begin := time.Now()
		use(t, p, 2, 4)
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("6 pieces of 1 s with 3 readers took %v, want 2 s", took)
		}
		begin = time.Now()
		use(t, p, 2, 0, 1, 2, 3)
		if took := time.Since(begin); took != 8*time.Second {
			t.Errorf("4 times 6 pieces of 1 s with 3 readers took %v, want 8 s", took)
		}
		if n := total(p.Counters(nil)).Pieces; n != 5*6 {
			t.Errorf("have %d pieces of what was waited for, want %d", n, 5*6)
		}
		checkQuiet(t, p)
	})
}

// A piece that fails fails its record; pieces that are under way end first, the rest is not read.
func TestPieceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := slowPool(t, 8, 3)
		w.pieces = 6
		var reads atomic.Int32
		w.before = func(context.Context, Key) error {
			n := reads.Add(1)
			time.Sleep(time.Duration(n) * time.Second)
			if n == 1 {
				return errRead
			}
			return nil
		}
		_, err := p.Ensure(t.Context(), 2, []int{4})
		wantError(t, err, "stream: layer 2 expert 4: injected read error")
		if n := reads.Load(); n != 3 {
			t.Errorf("have %d pieces read, want 3", n)
		}
		checkQuiet(t, p)
		use(t, p, 2, 4)
	})
}

// A record that a call waits for goes before the rest of a guess that is begun.
func TestPiecesGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := slowPool(t, 8, 3)
		w.pieces = 4
		p.Guess(2, []int{0}, 0)
		time.Sleep(time.Second / 4) // two readers are at expert 0
		p.Guess(2, []int{1}, 0)
		time.Sleep(time.Second / 4)
		begin := time.Now()
		use(t, p, 2, 5)
		if took := time.Since(begin); took != 2*time.Second-time.Second/2 && took != 2*time.Second {
			t.Errorf("took %v, want 1.5 or 2 s: 4 pieces by one reader, and soon all three", took)
		}
		time.Sleep(time.Minute)
		if have := w.loaded(); !slices.Equal(have, []int{0, 5, 1}) {
			t.Errorf("have loads %v, want 0, 5 and 1", have)
		}
		if n := total(p.Counters(nil)).Pieces; n != 4 {
			t.Errorf("have %d pieces of what was waited for, want 4", n)
		}
		p.Guess(2, []int{2}, 0)
		time.Sleep(time.Second / 2)
		use(t, p, 2, 2) // it is begun
		if n := total(p.Counters(nil)).Pieces; n != 8 {
			t.Errorf("have %d pieces of what was waited for, want 8", n)
		}
		checkQuiet(t, p)
	})
}
