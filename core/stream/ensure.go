package stream

import (
	"context"
	"fmt"
	"slices"
)

// Pins keeps what one Ensure made resident in its slots until Release.
type Pins struct {
	pool *Pool
	set  *pinSet
	use  uint64 // of the set, which is re-used after Release
}

// pinSet is what Pins points to. slots, ids and loads are parallel, in the order asked.
type pinSet struct {
	bank    *bank
	slots   []int
	ids     []int         // negative where the load failed, which has taken its pins back
	loads   []*load       // nil where the record is there
	pending int           // loads that have not ended
	rest    int           // of them, as many as Wait does not wait for
	ready   chan struct{} // gets a value when pending is down to rest, or err is set
	err     error         // of the first load that failed
	use     uint64
}

// Slots returns the slots in the order the experts were asked for, in the layer's
// bank. The slice belongs to the pool and is valid until Release.
func (p Pins) Slots() []int {
	if p.set == nil {
		return nil
	}
	return p.set.slots
}

// Release lets the slots be evicted again. Call it when the submit that reads them
// is queued. Releasing twice is harmless.
func (p Pins) Release() {
	if p.set == nil {
		return
	}
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	if p.set.use == p.use {
		p.pool.drop(p.set)
	}
}

// Ensure makes experts of an MoE layer resident and pins them until Release. Their
// slots come in the order asked; an expert may be asked for more than once. Records
// that are missing are loaded, each once however many calls want it.
//
// While too few slots are free or evictable it waits, holding none, so calls don't
// block each other half-way. A caller that keeps pins of a bank while it asks for
// more there can still wait for itself, until the context ends.
//
// It fails for an unknown layer or expert, for more experts than the bank has slots
// (ask in waves), when the context ends, when the pool closes, and when a load fails
// (the error names layer and expert and wraps the loader's). Then nothing stays
// pinned. It allocates nothing when all are resident.
func (p *Pool) Ensure(ctx context.Context, layer int, experts []int) (Pins, error) {
	pins, err := p.Request(ctx, layer, experts)
	if err == nil {
		err = pins.Wait(ctx, 0)
	}
	return pins, err
}

// Request is Ensure that returns when all loads are queued: [Pins.Wait] waits for them.
func (p *Pool) Request(ctx context.Context, layer int, experts []int) (Pins, error) {
	at, err := p.find(layer, experts)
	if err != nil {
		return Pins{}, err
	}
	if err := ctx.Err(); err != nil {
		return Pins{}, fmt.Errorf("stream: layer %d: %w", layer, err)
	}
	set, err := p.reserve(ctx, at, experts)
	if err != nil {
		return Pins{}, fmt.Errorf("stream: layer %d: %w", layer, err)
	}
	return Pins{pool: p, set: set, use: set.use}, nil
}

// Wait waits until all records that were requested are there but for rest of them. Where one could not be loaded, or the
// context ends, it releases the pins and says why; it may wait for less the next time.
func (p Pins) Wait(ctx context.Context, rest int) error {
	if p.set == nil {
		return nil
	}
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	if p.set.use != p.use {
		return nil
	}
	err := p.pool.wait(ctx, p.set, rest)
	if err != nil {
		p.pool.drop(p.set)
	}
	return err
}

// There reports whether the record of the i-th expert requested is there, which then stays so until Release.
func (p Pins) There(i int) bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return p.set.use == p.use && p.set.ids[i] >= 0 && p.set.loads[i] == nil
}

// Used books experts that a token used without an Ensure, because all were resident when it looked: as hits, and as uses
// that the policy learns of. Some may have been evicted since.
func (p *Pool) Used(layer int, experts []int) {
	at, err := p.find(layer, experts)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range experts {
		at.bank.policy.Touch(at.first + x)
		p.wanted(at.bank, at.first+x, &p.counters[at.counters])
	}
	p.counters[at.counters].Hits += int64(len(experts))
}

// Found books n hits of a layer while all is resident, when no policy needs to know which.
func (p *Pool) Found(layer, n int) {
	at, err := p.find(layer, nil)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counters[at.counters].Hits += int64(n)
}

// Whole reports whether every expert of every layer is resident, which then stays so.
func (p *Pool) Whole() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.absent == 0
}

// find returns the place of a layer after checking the experts' numbers.
func (p *Pool) find(layer int, experts []int) (place, error) {
	if layer < 0 || layer >= len(p.places) || p.places[layer].bank == nil {
		return place{}, fmt.Errorf("stream: layer %d: have a layer without experts, want one that a bank serves", layer)
	}
	at := p.places[layer]
	for _, e := range experts {
		if e < 0 || e >= at.bank.experts {
			return place{}, fmt.Errorf("stream: layer %d: have expert %d, want 0 to %d", layer, e, at.bank.experts-1)
		}
	}
	return at, nil
}

// reserve pins all that is asked and starts loading what is missing, or waits until
// it can do so in one go.
func (p *Pool) reserve(ctx context.Context, at place, experts []int) (*pinSet, error) {
	b := at.bank
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.closed {
			return nil, errClosed
		}
		distinct, missing, idle := b.count(at.first, experts)
		if distinct > b.slots {
			return nil, fmt.Errorf("have %d experts asked at once, want at most %d, the slots of bank %d: ask in waves",
				distinct, b.slots, b.index)
		}
		if missing <= len(b.free)+b.evictable-idle {
			return p.take(at, experts), nil
		}
		if err := p.waitSlot(ctx, b); err != nil {
			return nil, err
		}
	}
}

// count marks what is asked and returns how many different experts that is, how many
// of them need a slot, and how many are in one that could be evicted.
func (b *bank) count(first int, experts []int) (distinct, missing, idle int) {
	b.mark++
	for _, x := range experts {
		e := &b.entries[first+x]
		if e.mark == b.mark {
			continue
		}
		e.mark = b.mark
		distinct++
		switch {
		case e.slot < 0 && e.load == nil:
			missing++
		case e.slot >= 0 && e.pins == 0:
			idle++
		}
	}
	return distinct, missing, idle
}

// take pins what count found room for: first what is there, so that no expert asked
// for is evicted for another one.
func (p *Pool) take(at place, experts []int) *pinSet {
	b, c := at.bank, &p.counters[at.counters]
	set := p.newSet(b, len(experts))
	for i, x := range experts {
		id := at.first + x
		e := &b.entries[id]
		set.ids[i], set.loads[i] = id, e.load
		set.slots[i] = int(e.slot)
		if e.load != nil {
			set.slots[i] = e.load.slot
		}
		there := set.slots[i] >= 0
		if there {
			b.pin(id)
		}
		if e.mark == b.mark { // the first time in this call
			e.mark = 0
			b.policy.Touch(id)
			c.count(there, e.load != nil)
			p.wanted(b, id, c)
			p.asks(b, id, c)
		}
	}
	for i, id := range set.ids {
		if set.slots[i] >= 0 {
			continue
		}
		e := &b.entries[id]
		if e.load == nil {
			p.start(b, id, false)
		}
		b.pin(id)
		set.loads[i], set.slots[i] = e.load, e.load.slot
	}
	for i, l := range set.loads {
		if l != nil && !slices.Contains(set.loads[:i], l) {
			l.waiting = append(l.waiting, set)
			set.pending++
		}
	}
	return set
}

// waitSlot waits until a slot of the bank may have become free. The lock is open
// meanwhile.
func (p *Pool) waitSlot(ctx context.Context, b *bank) error {
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	freed := b.freed
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-freed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for a slot of bank %d: %w", b.index, ctx.Err())
	}
}

// wait returns when all records are there but for rest, or why one is not. The lock is open meanwhile.
func (p *Pool) wait(ctx context.Context, s *pinSet, rest int) error {
	s.rest = rest
	for s.pending > rest && s.err == nil {
		p.mu.Unlock()
		select {
		case <-s.ready:
			p.mu.Lock()
		case <-ctx.Done():
			p.mu.Lock()
			if i := slices.IndexFunc(s.loads, func(l *load) bool { return l != nil }); i >= 0 {
				return fmt.Errorf("stream: %v: %w", s.bank.key(s.ids[i]), ctx.Err())
			}
		}
	}
	return s.err
}

// ended takes note that a load has ended.
func (s *pinSet) ended(l *load, err error) {
	for i := range s.loads {
		if s.loads[i] == l {
			s.loads[i] = nil
			if err != nil {
				s.ids[i] = -1
			}
		}
	}
	s.pending--
	if s.err == nil {
		s.err = err
	}
	if s.pending <= s.rest || s.err != nil {
		select {
		case s.ready <- struct{}{}:
		default:
		}
	}
}

// newSet returns a set for n experts of a bank, a released one where there is one.
func (p *Pool) newSet(b *bank, n int) *pinSet {
	var set *pinSet
	if last := len(p.sets) - 1; last >= 0 {
		set, p.sets = p.sets[last], p.sets[:last]
	} else {
		set = &pinSet{ready: make(chan struct{}, 1)}
	}
	if cap(set.slots) < n {
		set.slots, set.ids, set.loads = make([]int, n), make([]int, n), make([]*load, n)
	}
	set.bank, set.slots, set.ids, set.loads = b, set.slots[:n], set.ids[:n], set.loads[:n]
	return set
}

// drop takes the set's pins back and keeps it for re-use.
func (p *Pool) drop(set *pinSet) {
	for i, id := range set.ids {
		if l := set.loads[i]; l != nil {
			l.forget(set)
		}
		if id >= 0 {
			set.bank.unpin(id)
		}
	}
	clear(set.loads)
	set.pending, set.rest, set.err = 0, 0, nil
	select {
	case <-set.ready:
	default:
	}
	set.use++
	p.sets = append(p.sets, set)
}
