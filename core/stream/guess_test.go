package stream

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// slowPool has one bank of layer 2 whose loads take a second.
func slowPool(t *testing.T, slots, readers int) (*world, *Pool) {
	banks := oneBank(slots)
	w := newWorld(t, banks)
	w.before = func(context.Context, Key) error { time.Sleep(time.Second); return nil }
	return w, newPool(t, w, banks, readers)
}

// loaded is the experts whose loads began, in order.
func (w *world) loaded() (experts []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.log {
		experts = append(experts, k.Expert)
	}
	return experts
}

// A read that a call waits for goes before all guesses, and a reader stays free for it.
func TestGuessesGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := slowPool(t, 8, 2)
		if n := p.Guess(2, []int{0, 1, 2}, 0); n != 3 {
			t.Errorf("have %d loads, want 3", n)
		}
		time.Sleep(time.Millisecond)
		start := time.Now()
		use(t, p, 2, 5)
		if took := time.Since(start); took > time.Second {
			t.Errorf("the read took %v, want no wait for guesses", took)
		}
		time.Sleep(time.Minute)
		if have := w.loaded(); !slices.Equal(have, []int{0, 5, 1, 2}) {
			t.Errorf("have loads %v", have)
		}
		use(t, p, 2, 0, 1)
		c := total(p.Counters(nil))
		if c.Hits != 2 || c.Misses != 1 || c.Guessed != 3 || c.Useful != 2 || c.Wasted != 0 {
			t.Errorf("have %+v, want 2 hits, 1 miss, 3 guesses, 2 of them useful", c)
		}
	})
}

// While a call waits, guesses are read only with what a disk has left: nothing beside four pieces or more of what it waits for.
func TestGuessesShareNoFullDisk(t *testing.T) {
	for _, c := range []struct {
		pieces int
		want   []int // loads begun while the call waits
	}{{8, []int{5}}, {4, []int{5}}, {2, []int{5, 0}}} {
		synctest.Test(t, func(t *testing.T) {
			w, p := slowPool(t, 8, 8)
			w.pieces = c.pieces
			pins, err := p.Request(t.Context(), 2, []int{5})
			if err != nil {
				t.Fatal(err)
			}
			defer pins.Release()
			time.Sleep(time.Millisecond)
			p.Guess(2, []int{0, 1}, 0)
			time.Sleep(time.Millisecond)
			if have := w.loaded(); !slices.Equal(have, c.want) {
				t.Errorf("%d pieces: have loads %v while the call waits, want %v", c.pieces, have, c.want)
			}
			if err := pins.Wait(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if have := w.loaded(); len(have) != 3 {
				t.Errorf("%d pieces: have loads %v in the end, want both guesses among them", c.pieces, have)
			}
		})
	}
}

// A guess that is asked for is read next; others can be dropped before they are begun.
func TestGuessAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := slowPool(t, 8, 1)
		p.Guess(2, []int{0, 1, 2, 3}, 0)
		time.Sleep(time.Millisecond)
		use(t, p, 2, 3)
		p.DropGuesses(0)
		time.Sleep(time.Minute)
		if have := w.loaded(); !slices.Equal(have, []int{0, 3, 1}) { // 1 was begun when 3 was there
			t.Errorf("have loads %v, want 0, 3 and 1", have)
		}
		c := total(p.Counters(nil))
		if c.Late != 1 || c.Useful != 1 || c.Wasted != 1 || c.Guessed != 4 {
			t.Errorf("have %+v, want a late hit, a useful guess and a wasted one of 4", c)
		}
		checkQuiet(t, p)
	})
}

// Guesses leave room for what the next call may need, and evict what was used longest ago.
func TestGuessSpares(t *testing.T) {
	w, p := slowPool(t, 4, 2)
	w.before = nil
	use(t, p, 2, 0, 1, 2, 3)
	pins, err := p.Ensure(t.Context(), 2, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Guess(2, []int{4, 5, 6}, 2); n != 1 { // 3 could go, 2 must be left
		t.Errorf("have %d loads, want 1", n)
	}
	pins.Release()
	if _, err := p.Fill(t.Context(), 2, 4); err != nil { // waits for the guess
		t.Error(err)
	}
	if ok, err := p.Fill(t.Context(), 2, 7); ok || err != nil {
		t.Errorf("have %v and %v without a free slot, want neither", ok, err)
	}
	use(t, p, 2, 5, 6, 7, 1)
	if c := total(p.Counters(nil)); c.Wasted != 1 || c.Useful != 0 {
		t.Errorf("have %+v, want the guess wasted", c)
	}
	if p.Guess(9, []int{1}, 0)+p.Guess(2, []int{-1, 99}, 0) != 0 {
		t.Error("loads of layers and experts that are not there")
	}
}

// What is guessed and there already is not the next to go.
func TestGuessProtects(t *testing.T) {
	w, p := slowPool(t, 4, 2)
	w.before = nil
	use(t, p, 2, 0, 1, 2, 3)
	if n := p.Guess(2, []int{0}, 0); n != 0 {
		t.Errorf("have %d loads of what is there, want none", n)
	}
	use(t, p, 2, 4) // 1 is the least recently used now
	before := total(p.Counters(nil)).Misses
	use(t, p, 2, 0)
	if have := total(p.Counters(nil)).Misses; have != before {
		t.Error("an expert that was guessed was the next to go")
	}
	use(t, p, 2, 1)
	if have := total(p.Counters(nil)).Misses; have != before+1 {
		t.Errorf("have %d misses, want %d: the expert used longest ago was to go", have, before+1)
	}
}

// However many are guessed, no more records are on their way than readers may guess, and what a call asks for meanwhile.
func TestGuessesBounded(t *testing.T) {
	for _, pieces := range []int{1, 3, 8} {
		synctest.Test(t, func(t *testing.T) {
			const readers = 4
			w, p := slowPool(t, 8, readers)
			w.pieces = pieces
			p.Guess(2, []int{0, 1, 2, 3, 4, 5, 6}, 0)
			time.Sleep(time.Millisecond)
			if _, open := w.counts(); open == 0 || open > readers-1 {
				t.Errorf("%d pieces: have %d guesses on their way, want 1 to %d", pieces, open, readers-1)
			}
			use(t, p, 3, 5)
			time.Sleep(time.Minute)
			synctest.Wait()
			w.mu.Lock()
			most := w.most
			w.mu.Unlock()
			if most > readers {
				t.Errorf("%d pieces: have %d records on their way at once, want at most %d", pieces, most, readers)
			}
			if have := len(w.loaded()); have != 8 {
				t.Errorf("%d pieces: have %d loads, want 8", pieces, have)
			}
		})
	}
}

// Everything resident is known, and stays so.
func TestWhole(t *testing.T) {
	banks := []Bank{{Layers: []int{2}, Experts: 3, RecordBytes: 1, Slots: 3}}
	p := newPool(t, newWorld(t, banks), banks, 2)
	for e := range 3 {
		if p.Whole() {
			t.Errorf("whole with %d of 3", e)
		}
		if ok, err := p.Fill(t.Context(), 2, e); !ok || err != nil {
			t.Fatalf("have %v, %v", ok, err)
		}
	}
	p.Used(2, []int{0, 2})
	p.Used(2, []int{2})
	if have := p.Resident(); !slices.Equal(have, []Key{{2, 2}, {2, 0}, {2, 1}}) {
		t.Errorf("have %v resident", have)
	}
	p.Found(2, 3)
	if c := total(p.Counters(nil)); !p.Whole() || c.Hits != 6 || c.Guessed != 0 || c.Filled != 3 {
		t.Errorf("whole %v, %+v, want 6 hits", p.Whole(), c)
	}
}

// What a guess evicted and a call asks for again is harm, unless the guess was asked for before: then that read would have
// taken the slot, too.
func TestGuessHarms(t *testing.T) {
	for name, c := range map[string]struct {
		asked []int // after 0 and 1 were used and 2 was guessed into the slot of 0
		want  int64
	}{
		"its victim":            {[]int{0}, 1},
		"the guess, its victim": {[]int{2, 0}, 0},
		"another":               {[]int{1, 3}, 0},
		"its victim twice":      {[]int{0, 1, 0}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, p := slowPool(t, 2, 1)
				use(t, p, 2, 0)
				use(t, p, 2, 1)
				p.Guess(2, []int{2}, 0)
				time.Sleep(time.Minute)
				for _, x := range c.asked {
					use(t, p, 2, x)
				}
				if have := total(p.Counters(nil)).Harmed; have != c.want {
					t.Errorf("have %d harmed, want %d", have, c.want)
				}
			})
		})
	}
}

// atWork is how many readers are at a load.
func (p *Pool) atWork() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.working
}

// A guess that was paused half-way and is asked for gets all readers that it has pieces for.
func TestPausedGuessAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := slowPool(t, 8, 8)
		w.before = func(_ context.Context, k Key) error {
			if k.Expert == 5 {
				time.Sleep(9 * time.Second)
			}
			time.Sleep(time.Second)
			return nil
		}
		w.pieces = 32
		p.Guess(2, []int{0}, 0)
		time.Sleep(time.Millisecond)
		w.mu.Lock()
		w.pieces = AtLimit
		w.mu.Unlock()
		long, err := p.Request(t.Context(), 2, []int{5})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if n := p.atWork(); n != AtLimit {
			t.Errorf("have %d readers at work while a call waits, want %d", n, AtLimit)
		}
		pins, err := p.Request(t.Context(), 2, []int{0})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		if n := p.atWork(); n != 8 {
			t.Errorf("have %d readers at work when the guess is asked for, want all 8", n)
		}
		for _, x := range []Pins{pins, long} {
			if err := x.Wait(t.Context(), 0); err != nil {
				t.Error(err)
			}
			x.Release()
		}
		checkQuiet(t, p)
	})
}

// A fill goes on where a call asked for the same record and gave up before it was begun.
func TestFillOutlivesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := slowPool(t, 8, 1)
		p.Guess(2, []int{5}, 0) // the reader's work
		time.Sleep(time.Millisecond)
		filled := make(chan error, 1)
		go func() {
			there, err := p.Fill(t.Context(), 2, 3)
			if err == nil && !there {
				err = errors.New("not there")
			}
			filled <- err
		}()
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := p.Ensure(ctx, 2, []int{3}); err == nil {
			t.Error("have no error of a call whose time is over")
		}
		if err := <-filled; err != nil {
			t.Errorf("fill: have error %v", err)
		}
		checkQuiet(t, p)
	})
}

// An expert that a token used from a slot it has lost since makes no call of the guess that brings it back.
func TestUsedLeavesGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := slowPool(t, 2, 1)
		use(t, p, 2, 0)
		use(t, p, 2, 1)
		p.Guess(2, []int{2}, 0) // takes the slot of 0
		p.Guess(2, []int{0}, 0)
		time.Sleep(time.Millisecond)
		p.Used(2, []int{0})
		time.Sleep(time.Minute)
		if have := w.loaded(); !slices.Equal(have, []int{0, 1, 2, 0}) {
			t.Errorf("have loads %v, want the guess of 0 last", have)
		}
		use(t, p, 2, 0)
		if c := total(p.Counters(nil)); c.Failed != 0 || c.Useful != 1 {
			t.Errorf("have %+v, want no failure and one useful guess", c)
		}
		checkQuiet(t, p)
	})
}

// A guess or a read that a fill waits for, too, is neither dropped nor given up.
func TestFillKeepsWhatItJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := slowPool(t, 8, 1)
		p.Guess(2, []int{5, 3}, 0) // 5 is the reader's work
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		asked, err := p.Request(ctx, 2, []int{4})
		if err != nil {
			t.Fatal(err)
		}
		filled := make(chan error, 2)
		for _, x := range []int{3, 4} {
			go func() {
				there, err := p.Fill(t.Context(), 2, x)
				if err == nil && !there {
					err = errors.New("not there")
				}
				filled <- err
			}()
		}
		time.Sleep(time.Millisecond)
		p.DropGuesses(0)
		if err := asked.Wait(ctx, 0); err == nil {
			t.Error("have no error of a call whose time is over")
		}
		for range 2 {
			if err := <-filled; err != nil {
				t.Errorf("fill: have error %v", err)
			}
		}
		checkQuiet(t, p)
	})
}

// Of a guess whose layer has picked others no further piece is read; one of a layer to come goes on, and one that is asked for, too.
func TestStaleGuessGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		picked int
		asked  bool // while the last pieces are read
		reads  int
	}{
		"picked": {2, false, 2}, "to come": {1, false, 6}, "asked for after all": {2, true, 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, p := slowPool(t, 8, 3) // two of them read guesses
				w.pieces = 6
				p.Guess(2, []int{0}, 0)
				time.Sleep(time.Millisecond)
				p.DropGuesses(c.picked)
				if c.asked {
					use(t, p, 2, 0)
				}
				time.Sleep(time.Minute)
				if reads, open := w.counts(); reads != c.reads || open != 0 {
					t.Errorf("have %d pieces read, %d transfers open, want %d and none", reads, open, c.reads)
				}
				if c.picked == 2 && !c.asked {
					if have := total(p.Counters(nil)); have.Wasted != 1 || have.Failed != 1 || have.Loads != 0 {
						t.Errorf("have %+v, want one guess wasted", have)
					}
				}
				checkQuiet(t, p)
				use(t, p, 2, 0)
			})
		})
	}
}

// A guess that is paused when its layer has picked ends at once, and so does its transfer.
func TestPausedGuessGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := slowPool(t, 8, AtLimit)
		w.pieces = 32
		p.Guess(2, []int{0}, 0)
		time.Sleep(time.Millisecond)
		long, err := p.Request(t.Context(), 3, []int{5}) // its pieces go before those of the guess
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		_, before := w.counts()
		p.DropGuesses(2)
		if _, open := w.counts(); before != 2 || open != 1 {
			t.Errorf("have %d transfers, then %d, want 2 and the one that is asked for", before, open)
		}
		if err := long.Wait(t.Context(), 0); err != nil {
			t.Error(err)
		}
		long.Release()
		checkQuiet(t, p)
	})
}

// A guess that was given up, of which a piece fails while another is read, has no piece left for a call that asks for it meanwhile:
// the call hears of the failure.
func TestGivenUpGuessFails(t *testing.T) {
	for name, asks := range map[string]func(p *Pool, t *testing.T) error{
		"ensure": func(p *Pool, t *testing.T) error { _, err := p.Ensure(t.Context(), 2, []int{0}); return err },
		"fill":   func(p *Pool, t *testing.T) error { _, err := p.Fill(t.Context(), 2, 0); return err },
		"guess":  func(p *Pool, _ *testing.T) error { p.Guess(2, []int{0}, 0); return errRead },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, p := slowPool(t, 8, 3) // two of them read guesses
				w.pieces = 6
				first := true
				w.before = func(context.Context, Key) error {
					w.mu.Lock()
					fails := first
					first = false
					w.mu.Unlock()
					if fails {
						time.Sleep(time.Second)
						return errRead
					}
					time.Sleep(2 * time.Second)
					return nil
				}
				p.Guess(2, []int{0}, 0)
				time.Sleep(time.Millisecond)
				p.DropGuesses(2)
				time.Sleep(1500 * time.Millisecond)
				if err := asks(p, t); !errors.Is(err, errRead) {
					t.Errorf("have error %v, want that of the piece", err)
				}
				time.Sleep(time.Minute)
				if reads, open := w.counts(); reads != 2 || open != 0 {
					t.Errorf("have %d pieces read, %d transfers open, want 2 and none", reads, open)
				}
				checkQuiet(t, p)
				use(t, p, 2, 0)
			})
		})
	}
}

// Guesses that are given up allocate nothing: there may be hundreds a token.
func TestDropsAllocateNothing(t *testing.T) {
	banks := oneBank(8)
	w := newWorld(t, banks)
	release := make(chan struct{})
	w.before = func(context.Context, Key) error { <-release; return nil }
	p := newPool(t, w, banks, 2)
	p.Guess(2, []int{0}, 0) // the one reader that guesses may have is at it
	for reads := 0; reads == 0; reads, _ = w.counts() {
		time.Sleep(time.Millisecond)
	}
	if n := testing.AllocsPerRun(100, func() {
		p.Guess(2, []int{1, 2, 3}, 0)
		p.DropGuesses(2)
	}); n != 0 {
		t.Errorf("have %v allocations, want 0", n)
	}
	close(release)
	checkQuiet(t, p)
}
