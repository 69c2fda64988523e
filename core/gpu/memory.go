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

// Memory is the account of all buffers of a device, in bytes as booked (see Booked); the budget is about these. Pipelines, and
// what the library keeps for queue writes, are not in it.
type Memory struct {
	Live      map[Kind]uint64
	Peak      map[Kind]uint64 // the most each kind ever had
	Total     uint64          // live, all kinds
	PeakTotal uint64          // the most Total ever was
	Reserved  uint64          // what the live buffers take from the driver (see Reserved)
	Budget    uint64          // 0: none
	Created   uint64          // buffers made so far
	Freed     uint64          // buffers released so far
}

// allocationUnit is what buffer sizes are counted in: the largest alignment that WebGPU lets a driver ask of a binding.
const allocationUnit = 256

// Booked is what a buffer of n bytes counts in the account.
func Booked(n uint64) uint64 { return roundUp(n, allocationUnit) }

// Reserved is what a buffer of n bytes takes from a Vulkan driver: the library's allocator (gpu-alloc 0.6 as wgpu configures
// it) gives powers of two from 1 KiB up to 32 MiB, and larger buffers memory of their own. Measured so on an H200.
func Reserved(n uint64) uint64 {
	const least, own = 1 << 10, 32 << 20
	if n >= own {
		return n
	}
	return 1 << bits.Len64(max(n, least)-1)
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

// SetAllocationHook installs f, which NewBuffer asks first and whose error it returns: for tests of what callers do when
// memory runs out. nil removes it.
func (d *Device) SetAllocationHook(f func(kind Kind, label string, size uint64) error) {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	d.memory.hook = f
}

// take books size bytes, or says why not.
func (l *ledger) take(kind Kind, label string, size uint64) error {
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
	m.Reserved += Reserved(size)
	m.PeakTotal = max(m.PeakTotal, m.Total)
	m.Created++
	return nil
}

// give takes size bytes off the account.
func (l *ledger) give(kind Kind, size uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m.Live[kind] < size || l.m.Total < size {
		panic(fmt.Sprintf("BUG: gpu: %d bytes of %s freed, %d there", size, kind, l.m.Live[kind]))
	}
	l.m.Live[kind] -= size
	l.m.Total -= size
	l.m.Reserved -= Reserved(size)
	l.m.Freed++
}
