package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestStress has many callers ask at random, with slow and failing loads and with
// cancels, while another looks at what is where, under every policy.
func TestStress(t *testing.T) {
	for name, policy := range map[string]func(rng *rand.Rand) func(int) Policy{
		"lru":     func(*rand.Rand) func(int) Policy { return NewLRU },
		"decayed": func(*rand.Rand) func(int) Policy { return func(keys int) Policy { return NewDecayed(keys, 8) } },
		"random": func(rng *rand.Rand) func(int) Policy {
			return func(int) Policy { return &randomPolicy{rng: rng} }
		},
	} {
		for _, c := range []struct{ pieces, readers int }{{1, 3}, {4, 3}, {4, AtLimit + 4}} {
			t.Run(fmt.Sprintf("%s/pieces=%d/readers=%d", name, c.pieces, c.readers), func(t *testing.T) {
				rng := seeded(t)
				stress(t, rng, policy(rand.New(rand.NewPCG(rng.Uint64(), 1))), c.pieces, c.readers)
			})
		}
	}
}

const (
	stressWorkers = 12
	stressAsks    = 1000 // of each worker
)

var stressBanks = []Bank{
	{Layers: []int{1, 2, 5}, Experts: 10, RecordBytes: 100, Slots: 7},
	{Layers: []int{3, 4}, Experts: 6, RecordBytes: 30, Slots: 4},
}

func stress(t *testing.T, rng *rand.Rand, policy func(int) Policy, pieces, readers int) {
	w := newWorld(t, stressBanks)
	w.pieces = pieces
	w.before = func(_ context.Context, k Key) error {
		switch rand.IntN(20 * pieces) {
		case 0:
			return fmt.Errorf("%w of %v", errRead, k)
		case 1:
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
		case 2, 3, 4:
			runtime.Gosched()
		}
		return nil
	}
	p, err := New(Config{Banks: stressBanks, Readers: readers, Loader: w, Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()

	var workers sync.WaitGroup
	var served, asked atomic.Int64
	for range stressWorkers {
		own := rand.New(rand.NewPCG(rng.Uint64(), 2))
		workers.Go(func() {
			for range stressAsks {
				served.Add(stressAsk(t, own, w, p, &asked))
			}
		})
	}
	stop, watcher := make(chan struct{}), sync.WaitGroup{}
	watcher.Go(func() { watch(t, w, p, stop) })
	workers.Wait()
	close(stop)
	watcher.Wait()

	checkQuiet(t, p)
	c := total(p.Counters(nil))
	t.Logf("%d calls served of %d: %+v", served.Load(), stressWorkers*stressAsks, c)
	if have := c.Hits + c.Late + c.Misses; have > asked.Load() {
		t.Errorf("hits + late + misses %d, want at most the %d asked", have, asked.Load())
	}
	if c.Loads != int64(w.good) {
		t.Errorf("loads %d, want %d, as the loader saw them", c.Loads, w.good)
	}
	if w.under != 0 || w.most > 2*readers {
		t.Errorf("have %d transfers not ended, up to %d at once, want at most two for each of %d readers", w.under, w.most, readers)
	}
	if c.Useful+c.Wasted > c.Guessed {
		t.Errorf("guesses useful and wasted: have %d and %d of %d", c.Useful, c.Wasted, c.Guessed)
	}
	if served.Load() < stressWorkers*stressAsks/4 || min(c.Hits, c.Late, c.Misses, c.Evictions, c.Failed, c.Filled, c.Guessed, c.Useful, c.Wasted) == 0 {
		t.Error("some case was never met: the test tests less than it says")
	}
}

// watch checks the pool all the time.
func watch(t *testing.T, w *world, p *Pool, stop chan struct{}) {
	for {
		checkSlots(w, p)
		checkPool(t, p)
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Microsecond):
		}
	}
}

// stressAsk is one call; it returns 1 if it was served, and adds the experts asked.
func stressAsk(t *testing.T, rng *rand.Rand, w *world, p *Pool, asked *atomic.Int64) int64 {
	bank := rng.IntN(len(stressBanks))
	b := stressBanks[bank]
	layer := b.Layers[rng.IntN(len(b.Layers))]
	experts, distinct := make([]int, rng.IntN(b.Slots+3)), map[int]bool{}
	for i := range experts {
		experts[i] = int(float64(b.Experts) * rng.Float64() * rng.Float64()) // skewed
		distinct[experts[i]] = true
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch rng.IntN(6) {
	case 0:
		time.AfterFunc(time.Duration(rng.IntN(200))*time.Microsecond, cancel)
	case 1:
		go cancel()
	}
	switch rng.IntN(5) {
	case 0:
		p.Guess(layer, experts, rng.IntN(3))
	case 1:
		p.DropGuesses(layer - rng.IntN(2))
	case 2:
		_, _ = p.Fill(ctx, layer, rng.IntN(b.Experts)) // its load may fail or be cancelled
	}
	pins, err := p.Ensure(ctx, layer, experts)
	if len(distinct) <= b.Slots {
		asked.Add(int64(len(distinct)))
	}
	if err != nil {
		checkStressError(t, ctx, err, layer, len(distinct) > b.Slots)
		return 0
	}
	w.holds(bank, layer, experts, pins.Slots(), 1)
	if rng.IntN(4) == 0 {
		time.Sleep(time.Duration(rng.IntN(50)) * time.Microsecond)
	}
	w.holds(bank, layer, experts, pins.Slots(), -1)
	pins.Release()
	if rng.IntN(8) == 0 {
		pins.Release()
	}
	return 1
}

func checkStressError(t *testing.T, ctx context.Context, err error, layer int, tooMany bool) {
	ok := strings.HasPrefix(err.Error(), fmt.Sprintf("stream: layer %d", layer))
	switch {
	case errors.Is(err, errRead): // "stream: KEY: injected read error of KEY"
		named, said, _ := strings.Cut(strings.TrimPrefix(err.Error(), "stream: "), ": "+errRead.Error()+" of ")
		ok = ok && named == said
	case errors.Is(err, context.Canceled):
		ok = ok && ctx.Err() != nil
	default:
		ok = ok && tooMany && strings.Contains(err.Error(), "ask in waves")
	}
	if !ok {
		t.Errorf("layer %d, context %v, too many %v: unexpected error %v", layer, ctx.Err(), tooMany, err)
	}
}
