package stream

import "slices"

// A bank's keys are numbered by id: position of the layer in the bank times
// experts per layer, plus expert. Each id is in one of three states:
//
//	absent    slot < 0, load == nil, pins == 0
//	loading   slot < 0, load != nil: the load owns the slot
//	resident  slot >= 0, load == nil; with pins == 0 it is in the policy's list
//
// so each slot is free, owned by one load, or owned by one resident key.
type bank struct {
	index  int
	layers []int
	// experts, bytes and counters: per layer, per record, of the bank's first layer.
	experts  int
	bytes    int64
	counters int
	slots    int

	entries   []entry
	free      []int // slots nobody owns
	policy    Policy
	evictable int    // ids in the policy's list
	mark      uint64 // of the last count
	freed     chan struct{}
}

type entry struct {
	slot    int32 // where it is resident, or -1
	pins    int32
	load    *load  // while it is loaded
	mark    uint64 // equal to bank.mark: asked for, not yet taken
	uses    uint64 // times it was asked for, over evictions
	guessed bool   // resident because of a guess, and not asked for since
	// displaced says that a guess took its slot, and victim is the id and 1 of the key whose slot this one's guess took; 0 for none.
	displaced bool
	victim    int32
}

func newBank(index int, c Bank, policy Policy, counters int) *bank {
	b := &bank{
		index: index, layers: slices.Clone(c.Layers), experts: c.Experts, bytes: c.RecordBytes, slots: c.Slots,
		counters: counters, policy: policy,
		entries: make([]entry, len(c.Layers)*c.Experts),
		free:    make([]int, c.Slots),
	}
	for i := range b.entries {
		b.entries[i].slot = -1
	}
	for i := range b.free {
		b.free[i] = c.Slots - 1 - i // the last is taken first
	}
	return b
}

func (b *bank) key(id int) Key {
	return Key{Layer: b.layers[id/b.experts], Expert: id % b.experts}
}

// pin keeps a loading or resident id in its slot until unpin.
func (b *bank) pin(id int) {
	e := &b.entries[id]
	if e.pins == 0 && e.slot >= 0 {
		b.policy.Remove(id)
		b.evictable--
	}
	e.pins++
}

// unpin takes one pin back. An unwanted load stays: its reader drops or ends it.
func (b *bank) unpin(id int) {
	e := &b.entries[id]
	if e.pins <= 0 {
		panic("BUG: stream: " + b.key(id).String() + " has no pin to release")
	}
	e.pins--
	if e.pins == 0 && e.slot >= 0 {
		b.offer(id)
	}
}

// offer lets a resident id without pins be evicted.
func (b *bank) offer(id int) {
	b.policy.Push(id)
	b.evictable++
	b.wake()
}

// evict makes a slot free by clearing the policy's choice, and returns its id.
func (b *bank) evict() int {
	id := b.policy.Evict()
	e := &b.entries[id]
	if e.pins != 0 || e.slot < 0 {
		panic("BUG: stream: the policy evicts " + b.key(id).String() + ", which is pinned or not resident")
	}
	b.evictable--
	b.free = append(b.free, int(e.slot))
	e.slot = -1
	return id
}

// release returns a slot whose load failed.
func (b *bank) release(slot int) {
	b.free = append(b.free, slot)
	b.wake()
}

// wake lets calls that wait for a slot look again.
func (b *bank) wake() {
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}
