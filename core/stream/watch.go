package stream

import (
	"cmp"
	"slices"
)

// Resident lists the keys that are resident, those first that were asked for most often.
func (p *Pool) Resident() []Key {
	p.mu.Lock()
	defer p.mu.Unlock()
	type used struct {
		key  Key
		uses uint64
	}
	var all []used
	for _, b := range p.banks {
		for id, e := range b.entries {
			if e.slot >= 0 {
				all = append(all, used{b.key(id), e.uses})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b used) int { return cmp.Compare(b.uses, a.uses) })
	keys := make([]Key, len(all))
	for i, u := range all {
		keys[i] = u.key
	}
	return keys
}

// Counters is what happened to one layer's experts since the pool was made. Hits,
// Late and Misses count experts, once per Ensure that pinned them; their sum is what
// was asked for.
type Counters struct {
	Layer     int
	Hits      int64 // resident
	Late      int64 // found in flight
	Misses    int64 // neither: a load was started
	Evictions int64 // of this layer's records, whoever needed the slot
	Loads     int64 // that succeeded
	Failed    int64 // loads that did not, or that nobody waited for any more
	Bytes     int64 // filled by Loads
	Pieces    int64 // of the records that calls waited for: what could be read at once
	Filled    int64 // loads that Fill started
	Guessed   int64 // loads that Guess started
	Useful    int64 // of them, asked for before they were evicted; some of those late
	Wasted    int64 // of them, evicted or dropped before they were asked for
	Harmed    int64 // asked for again after a guess had taken their slot that nobody asked for meanwhile
}

func (c *Counters) count(there, loading bool) {
	switch {
	case loading:
		c.Late++
	case there:
		c.Hits++
	default:
		c.Misses++
	}
}

// Counters appends the counters of every MoE layer to dst, in the order of the banks
// and their layers, and returns it.
func (p *Pool) Counters(dst []Counters) []Counters {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(dst, p.counters...)
}
