package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

var errRead = errors.New("injected read error")

// cell is the simulated memory of one slot.
type cell struct {
	key    Key
	filled bool
	busy   bool // a load writes it
	pins   int  // as the test's callers hold them
}

// world is slot memory and a loader that writes it. It reports any load into a slot
// that is pinned or already being written.
type world struct {
	t      testing.TB
	mu     sync.Mutex
	cells  [][]cell
	log    []Key // loads begun
	good   int   // loads that succeeded
	pieces int   // of a load
	reads  int   // of pieces begun
	under  int   // loads begun that have not ended
	most   int   // of them at once
	// before runs without the lock before a piece is there; it may block or fail.
	before func(ctx context.Context, key Key) error
}

func newWorld(t testing.TB, banks []Bank) *world {
	w := &world{t: t}
	for _, b := range banks {
		w.cells = append(w.cells, make([]cell, b.Slots))
	}
	return w
}

// transfer is a load of the world.
type transfer struct {
	w     *world
	key   Key
	cell  *cell
	read  []bool
	fail  error
	under int // reads now
}

// counts is how many pieces were begun, and how many transfers have not ended.
func (w *world) counts() (reads, open int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads, w.under
}

func (w *world) Begin(_ context.Context, key Key, bank, slot int) (Transfer, int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &w.cells[bank][slot]
	if c.busy || c.pins > 0 {
		w.t.Errorf("load of %v into bank %d slot %d, which is busy (%v) or pinned (%d)", key, bank, slot, c.busy, c.pins)
	}
	c.busy, c.filled = true, false
	w.under++
	w.most = max(w.most, w.under)
	w.log = append(w.log, key)
	return &transfer{w: w, key: key, cell: c, read: make([]bool, max(w.pieces, 1))}, w.pieces, nil
}

func (x *transfer) Read(ctx context.Context, piece int) error {
	x.w.mu.Lock()
	if piece < 0 || piece >= len(x.read) || x.read[piece] {
		x.w.t.Errorf("%v: piece %d of %d is read twice, or is none", x.key, piece, len(x.read))
	}
	x.read[piece] = true
	x.w.reads++
	x.under++
	x.w.mu.Unlock()

	var err error
	if x.w.before != nil {
		err = x.w.before(ctx, x.key)
	}

	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	x.under--
	if err != nil {
		x.fail = err
	}
	return err
}

func (x *transfer) End(err error) error {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	if x.under > 0 || err == nil && (x.fail != nil || slices.Contains(x.read, false)) {
		x.w.t.Errorf("%v: end with %v: %d reads run, pieces read %v, one failed with %v", x.key, err, x.under, x.read, x.fail)
	}
	x.cell.busy = false
	x.w.under--
	if err == nil {
		x.cell.key, x.cell.filled = x.key, true
		x.w.good++
	}
	return nil
}

// holds checks that the slots hold the records asked for, in the order asked, and
// adds to their pin counts.
func (w *world) holds(bank, layer int, experts, slots []int, pins int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(slots) != len(experts) {
		w.t.Errorf("have %d slots, want %d", len(slots), len(experts))
		return
	}
	for i, s := range slots {
		c, want := &w.cells[bank][s], Key{layer, experts[i]}
		if c.busy || !c.filled || c.key != want {
			w.t.Errorf("slot %d of bank %d: have %+v, want %v", s, bank, *c, want)
		}
		c.pins += pins
	}
}

// checkSlots checks every resident key against slot memory.
func checkSlots(w *world, p *Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range p.banks {
		for id, e := range b.entries {
			if e.slot < 0 {
				continue
			}
			if m := w.cells[b.index][e.slot]; m.busy || !m.filled || m.key != b.key(id) {
				w.t.Errorf("%v is said to be in bank %d slot %d, which holds %+v", b.key(id), b.index, e.slot, m)
			}
		}
	}
}

// checkPool checks the pool's own invariants: each slot has one owner, and the
// policy's list is what may be evicted.
func checkPool(t testing.TB, p *Pool) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, l := range p.open {
		if l.taken >= l.pieces || l.given || l.err != nil || slices.Contains(p.open[:i], l) {
			t.Errorf("%v is open: %d pieces of %d taken, given up: %v, error %v, open as %v", l.bank.key(l.id), l.taken, l.pieces, l.given, l.err, p.open)
		}
	}
	for _, b := range p.banks {
		owners := make([]int, b.slots)
		for _, s := range b.free {
			owners[s]++
		}
		idle := 0
		for i := range b.entries {
			e := &b.entries[i]
			switch {
			case e.slot >= 0 && e.load != nil:
				t.Errorf("%v is resident and loading", b.key(i))
			case e.slot >= 0:
				owners[e.slot]++
				if e.pins == 0 {
					idle++
				}
			case e.load != nil:
				owners[e.load.slot]++
			case e.pins != 0:
				t.Errorf("%v is absent with %d pins", b.key(i), e.pins)
			}
		}
		for s, n := range owners {
			if n != 1 {
				t.Errorf("bank %d slot %d has %d owners, want 1", b.index, s, n)
			}
		}
		if idle != b.evictable {
			t.Errorf("bank %d: evictable %d, want %d", b.index, b.evictable, idle)
		}
	}
}

// checkQuiet checks what holds once no call and no load runs and no pin is held.
func checkQuiet(t testing.TB, p *Pool) {
	t.Helper()
	for quiet := false; !quiet; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		quiet = p.idle == p.alive
		p.mu.Unlock()
	}
	checkPool(t, p)
	if n := len(p.open); n > 0 || p.queue.head != nil || p.guesses.head != nil || p.working+p.guessing+p.asked != 0 {
		t.Errorf("have %d loads open, queues from %v and %v, %d readers at work, %d at guesses, %d loads waited for, want none", n, p.queue.head, p.guesses.head, p.working, p.guessing, p.asked)
	}
	for _, b := range p.banks {
		if have := len(b.free) + b.evictable; have != b.slots {
			t.Errorf("bank %d: %d slots free or evictable, want all %d", b.index, have, b.slots)
		}
	}
	for _, c := range p.Counters(nil) {
		at := p.places[c.Layer]
		if started := c.Misses + c.Guessed + c.Filled; started != c.Loads+c.Failed {
			t.Errorf("layer %d: misses, guesses and fills %d, want loads %d + failed %d", c.Layer, started, c.Loads, c.Failed)
		}
		if c.Bytes != c.Loads*at.bank.bytes {
			t.Errorf("layer %d: bytes %d, want %d", c.Layer, c.Bytes, c.Loads*at.bank.bytes)
		}
		resident := int64(0)
		for _, e := range at.bank.entries[at.first : at.first+at.bank.experts] {
			if e.slot >= 0 {
				resident++
			}
		}
		if c.Loads-c.Evictions != resident {
			t.Errorf("layer %d: loads %d - evictions %d, want %d resident", c.Layer, c.Loads, c.Evictions, resident)
		}
	}
}

// oneBank is layers 2 and 3 of 8 experts in a bank of so many slots.
func oneBank(slots int) []Bank {
	return []Bank{{Layers: []int{2, 3}, Experts: 8, RecordBytes: 10, Slots: slots}}
}

func newPool(t testing.TB, w *world, banks []Bank, readers int) *Pool {
	t.Helper()
	p, err := New(Config{Banks: banks, Readers: readers, Loader: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// use ensures and releases, and fails the test on an error.
func use(t testing.TB, p *Pool, layer int, experts ...int) {
	t.Helper()
	pins, err := p.Ensure(context.Background(), layer, experts)
	if err != nil {
		t.Fatal(err)
	}
	pins.Release()
}

func total(cs []Counters) (sum Counters) {
	for _, c := range cs {
		sum.Hits += c.Hits
		sum.Late += c.Late
		sum.Misses += c.Misses
		sum.Evictions += c.Evictions
		sum.Loads += c.Loads
		sum.Failed += c.Failed
		sum.Bytes += c.Bytes
		sum.Pieces += c.Pieces
		sum.Filled += c.Filled
		sum.Guessed += c.Guessed
		sum.Useful += c.Useful
		sum.Wasted += c.Wasted
		sum.Harmed += c.Harmed
	}
	return sum
}

func wantError(t testing.TB, err error, text string) {
	t.Helper()
	if have := fmt.Sprint(err); have != text {
		t.Errorf("have error %q\nwant       %q", have, text)
	}
}
