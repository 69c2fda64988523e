package ram

import "github.com/sluicehost/sluice/core/stream"

// bank is the records of one size. Its ids count the experts of its layers, one layer after the
// other; each is absent, in use (pins), or in one of two lists.
type bank struct {
	experts int
	slot    int64 // bytes from one slot to the next
	memory  []byte
	entries []entry
	free    []int32
	kept    list // not on the GPU
	spare   list // on the GPU, too
}

type entry struct {
	slot    int32 // -1 where it is absent
	pins    int32 // calls that copy from it or fill it
	filling bool
	spare   bool // a read has brought it to the GPU, which has not said since that it leaves
}

// list is the ids that may be evicted, the least recently used first.
type list struct {
	stream.Policy
	n int
}

func (l *list) push(id int)   { l.Push(id); l.n++ }
func (l *list) remove(id int) { l.Remove(id); l.n-- }

func newBank(b stream.Bank, memory []byte) *bank {
	keys := len(b.Layers) * b.Experts
	x := &bank{
		experts: b.Experts, slot: b.RecordBytes, memory: memory, entries: make([]entry, keys),
		kept: list{Policy: stream.NewLRU(keys)}, spare: list{Policy: stream.NewLRU(keys)},
	}
	for i := range x.entries {
		x.entries[i].slot = -1
	}
	for i := range b.Slots {
		x.free = append(x.free, int32(b.Slots-1-i)) // the last is taken first
	}
	return x
}

// data is the memory of a slot, at least as long as any record of the bank.
func (b *bank) data(slot int32) []byte {
	return b.memory[int64(slot)*b.slot:][:b.slot:b.slot]
}

// listOf is the list that an id is in where it has no pins.
func (b *bank) listOf(id int) *list {
	if b.entries[id].spare {
		return &b.spare
	}
	return &b.kept
}

func (b *bank) pin(id int) {
	if b.entries[id].pins++; b.entries[id].pins == 1 {
		b.listOf(id).remove(id)
	}
}

func (b *bank) unpin(id int) {
	if b.entries[id].pins--; b.entries[id].pins == 0 {
		b.listOf(id).push(id)
	}
}

// makeRoom sees to a free slot and reports whether there is one; it counts what it evicts that is nowhere else.
func (b *bank) makeRoom(evictions *int64) bool {
	if len(b.free) > 0 {
		return true
	}
	l := &b.spare
	if l.n == 0 {
		l = &b.kept
		if l.n == 0 {
			return false
		}
		*evictions++
	}
	l.n--
	e := &b.entries[l.Evict()]
	b.free = append(b.free, e.slot)
	e.slot, e.spare = -1, false
	return true
}
