package stream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestNewRefuses(t *testing.T) {
	good := Bank{Layers: []int{0, 1}, Experts: 4, RecordBytes: 10, Slots: 8}
	with := func(change func(*Bank)) []Bank {
		b := good
		change(&b)
		return []Bank{b}
	}
	for name, c := range map[string]struct {
		banks   []Bank
		readers int
		want    string
	}{
		"no-reader":     {[]Bank{good}, 0, "stream: readers: have 0, want at least 1"},
		"no-layer":      {with(func(b *Bank) { b.Layers = nil }), 1, "stream: bank 0: layers: have none"},
		"negative":      {with(func(b *Bank) { b.Layers = []int{-1} }), 1, "stream: bank 0: layer: have -1, want 0 to"},
		"huge-layer":    {with(func(b *Bank) { b.Layers = []int{1 << 40} }), 1, "stream: bank 0: layer: have"},
		"no-expert":     {with(func(b *Bank) { b.Experts = 0 }), 1, "stream: bank 0: experts per layer: have 0"},
		"many-experts":  {with(func(b *Bank) { b.Experts = maxExperts/2 + 1 }), 1, "stream: bank 0: experts of all layers: have 0 and 2 times"},
		"no-bytes":      {with(func(b *Bank) { b.RecordBytes = 0 }), 1, "stream: bank 0: record bytes: have 0"},
		"no-slot":       {with(func(b *Bank) { b.Slots = 0 }), 1, "stream: bank 0: have 0 slots, want 1 to 8"},
		"too-many":      {with(func(b *Bank) { b.Slots = 9 }), 1, "stream: bank 0: have 9 slots, want 1 to 8"},
		"layer-twice":   {with(func(b *Bank) { b.Layers = []int{1, 1} }), 1, "stream: bank 0: layer 1: have it twice"},
		"two-banks-one": {[]Bank{good, good}, 1, "stream: bank 1: layer 0: have it twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Banks: c.banks, Readers: c.readers, Loader: newWorld(t, nil)})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("have error %q, want %q…", err, c.want)
			}
		})
	}
	_, err := New(Config{Banks: []Bank{good}, Readers: 1})
	wantError(t, err, "stream: loader: have none, want one")
}

func TestEnsureRefuses(t *testing.T) {
	w := newWorld(t, oneBank(3))
	p := newPool(t, w, oneBank(3), 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		layer   int
		experts []int
		want    string
	}{
		"dense-layer": {t.Context(), 1, []int{0}, "stream: layer 1: have a layer without experts, want one that a bank serves"},
		"past-end":    {t.Context(), 4, []int{0}, "stream: layer 4: have a layer without experts, want one that a bank serves"},
		"negative":    {t.Context(), -1, []int{0}, "stream: layer -1: have a layer without experts, want one that a bank serves"},
		"expert":      {t.Context(), 2, []int{0, 8}, "stream: layer 2: have expert 8, want 0 to 7"},
		"expert-neg":  {t.Context(), 2, []int{-1}, "stream: layer 2: have expert -1, want 0 to 7"},
		"too-many": {t.Context(), 2, []int{0, 1, 2, 3, 0},
			"stream: layer 2: have 4 experts asked at once, want at most 3, the slots of bank 0: ask in waves"},
		"cancelled": {ended, 2, []int{0}, "stream: layer 2: context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			pins, err := p.Ensure(c.ctx, c.layer, c.experts)
			wantError(t, err, c.want)
			pins.Release() // the zero Pins
			if pins.Slots() != nil {
				t.Errorf("have slots %v, want none", pins.Slots())
			}
		})
	}
	if len(w.log) != 0 {
		t.Errorf("loads %v, want none", w.log)
	}
	checkQuiet(t, p)
}

func TestEnsureOrderAndDuplicates(t *testing.T) {
	banks := oneBank(3)
	w := newWorld(t, banks)
	p := newPool(t, w, banks, 2)
	use(t, p, 2, 7)
	for _, experts := range [][]int{{5, 7, 5}, {7, 5, 1}, {1, 1, 1, 1}, {}} {
		pins, err := p.Ensure(t.Context(), 2, experts)
		if err != nil {
			t.Fatal(err)
		}
		w.holds(0, 2, experts, pins.Slots(), 0)
		pins.Release()
		pins.Release() // harmless
	}
	have, want := total(p.Counters(nil)), Counters{Hits: 4, Misses: 3, Loads: 3, Bytes: 30, Pieces: 3}
	if have != want {
		t.Errorf("have %+v\nwant %+v", have, want)
	}
	checkQuiet(t, p)
}

// A stale copy of released pins must not release those of a later call.
func TestReleaseTwiceAfterReuse(t *testing.T) {
	banks := oneBank(1)
	p := newPool(t, newWorld(t, banks), banks, 1)
	first, err := p.Ensure(t.Context(), 2, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	first.Release()
	second, err := p.Ensure(t.Context(), 2, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	first.Release()
	if pins := p.banks[0].entries[0].pins; pins != 1 {
		t.Errorf("have %d pins, want 1", pins)
	}
	second.Release()
	checkQuiet(t, p)
}

func TestEvictsLeastRecentlyUsed(t *testing.T) {
	banks := oneBank(3)
	w := newWorld(t, banks)
	p := newPool(t, w, banks, 1)
	use(t, p, 2, 0)
	use(t, p, 3, 0) // another layer, the same bank
	use(t, p, 2, 1)
	use(t, p, 2, 0) // layer 3's is the oldest now
	use(t, p, 2, 2)
	use(t, p, 2, 0, 1, 2)
	want := []Counters{
		{Layer: 2, Hits: 4, Misses: 3, Loads: 3, Bytes: 30, Pieces: 3},
		{Layer: 3, Misses: 1, Evictions: 1, Loads: 1, Bytes: 10, Pieces: 1},
	}
	if have := p.Counters(nil); !slices.Equal(have, want) {
		t.Errorf("have %+v\nwant %+v", have, want)
	}
	checkQuiet(t, p)
}

// What is asked for is pinned before anything is evicted, though it be the oldest.
func TestEvictsNothingAskedFor(t *testing.T) {
	banks := oneBank(3)
	w := newWorld(t, banks)
	p := newPool(t, w, banks, 1)
	use(t, p, 2, 0, 1, 2)
	use(t, p, 2, 5, 6, 0) // 0 is the oldest
	if want := []Key{{2, 0}, {2, 1}, {2, 2}, {2, 5}, {2, 6}}; !slices.Equal(w.log, want) {
		t.Errorf("loads %v, want %v", w.log, want)
	}
}

func TestFailedReadFreesItsSlot(t *testing.T) {
	banks := oneBank(2)
	w := newWorld(t, banks)
	p := newPool(t, w, banks, 1)
	use(t, p, 2, 0)
	w.before = func(_ context.Context, k Key) error {
		if k.Expert == 5 {
			return errRead
		}
		return nil
	}
	_, err := p.Ensure(t.Context(), 2, []int{0, 5})
	wantError(t, err, "stream: layer 2 expert 5: injected read error")
	if !errors.Is(err, errRead) {
		t.Error("the error does not wrap the loader's")
	}
	checkQuiet(t, p)
	if n := len(p.banks[0].free); n != 1 {
		t.Errorf("have %d free slots, want 1", n)
	}
	w.before = nil
	use(t, p, 2, 0, 5) // a second try reads again
	if have, want := total(p.Counters(nil)), (Counters{Hits: 2, Misses: 3, Loads: 2, Failed: 1, Bytes: 20, Pieces: 3}); have != want {
		t.Errorf("have %+v\nwant %+v", have, want)
	}
}

func TestHitsAllocateNothing(t *testing.T) {
	banks := oneBank(8)
	p := newPool(t, newWorld(t, banks), banks, 1)
	experts := []int{0, 5, 3, 7, 3}
	use(t, p, 2, experts...)
	counters := make([]Counters, 0, 2)
	if n := testing.AllocsPerRun(100, func() {
		pins, err := p.Ensure(t.Context(), 2, experts)
		if err != nil {
			t.Fatal(err)
		}
		pins.Release()
		counters = p.Counters(counters[:0])
	}); n != 0 {
		t.Errorf("have %v allocations, want 0", n)
	}
}
