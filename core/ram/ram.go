// Package ram keeps expert records in host memory, packed as the GPU takes them: a
// [store.Source] in front of another, for what the GPU's slots don't hold and the disk
// need not be asked for again. It bounds its memory to the byte, which the system's page
// cache does not, and what it holds needs no packing.
//
// Records come in when they are read for the GPU, and the least recently read go. A record
// that stays on the GPU is not asked for here, so it makes room while it is not needed.
//
// Start at [New].
package ram

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/core/stream"
	"github.com/sluicehost/sluice/sdk/program"
)

// pageBytes is the multiple of which a slot is, so that each begins with a page.
const pageBytes = 4096

// Cache is a source whose records stay in memory for a while after a read. All but ReadRecord is
// the other source's.
type Cache struct {
	store.Source
	mu      sync.Mutex
	places  map[int]place // by layer
	memory  [][]byte      // of all banks
	counted Counters
}

// place is where a layer's records go.
type place struct {
	bank   *bank
	first  int // id of expert 0
	stride int // bytes of a record
}

// Counters are what happened so far.
type Counters struct {
	Hits, Misses, Evictions int64 // records
	Bytes                   int64 // of records that came from memory
	Slots                   int
	Size                    uint64 // bytes of all slots
}

// New makes a cache in front of src, whose Close it takes over, of at most size bytes for placed
// records of so many experts each. Layers share the memory with those whose records are as large;
// each such group gets the same part of its experts. A size that has not a slot for each of them is
// an error.
func New(src store.Source, records []*program.PlacedRecord, experts int, size uint64) (*Cache, error) {
	banks, err := divide(records, experts, size)
	if err != nil {
		return nil, err
	}
	c := &Cache{Source: src, places: map[int]place{}}
	strides := map[int]int{}
	for _, r := range records {
		strides[int(r.GetLayer())] = int(r.GetStride())
	}
	for _, b := range banks {
		memory, err := reserve(int(int64(b.Slots) * b.RecordBytes))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("ram: %d bytes: %w", int64(b.Slots)*b.RecordBytes, err), c.release())
		}
		x := newBank(b, memory)
		c.memory = append(c.memory, memory)
		for i, l := range b.Layers {
			c.places[l] = place{x, i * experts, strides[l]}
		}
		c.counted.Slots += b.Slots
		c.counted.Size += uint64(len(memory))
	}
	return c, nil
}

// divide makes banks of slots that together take at most size bytes.
func divide(records []*program.PlacedRecord, experts int, size uint64) ([]stream.Bank, error) {
	index := map[int64]int{}
	var groups []stream.Group
	for _, r := range records {
		slot := int64((r.GetStride() + pageBytes - 1) / pageBytes * pageBytes)
		i, ok := index[slot]
		if !ok {
			i = len(groups)
			index[slot] = i
			groups = append(groups, stream.Group{Experts: experts, Used: 1, RecordBytes: slot})
		}
		groups[i].Layers = append(groups[i].Layers, int(r.GetLayer()))
	}
	banks, err := stream.Divide(groups, math.MaxInt64, int64(min(size, math.MaxInt64)))
	var small *stream.BudgetError
	if errors.As(err, &small) {
		return nil, fmt.Errorf("ram: have %d bytes, want at least %d: give more, or none at all", small.Have, small.Want)
	}
	return banks, err
}

// ReadRecord implements store.Source.
func (c *Cache) ReadRecord(ctx context.Context, layer, expert int, dst []byte) error {
	at, ok := c.places[layer]
	if !ok || expert < 0 || expert >= at.bank.experts || len(dst) != at.stride {
		return c.Source.ReadRecord(ctx, layer, expert, dst) // which tells what is wrong
	}
	b, id := at.bank, at.first+expert
	data, there := c.take(b, id)
	switch {
	case data == nil: // every slot is in use, or another call fills this record's
		return c.Source.ReadRecord(ctx, layer, expert, dst)
	case there:
		copy(dst, data)
		c.hit(len(dst))
	default:
		if err := c.Source.ReadRecord(ctx, layer, expert, data[:len(dst)]); err != nil {
			c.drop(b, id)
			return err
		}
		copy(dst, data) // dst may be mapped memory, from which nothing is read
	}
	c.put(b, id)
	return nil
}

// take pins the slot of an id: filled (there), or to be filled by the caller. nil where none can be had.
func (c *Cache) take(b *bank, id int) (data []byte, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &b.entries[id]
	switch {
	case e.filling:
	case e.slot >= 0:
		if e.pins == 0 {
			b.policy.Remove(id)
			b.listed--
		}
		e.pins++
		return b.data(e.slot), true
	case len(b.free) > 0 || b.listed > 0:
		c.counted.Misses++
		e.slot, e.pins, e.filling = c.slot(b), 1, true
		return b.data(e.slot), false
	}
	c.counted.Misses++
	return nil, false
}

// hit counts a record that was there.
func (c *Cache) hit(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted.Hits++
	c.counted.Bytes += int64(bytes)
}

// slot takes a free slot, which it makes if need be.
func (c *Cache) slot(b *bank) int32 {
	if len(b.free) == 0 {
		victim := &b.entries[b.policy.Evict()]
		b.listed--
		b.free = append(b.free, victim.slot)
		victim.slot = -1
		c.counted.Evictions++
	}
	last := len(b.free) - 1
	slot := b.free[last]
	b.free = b.free[:last]
	return slot
}

// put ends the use of a slot, which is filled.
func (c *Cache) put(b *bank, id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &b.entries[id]
	e.filling = false
	if e.pins--; e.pins == 0 {
		b.policy.Push(id)
		b.listed++
	}
}

// drop gives a slot back that could not be filled.
func (c *Cache) drop(b *bank, id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &b.entries[id]
	b.free = append(b.free, e.slot)
	e.slot, e.pins, e.filling = -1, 0, false
}

// Counters are the cache's so far.
func (c *Cache) Counters() Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted
}

// Close frees the memory and closes the other source.
func (c *Cache) Close() error { return errors.Join(c.Source.Close(), c.release()) }

func (c *Cache) release() error {
	var errs []error
	for _, m := range c.memory {
		errs = append(errs, free(m))
	}
	c.places, c.memory = nil, nil
	return errors.Join(errs...)
}
