package simulate

import (
	"fmt"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/core/stream"
)

// stack orders keys by their last use and tells how much lies above one: what an LRU
// cache must hold to have kept it (the stack distance of Mattson et al., 1970). Sums
// come from a Fenwick tree over places, which are given out in order of use.
type stack struct {
	cost  []int64 // by key
	place []int   // by key, from 1 on; 0 for one that was never used
	key   []int   // by place, -1 where it moved on
	tree  []int64
	total int64
}

func newStack(cost []int64) *stack {
	n := 2*len(cost) + 2
	return &stack{cost: cost, place: make([]int, len(cost)), key: make([]int, 1, n), tree: make([]int64, n)}
}

func (s *stack) add(place int, cost int64) {
	s.total += cost
	for ; place < len(s.tree); place += place & -place {
		s.tree[place] += cost
	}
}

// distance is the cost of a key and all that was used after it; -1 where it never was.
func (s *stack) distance(key int) int64 {
	if s.place[key] == 0 {
		return -1
	}
	d := s.total
	for p := s.place[key] - 1; p > 0; p &= p - 1 {
		d -= s.tree[p]
	}
	return d
}

// use puts a key on top.
func (s *stack) use(key int) {
	if p := s.place[key]; p > 0 {
		s.add(p, -s.cost[key])
		s.key[p] = -1
	}
	if len(s.key) == len(s.tree) {
		s.compact()
	}
	s.place[key] = len(s.key)
	s.key = append(s.key, key)
	s.add(s.place[key], s.cost[key])
}

// compact gives new places, in the same order.
func (s *stack) compact() {
	old := s.key[1:]
	s.key, s.total = s.key[:1], 0
	clear(s.tree)
	for _, key := range old {
		if key >= 0 {
			s.place[key] = len(s.key)
			s.key = append(s.key, key)
			s.add(s.place[key], s.cost[key])
		}
	}
}

// curve is how many of a bank's picks LRU finds, at every capacity.
type curve struct {
	asked     int64
	distances []int64 // ascending, distinct
	hits      []int64 // at a capacity of the distance
}

type curveOnce struct {
	once sync.Once
	*curve
}

// curve makes one pass over the trace for a bank. costs are by layer of the header; name tells them from others.
func (d *Demand) curve(layers []int, name string, costs func(layer int) int64) *curve {
	key := fmt.Sprint(name, layers)
	d.mu.Lock()
	c := d.curves[key]
	if c == nil {
		c = &curveOnce{}
		d.curves[key] = c
	}
	d.mu.Unlock()
	c.once.Do(func() { c.curve = d.pass(d.serve(layers), costs) })
	return c.curve
}

func (d *Demand) pass(b bank, costs func(layer int) int64) *curve {
	cost := make([]int64, b.keys)
	for _, l := range b.layers {
		for e := range d.Header.Experts {
			cost[l.first+e] = costs(l.layer)
		}
	}
	s, c, counts := newStack(cost), &curve{}, map[int64]int64{}
	for i, first := range d.of(b) {
		a := d.asks[i]
		if a.counted { // an ask finds what is there before it
			for _, e := range a.experts {
				c.asked++
				if x := s.distance(first + int(e)); x >= 0 {
					counts[x]++
				}
			}
		}
		for _, e := range a.experts {
			s.use(first + int(e))
		}
	}
	for x := range counts {
		c.distances = append(c.distances, x)
	}
	slices.Sort(c.distances)
	var sum int64
	for _, x := range c.distances {
		sum += counts[x]
		c.hits = append(c.hits, sum)
	}
	return c
}

// at is the hits of a cache of that capacity, in what costs are given in.
func (c *curve) at(capacity int64) int64 {
	i, exact := slices.BinarySearch(c.distances, capacity)
	if !exact {
		i--
	}
	if i < 0 {
		return 0
	}
	return c.hits[i]
}

// LRU is the outcome with the least recently used evicted from each bank. The first call
// for a division of layers makes a pass over the trace; another number of slots costs nothing.
func (d *Demand) LRU(banks []stream.Bank) Outcome {
	var s sum
	for _, b := range banks {
		c := d.curve(b.Layers, "slots", func(int) int64 { return 1 })
		s.add(c.asked, c.at(int64(b.Slots)), b.RecordBytes)
	}
	return d.outcome(s)
}

// Global is the outcome of one LRU over all layers in the same bytes, which no pool of several banks
// can have: what eviction per bank loses. Where records differ in size it is an estimate.
func (d *Demand) Global(banks []stream.Bank) Outcome {
	costs, layers, held := make([]int64, len(d.Header.Layers)), []int(nil), int64(0)
	for _, b := range banks {
		held += int64(b.Slots) * b.RecordBytes
		layers = append(layers, b.Layers...)
		for _, l := range b.Layers {
			costs[d.index[l]] = b.RecordBytes
		}
	}
	slices.Sort(layers)
	c := d.curve(layers, fmt.Sprint(costs), func(layer int) int64 { return costs[layer] })
	var asked, bytes int64
	for _, a := range d.asks {
		if a.counted {
			asked += int64(len(a.experts))
			bytes += int64(len(a.experts)) * costs[a.layer]
		}
	}
	hits := c.at(held)
	missed := float64(bytes) / float64(max(asked, 1)) * float64(asked-hits) // records of the mean size
	return Outcome{asked, hits, float64(hits) / float64(max(asked, 1)), missed / float64(d.Tokens)}
}
