package gpu

import (
	"fmt"
	"maps"
	"math/bits"
	"sync"

	"github.com/dustin/go-humanize"
)

// Kind says what a buffer is for; bytes are counted by it.
type Kind string

// The kinds of buffers.
const (
	Dense   Kind = "dense"   // weights that stay
	KV      Kind = "kv"      // keys and values of a session
	State   Kind = "state"   // recurrent state of a session, and snapshots
	Scratch Kind = "scratch" // activations
	Staging Kind = "staging" // memory that the CPU maps
	Pool    Kind = "pool"    // expert slots
	Table   Kind = "table"   // what the host tells kernels: step, picks, tiles, uniforms
)

// Memory is the account of all buffers of a device, in bytes as reserved (see Reserved); the budget is about these. Pipelines, and
// what the library keeps for queue writes, are not in it.
type Memory struct {
	Live      map[Kind]uint64
	Peak      map[Kind]uint64 // the most each kind ever had
	Total     uint64          // live, all kinds
	PeakTotal uint64          // the most Total ever was
	Requested uint64          // what the live buffers were asked for
	Budget    uint64          // 0: none
	Created   uint64          // buffers made so far
	Freed     uint64          // buffers released so far
}

const (
	leastReserved = 1 << 10
	// OwnMemory is the size from which on a buffer has memory of its own, and takes no more than it asks for.
	OwnMemory = 32 << 20
	// allocationUnit is the largest alignment that WebGPU lets a driver ask of a binding.
	allocationUnit = 256
)

// Reserved is what a buffer of n bytes takes, and counts in the account and in every prediction. On Vulkan the library (wgpu
// 22.1) allocates with gpu-alloc 0.6, Config::i_am_prototyping: below 32 MiB a buddy allocator gives powers of two, 1 KiB at
// least, and larger buffers have memory of their own. Where a heap has less than 1 GiB, own memory begins lower. On an H200 it
// is measured to be so. The power-of-two blocks lie in chunks of 8 MiB, or twice the largest block if that is more; less than one
// chunk for each memory type (two or three of them) is not in use, and not in the account.
//
// On Metal each buffer is an MTLBuffer and on DX12 a committed resource of the size asked for, which the driver rounds up to
// pages (DX12: 64 KiB): there this is an upper bound for all buffers that are larger than a page.
func Reserved(n uint64) uint64 {
	if n >= OwnMemory {
		return roundUp(n, allocationUnit)
	}
	return 1 << bits.Len64(max(n, leastReserved)-1)
}

type ledger struct {
	mu   sync.Mutex
	m    Memory
	hook func(kind Kind, label string, size uint64) error
}

// Memory returns the account of all buffers.
func (d *Device) Memory() Memory {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	m := d.memory.m
	m.Live, m.Peak = maps.Clone(m.Live), maps.Clone(m.Peak)
	return m
}

// Bytes returns the live bytes of each kind.
func (d *Device) Bytes() map[Kind]uint64 { return d.Memory().Live }

// SetBudget makes NewBuffer refuse what would bring the total over n bytes; 0 takes the limit away. Buffers that are there
// already stay.
func (d *Device) SetBudget(n uint64) {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	d.memory.m.Budget = n
}

// SetAllocationHook installs f, which NewBuffer asks first, with the bytes to be reserved, and whose error it returns: for tests
// of what callers do when memory runs out. nil removes it.
func (d *Device) SetAllocationHook(f func(kind Kind, label string, size uint64) error) {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	d.memory.hook = f
}

// take books a buffer of size bytes, or says why not.
func (l *ledger) take(kind Kind, label string, requested uint64) error {
	size := Reserved(requested)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hook != nil {
		if err := l.hook(kind, label, size); err != nil {
			return fmt.Errorf("gpu: %s buffer %s: %w", kind, label, err)
		}
	}
	m := &l.m
	if m.Budget > 0 && (size > m.Budget || m.Total > m.Budget-size) {
		return fmt.Errorf("gpu: %s buffer %s: %w: have %s of %s in use, want %s more",
			kind, label, ErrBudget, humanize.IBytes(m.Total), humanize.IBytes(m.Budget), humanize.IBytes(size))
	}
	if m.Live == nil {
		m.Live, m.Peak = map[Kind]uint64{}, map[Kind]uint64{}
	}
	m.Live[kind] += size
	m.Peak[kind] = max(m.Peak[kind], m.Live[kind])
	m.Total += size
	m.Requested += requested
	m.PeakTotal = max(m.PeakTotal, m.Total)
	m.Created++
	return nil
}

// give takes a buffer of so many bytes off the account.
func (l *ledger) give(kind Kind, requested uint64) {
	size := Reserved(requested)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m.Live[kind] < size || l.m.Total < size {
		panic(fmt.Sprintf("BUG: gpu: %d bytes of %s freed, %d there", size, kind, l.m.Live[kind]))
	}
	l.m.Live[kind] -= size
	l.m.Total -= size
	l.m.Requested -= requested
	l.m.Freed++
}
