package stream

// Change says where a key is resident now.
type Change struct {
	Key  Key
	Bank int
	Slot int // -1: not resident
}

// Changes appends to dst the keys whose residency changed since the last call, each
// once and as it is now, and returns dst. A key is resident from the end of its load
// until it is evicted, which is before its slot is given to the next load.
//
// The goroutine that owns the queue writes the changes into the residency map right
// before each submit that reads the map, with no upload between the call and the
// submit. Then no submit finds a slot in the map whose record is not the key's.
func (p *Pool) Changes(dst []Change) []Change {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.banks {
		for _, id := range b.changed {
			e := &b.entries[id]
			e.changed = false
			dst = append(dst, Change{Key: b.key(id), Bank: b.index, Slot: int(e.slot)})
		}
		b.changed = b.changed[:0]
	}
	return dst
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
