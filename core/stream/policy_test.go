package stream

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// seeded returns a fresh random source and prints its seed.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestLRU compares with a slice, oldest first.
func TestLRU(t *testing.T) {
	rng := seeded(t)
	const keys = 9
	l, naive := NewLRU(keys), []int(nil)
	for range 10000 {
		id := rng.IntN(keys)
		at := slices.Index(naive, id)
		switch op := rng.IntN(4); {
		case op == 0 && len(naive) > 0:
			if have := l.Evict(); have != naive[0] {
				t.Fatalf("evicts %d, want %d of %v", have, naive[0], naive)
			}
			naive = naive[1:]
		case op == 1 && at >= 0:
			l.Remove(id)
			naive = slices.Delete(naive, at, at+1)
		case op == 2:
			l.Touch(id)
			if at >= 0 {
				naive = append(slices.Delete(naive, at, at+1), id)
			}
		case op == 3 && at < 0:
			l.Push(id)
			naive = append(naive, id)
		}
	}
}

// randomPolicy evicts any listed key: the pool must hold with whatever policy.
type randomPolicy struct {
	rng *rand.Rand
	ids []int
}

func (r *randomPolicy) Tick(int)    {}
func (r *randomPolicy) Touch(int)   {}
func (r *randomPolicy) Push(id int) { r.ids = append(r.ids, id) }
func (r *randomPolicy) Remove(id int) {
	at := slices.Index(r.ids, id)
	r.ids = slices.Delete(r.ids, at, at+1)
}

func (r *randomPolicy) Evict() int {
	id := r.ids[r.rng.IntN(len(r.ids))]
	r.Remove(id)
	return id
}

// naivePool is a bank with LRU, the plain way: keys only, no slots, no threads.
type naivePool struct {
	slots  int
	pins   map[int]int // of what is resident
	oldest []int       // resident without pins, in the order of eviction
	loads  []int
}

// ensure returns false, changing nothing, where the real one would wait.
func (n *naivePool) ensure(asked []int) bool {
	missing, idle := map[int]bool{}, len(n.oldest)
	for i, id := range asked {
		if _, there := n.pins[id]; !there {
			missing[id] = true
		} else if n.pins[id] == 0 && !slices.Contains(asked[:i], id) {
			idle--
		}
	}
	if len(missing) > n.slots-len(n.pins)+idle {
		return false
	}
	n.oldest = slices.DeleteFunc(n.oldest, func(id int) bool { return slices.Contains(asked, id) })
	for _, id := range asked {
		if missing[id] {
			delete(missing, id)
			n.loads = append(n.loads, id)
			if len(n.pins) == n.slots {
				delete(n.pins, n.oldest[0])
				n.oldest = n.oldest[1:]
			}
		}
		n.pins[id]++
	}
	return true
}

func (n *naivePool) release(asked []int) {
	for _, id := range asked {
		if n.pins[id]--; n.pins[id] == 0 {
			n.oldest = append(n.oldest, id)
		}
	}
}

// TestAgainstNaiveLRU runs one caller that keeps a few pins open: same loads in the
// same order, same residents.
func TestAgainstNaiveLRU(t *testing.T) {
	rng := seeded(t)
	const slots, experts = 6, 8
	banks := oneBank(slots)
	w := newWorld(t, banks)
	p := newPool(t, w, banks, 1)
	naive := &naivePool{slots: slots, pins: map[int]int{}}
	type held struct {
		pins  Pins
		asked []int
	}
	var open []held
	for step := range 3000 {
		if len(open) > rng.IntN(3) {
			at := rng.IntN(len(open))
			open[at].pins.Release()
			naive.release(open[at].asked)
			open = slices.Delete(open, at, at+1)
		}
		layer, ask, ids := 2+rng.IntN(2), []int{}, []int{}
		for range rng.IntN(5) {
			e := rng.IntN(experts)
			ask, ids = append(ask, e), append(ids, (layer-2)*experts+e)
		}
		if !naive.ensure(ids) {
			continue
		}
		pins, err := p.Ensure(t.Context(), layer, ask)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, held{pins, ids})
		w.holds(0, layer, ask, pins.Slots(), 0)
		checkSlots(w, p)
		compareNaive(t, step, naive, w, p.Resident())
		if t.Failed() {
			return
		}
	}
	if e := total(p.Counters(nil)).Evictions; e < 300 {
		t.Errorf("only %d evictions: the test tests nothing", e)
	}
}

func compareNaive(t *testing.T, step int, naive *naivePool, w *world, resident []Key) {
	id := func(k Key) int { return (k.Layer-2)*8 + k.Expert }
	var loads []int
	for _, k := range w.log {
		loads = append(loads, id(k))
	}
	if !slices.Equal(loads, naive.loads) {
		t.Errorf("step %d: loads %v, want %v", step, loads, naive.loads)
	}
	w.log, naive.loads = nil, nil
	if len(resident) != len(naive.pins) {
		t.Errorf("step %d: %d resident, want %d", step, len(resident), len(naive.pins))
	}
	for _, k := range resident {
		if _, there := naive.pins[id(k)]; !there {
			t.Errorf("step %d: %v is resident, want it evicted", step, k)
		}
	}
}
