package stream

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestSharedLoad(t *testing.T) {
	for name, fail := range map[string]error{"good": nil, "failed": errRead} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { sharedLoad(t, fail) })
		})
	}
}

func sharedLoad(t *testing.T, fail error) {
	banks := oneBank(2)
	w := newWorld(t, banks)
	p := newPool(t, w, banks, 4)
	gate := make(chan struct{})
	w.before = func(context.Context, Key) error { <-gate; return fail }
	results := make(chan error)
	for range 3 {
		go func() {
			pins, err := p.Ensure(t.Context(), 2, []int{3})
			pins.Release()
			results <- err
		}()
	}
	// A fourth gives up early: the load goes on for the others.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := p.Ensure(ctx, 2, []int{3})
	wantError(t, err, "stream: layer 2 expert 3: context deadline exceeded")
	close(gate)
	for range 3 {
		if err := <-results; !errors.Is(err, fail) {
			t.Errorf("have error %v, want %v", err, fail)
		}
	}
	if len(w.log) != 1 {
		t.Errorf("loads %v, want one", w.log)
	}
	c := total(p.Counters(nil))
	if c.Misses != 1 || c.Late != 3 {
		t.Errorf("have %+v, want 1 miss and 3 late hits", c)
	}
	checkQuiet(t, p)
}

func TestReadersBoundLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		banks := oneBank(8)
		w := newWorld(t, banks)
		p := newPool(t, w, banks, 3)
		w.before = func(context.Context, Key) error { time.Sleep(time.Second); return nil }
		begin := time.Now()
		use(t, p, 2, 0, 1, 2, 3, 4, 5, 6)
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("7 loads of 1 s with 3 readers took %v, want 3 s", took)
		}
	})
}

func TestWaitsForRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		banks := oneBank(2)
		w := newWorld(t, banks)
		p := newPool(t, w, banks, 1)
		held, err := p.Ensure(t.Context(), 2, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		ask := func(ctx context.Context, experts ...int) {
			pins, err := p.Ensure(ctx, 3, experts)
			pins.Release()
			done <- err
		}
		ctx, cancel := context.WithCancel(t.Context())
		go ask(ctx, 0)
		synctest.Wait()
		cancel()
		wantError(t, <-done, "stream: layer 3: waiting for a slot of bank 0: context canceled")
		// Two that each want the whole bank: neither may hold half of it.
		go ask(t.Context(), 4, 5)
		go ask(t.Context(), 6, 7)
		use(t, p, 2, 1) // needs no slot, so it need not wait
		synctest.Wait()
		if len(w.log) != 2 {
			t.Errorf("loads %v while all slots are pinned", w.log)
		}
		held.Release()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		checkQuiet(t, p)
	})
}

// A failed load gives its slot to a call that waits for one.
func TestFailedReadWakesWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		banks := oneBank(1)
		w := newWorld(t, banks)
		p := newPool(t, w, banks, 1)
		w.before = func(_ context.Context, k Key) error {
			if k.Layer == 3 {
				return nil
			}
			time.Sleep(time.Second)
			return errRead
		}
		failed := make(chan error)
		go func() {
			_, err := p.Ensure(t.Context(), 2, []int{0})
			failed <- err
		}()
		synctest.Wait()
		use(t, p, 3, 0) // the only slot is being filled
		wantError(t, <-failed, "stream: layer 2 expert 0: injected read error")
		checkQuiet(t, p)
	})
}

// Loads that nobody waits for any more are dropped if they have not begun, and kept
// if they have.
func TestCancelDropsQueuedLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		banks := oneBank(4)
		w := newWorld(t, banks)
		p := newPool(t, w, banks, 1)
		w.before = func(context.Context, Key) error { time.Sleep(time.Minute); return nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Ensure(ctx, 2, []int{0, 1, 2})
		wantError(t, err, "stream: layer 2 expert 0: context deadline exceeded")
		use(t, p, 2, 2) // wants one of them again
		if want := []Key{{2, 0}, {2, 2}}; !slices.Equal(w.log, want) {
			t.Errorf("loads %v, want %v", w.log, want)
		}
		if have, want := total(p.Counters(nil)), (Counters{Late: 1, Misses: 3, Loads: 2, Failed: 1, Bytes: 20, Pieces: 2}); have != want {
			t.Errorf("have %+v\nwant %+v", have, want)
		}
		checkQuiet(t, p)
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		banks := oneBank(3)
		w := newWorld(t, banks)
		p := newPool(t, w, banks, 1)
		held, err := p.Ensure(t.Context(), 2, []int{0})
		if err != nil {
			t.Fatal(err)
		}
		w.before = func(ctx context.Context, _ Key) error { <-ctx.Done(); return ctx.Err() }
		done := make(chan error)
		for _, experts := range [][]int{{1, 2}, {3}} { // one reads and queues, one waits for a slot
			go func() {
				_, err := p.Ensure(t.Context(), 2, experts)
				done <- err
			}()
			synctest.Wait()
		}
		p.Close()
		texts := []string{(<-done).Error(), (<-done).Error()}
		slices.Sort(texts)
		want := []string{"stream: layer 2 expert 1: context canceled", "stream: layer 2: the pool is closed"}
		if !slices.Equal(texts, want) {
			t.Errorf("have errors %q, want %q", texts, want)
		}
		if len(w.log) != 2 {
			t.Errorf("loads %v, want no load begun after Close", w.log)
		}
		_, err = p.Ensure(t.Context(), 2, []int{0})
		wantError(t, err, "stream: layer 2: the pool is closed")
		held.Release()
		checkQuiet(t, p)
		p.Close()
	})
}

func TestCloseWakesWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		banks := oneBank(1)
		p := newPool(t, newWorld(t, banks), banks, 1)
		held, err := p.Ensure(t.Context(), 2, []int{0})
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release()
		done := make(chan error)
		go func() {
			_, err := p.Ensure(t.Context(), 2, []int{1})
			done <- err
		}()
		synctest.Wait()
		p.Close()
		wantError(t, <-done, "stream: layer 2: the pool is closed")
	})
}
