package stream

import (
	"math"
	"slices"
	"testing"
)

// naiveDecayed scores anew at every turn.
type naiveDecayed struct {
	half   float64
	now    int
	uses   map[int][]int // ticks, by id
	listed []int         // the order of the last Push or Touch
}

func (n *naiveDecayed) score(id int) (s float64) {
	for _, u := range n.uses[id] {
		s += math.Exp2(-float64(n.now-u) / n.half)
	}
	return s
}

func (n *naiveDecayed) remove(id int) {
	n.listed = slices.DeleteFunc(n.listed, func(x int) bool { return x == id })
}

// TestDecayed compares with plain sums. Half-lives are such that sums of different uses differ by more than rounding.
func TestDecayed(t *testing.T) {
	rng := seeded(t)
	const keys = 9
	for _, half := range []float64{0.7, 3.3, 11.3} {
		d, naive := NewDecayed(keys, half), &naiveDecayed{half: half, uses: map[int][]int{}}
		evicted := 0
		for range 10000 {
			id := rng.IntN(keys)
			listed := slices.Contains(naive.listed, id)
			switch op := rng.IntN(5); {
			case op == 0 && len(naive.listed) > 0:
				have := d.Evict()
				if !slices.Contains(naive.listed, have) {
					t.Fatalf("half %v: evicts %d, which is not among %v", half, have, naive.listed)
				}
				for i, x := range naive.listed {
					h, s := naive.score(have), naive.score(x)
					if s < h*(1-1e-9) || s == h && i < slices.Index(naive.listed, have) {
						t.Fatalf("half %v: evicts %d of score %v, want %d of %v", half, have, h, x, s)
					}
				}
				naive.remove(have)
				evicted++
			case op == 1 && listed:
				d.Remove(id)
				naive.remove(id)
			case op == 2:
				d.Touch(id)
				naive.uses[id] = append(naive.uses[id], naive.now)
				if listed {
					naive.remove(id)
					naive.listed = append(naive.listed, id)
				}
			case op == 3 && !listed:
				d.Push(id)
				naive.listed = append(naive.listed, id)
			case op == 4:
				d.Tick(1)
				naive.now++
			}
			if len(naive.uses[id]) > 100 { // what is forgotten is below all rounding
				naive.uses[id] = slices.DeleteFunc(naive.uses[id], func(u int) bool { return float64(naive.now-u) > 60*half })
			}
		}
		if evicted < 500 {
			t.Errorf("only %d evictions: the test tests nothing", evicted)
		}
	}
}

// TestDecayedKeepsCounts: what was used often comes back with its count after an eviction.
func TestDecayedKeepsCounts(t *testing.T) {
	d := NewDecayed(3, 100)
	use := func(id, times int) {
		for range times {
			d.Touch(id)
		}
		d.Push(id)
	}
	use(0, 5)
	if have := d.Evict(); have != 0 {
		t.Fatalf("evicts %d, want 0", have)
	}
	d.Tick(1)
	use(1, 3)
	use(0, 1)
	use(2, 4)
	for _, want := range []int{1, 2, 0} {
		if have := d.Evict(); have != want {
			t.Errorf("evicts %d, want %d", have, want)
		}
	}
}

// Prompts whose chunks sweep over more experts than there are slots find most of what the slots can hold, but for a wave's; with
// one token a step, where the oldest goes first, they would find nothing. What tokens have used often stays.
func TestSweeps(t *testing.T) {
	const keys, slots, wave, hot = 40, 16, 4, 3
	sweep := func(tokens int) (hits, kept int) {
		banks := []Bank{{Layers: []int{0}, Experts: keys, RecordBytes: 1, Slots: slots}}
		w := newWorld(t, banks)
		p, err := New(Config{Banks: banks, Readers: 1, Loader: w, Policy: func(n int) Policy { return NewDecayed(n, 8) }})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for range 5 {
			p.Tick(1)
			use(t, p, 0, 20, 30, 39)
		}
		for i := range 6 {
			if i == 1 {
				hits = -int(total(p.Counters(nil)).Hits)
			}
			p.Tick(tokens)
			for at := 0; at < keys; at += wave {
				use(t, p, 0, at, at+1, at+2, at+3)
			}
		}
		for _, k := range p.Resident() {
			if k.Expert == 20 || k.Expert == 30 || k.Expert == 39 {
				kept++
			}
		}
		return hits + int(total(p.Counters(nil)).Hits), kept
	}
	if hits, kept := sweep(64); hits < 5*(slots-wave) || kept != hot {
		t.Errorf("chunks: have %d hits in 5 sweeps and %d of %d hot experts, want %d and all", hits, kept, hot, 5*(slots-wave))
	}
	if hits, _ := sweep(1); hits > 5*(hot+wave) {
		t.Errorf("single tokens: have %d hits, want few: the test shows nothing", hits)
	}
}

// TestDecayedForLong: a million steps neither overflow nor lose the order.
func TestDecayedForLong(t *testing.T) {
	d := NewDecayed(2, 0.5)
	for range 1 << 20 {
		d.Tick(1)
	}
	d.Touch(1)
	d.Touch(1)
	d.Touch(0)
	d.Push(1)
	d.Push(0)
	if have := d.Evict(); have != 0 {
		t.Errorf("evicts %d, want 0, used once", have)
	}
}

func TestPoliciesAllocateNothing(t *testing.T) {
	for name, p := range map[string]Policy{"lru": NewLRU(64), "decayed": NewDecayed(64, 8)} {
		for id := range 64 {
			p.Push(id)
		}
		if n := testing.AllocsPerRun(100, func() {
			p.Tick(1)
			p.Touch(7)
			p.Remove(9)
			p.Touch(9)
			p.Push(9)
			p.Push(p.Evict())
		}); n != 0 {
			t.Errorf("%s: have %v allocations, want none", name, n)
		}
	}
}
