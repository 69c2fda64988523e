package stream

import "math"

// decayed is a binary heap of the listed ids, the next to evict first.
//
// A key's score at tick t is the sum over its uses u of 2^-((t-u)/half). Two scores
// decay by the same factor, so their order changes with uses only, and the heap holds
// while time passes: kept is log2(score at t) + t/half, the same at every t.
type decayed struct {
	half  float64   // ticks
	now   float64   // ticks so far, over half
	kept  []float64 // by id, of all keys, listed or not; -Inf for one that was never used
	seq   []int64   // by id, of its last Push or Touch: of equal scores the lowest goes first
	clock int64
	chunk bool // the step has many tokens
	heap  []int32
	at    []int32 // by id, place in the heap; -1 where not listed
}

// NewDecayed returns the policy that evicts the key with the lowest decayed frequency of
// keys keys: a use counts 1, and half as much every half ticks (steps of the model).
// Counts outlive evictions. Among equals the least recently used goes first, but of those that a prompt's chunk used the most
// recent: chunks ask for all experts in turn, so what was just used is needed last. Methods are O(log keys) and allocate
// nothing.
func NewDecayed(keys int, half float64) Policy {
	if !(half > 0) {
		panic("BUG: stream: a half-life must be above 0 ticks")
	}
	d := &decayed{half: half, kept: make([]float64, keys), seq: make([]int64, keys), heap: make([]int32, 0, keys), at: make([]int32, keys)}
	for i := range keys {
		d.kept[i], d.at[i] = math.Inf(-1), -1
	}
	return d
}

func (d *decayed) Tick(tokens int) {
	d.now += 1 / d.half
	d.chunk = tokens > 1
}

func (d *decayed) Touch(id int) {
	d.kept[id] = d.now + math.Log2(1+math.Exp2(d.kept[id]-d.now))
	d.stamp(id)
	if i := int(d.at[id]); i >= 0 {
		d.down(i)
		d.up(int(d.at[id])) // a use raises it, but where the score is too large to show it
	}
}

func (d *decayed) Push(id int) {
	d.stamp(id)
	d.at[id] = int32(len(d.heap))
	d.heap = append(d.heap, int32(id))
	d.up(len(d.heap) - 1)
}

func (d *decayed) Remove(id int) {
	i, last := int(d.at[id]), len(d.heap)-1
	d.swap(i, last)
	d.heap, d.at[id] = d.heap[:last], -1
	if i < last {
		d.down(i)
		d.up(i)
	}
}

func (d *decayed) Evict() int {
	id := int(d.heap[0])
	d.Remove(id)
	return id
}

func (d *decayed) stamp(id int) {
	d.clock++
	d.seq[id] = d.clock
	if d.chunk {
		d.seq[id] = -d.clock
	}
}

// before says whether the id at i goes before the one at j.
func (d *decayed) before(i, j int) bool {
	a, b := d.heap[i], d.heap[j]
	if d.kept[a] != d.kept[b] {
		return d.kept[a] < d.kept[b]
	}
	return d.seq[a] < d.seq[b]
}

func (d *decayed) swap(i, j int) {
	d.heap[i], d.heap[j] = d.heap[j], d.heap[i]
	d.at[d.heap[i]], d.at[d.heap[j]] = int32(i), int32(j)
}

func (d *decayed) up(i int) {
	for parent := (i - 1) / 2; i > 0 && d.before(i, parent); i, parent = parent, (parent-1)/2 {
		d.swap(i, parent)
	}
}

func (d *decayed) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(d.heap); c++ {
			if d.before(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		d.swap(i, least)
		i = least
	}
}
