package simulate

import (
	"container/heap"
	"math"

	"github.com/sluicehost/sluice/core/stream"
)

// Replay is the outcome with a policy for each bank.
func (d *Demand) Replay(banks []stream.Bank, policy func(keys int) stream.Policy) Outcome {
	var s sum
	for _, b := range banks {
		served := d.serve(b.Layers)
		asked, hits := d.replay(served, b.Slots, policy(served.keys))
		s.add(asked, hits, b.RecordBytes)
	}
	return d.outcome(s)
}

// Best is the outcome where each bank evicts what will be asked for last (Belady's MIN): the
// bound for every policy that loads what is asked and nothing else.
func (d *Demand) Best(banks []stream.Bank) Outcome {
	var s sum
	for _, b := range banks {
		served := d.serve(b.Layers)
		asked, hits := d.replay(served, b.Slots, newBelady(d, served))
		s.add(asked, hits, b.RecordBytes)
	}
	return d.outcome(s)
}

// replay calls a policy as the pool does that has one caller.
func (d *Demand) replay(b bank, slots int, policy stream.Policy) (asked, hits int64) {
	resident, free := make([]bool, b.keys), slots
	var ids []int
	for i, first := range d.of(b) {
		a := d.asks[i]
		if a.layer == b.layers[0].layer { // the step's first: the policy sees no other
			policy.Tick(a.tokens)
		}
		for rest := a.experts; len(rest) > 0; { // in waves, where a prompt asks for more than there are slots
			wave := rest[:min(slots, len(rest))]
			rest = rest[len(wave):]
			ids = ids[:0]
			for _, e := range wave {
				ids = append(ids, first+int(e))
			}
			found := ensure(policy, resident, &free, ids)
			if a.counted {
				asked += int64(len(ids))
				hits += int64(found)
			}
		}
	}
	return asked, hits
}

// ensure pins ids, loads what is missing, and releases them.
func ensure(policy stream.Policy, resident []bool, free *int, ids []int) (hits int) {
	for _, id := range ids {
		if resident[id] {
			hits++
			policy.Remove(id)
		}
		policy.Touch(id)
	}
	for _, id := range ids {
		if resident[id] {
			continue
		}
		if *free == 0 {
			resident[policy.Evict()] = false
		} else {
			*free--
		}
		resident[id] = true
	}
	for _, id := range ids {
		policy.Push(id)
	}
	return hits
}

// belady is the policy that knows what comes.
type belady struct {
	uses   [][]int32 // by id, the numbers of the asks to come
	listed []bool
	heap   uses // of the listed, and of some that no longer are
}

func newBelady(d *Demand, b bank) *belady {
	p := &belady{uses: make([][]int32, b.keys), listed: make([]bool, b.keys)}
	for i, first := range d.of(b) {
		for _, e := range d.asks[i].experts {
			p.uses[first+int(e)] = append(p.uses[first+int(e)], int32(i))
		}
	}
	return p
}

// next is when an id is used next.
func (p *belady) next(id int) int32 {
	if len(p.uses[id]) == 0 {
		return math.MaxInt32
	}
	return p.uses[id][0]
}

func (p *belady) Tick(int)      {}
func (p *belady) Touch(id int)  { p.uses[id] = p.uses[id][1:] }
func (p *belady) Remove(id int) { p.listed[id] = false }

func (p *belady) Push(id int) {
	p.listed[id] = true
	heap.Push(&p.heap, use{p.next(id), int32(id)})
}

func (p *belady) Evict() int {
	for {
		u := heap.Pop(&p.heap).(use)
		if id := int(u.id); p.listed[id] && p.next(id) == u.at {
			p.listed[id] = false
			return id
		}
	}
}

// use is an ask to come.
type use struct{ at, id int32 }

// uses is a heap with the last one first.
type uses []use

func (h uses) Len() int           { return len(h) }
func (h uses) Less(i, j int) bool { return h[i].at > h[j].at }
func (h uses) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *uses) Push(x any)        { *h = append(*h, x.(use)) }

func (h *uses) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
