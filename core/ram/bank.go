package ram

import "github.com/sluicehost/sluice/core/stream"

// bank is the records of one size. Its ids count the experts of its layers, one layer after the
// other; each is absent, being filled, in use (pins) or in the policy's list.
type bank struct {
	experts int
	slot    int64 // bytes from one slot to the next
	memory  []byte
	entries []entry
	free    []int32
	policy  stream.Policy
	listed  int // ids in the policy's list
}

type entry struct {
	slot    int32 // -1 where it is absent
	pins    int32 // calls that copy from it or fill it
	filling bool
}

func newBank(b stream.Bank, memory []byte) *bank {
	x := &bank{
		experts: b.Experts, slot: b.RecordBytes, memory: memory,
		entries: make([]entry, len(b.Layers)*b.Experts), policy: stream.NewLRU(len(b.Layers) * b.Experts),
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
