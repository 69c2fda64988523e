// Package ram keeps expert records in host memory, packed as the GPU takes them: a
// [store.Source] in front of another, for what the GPU's slots don't hold and the disk
// need not be asked for again. It bounds its memory to the byte, which the system's page
// cache does not, and what it holds needs no packing.
//
// Records come in when they leave the GPU ([Cache.Keep]), so that GPU and memory hold different
// ones, and both together count. Of those kept the least recently kept go first; but before them
// those that a read has brought back to the GPU, whose memory is merely not yet needed.
//
// Start at [New].
package ram

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/dustin/go-humanize"

	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/core/stream"
	"github.com/sluicehost/sluice/sdk/program"
)

// pageBytes is the multiple of which a slot is, so that each begins with a page.
const pageBytes = 4096

// Cache is a source whose records stay in memory for a while after a read. All but the reading of
// records is the other source's.
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
	Hits, Misses    int64 // reads of records
	Kept, Evictions int64 // records that came, and that went unused
	Bytes           int64 // of records that came from memory
	Slots           int
	Size            uint64 // bytes of all slots
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
		return nil, fmt.Errorf("ram: have %s, want at least %s (%d bytes): give more, or none at all", humanize.BytesN(uint64(small.Have), 3), humanize.BytesN(uint64(small.Want), 3), small.Want)
	}
	return banks, err
}

// ReadRecord implements store.Source.
func (c *Cache) ReadRecord(ctx context.Context, layer, expert int, dst []byte) error {
	return store.ReadWhole(ctx, c, layer, expert, dst)
}

// Pieces implements store.Source: a record that is held is one.
func (c *Cache) Pieces(layer, expert int) int {
	b, id := c.find(layer, expert, c.places[layer].stride)
	if b != nil && c.holds(b, id) {
		return 1
	}
	return c.Source.Pieces(layer, expert)
}

// ReadPiece implements store.Source. Several pieces come from the other source, which has found right whatever is held.
func (c *Cache) ReadPiece(ctx context.Context, layer, expert, piece, of int, dst []byte) (sum uint32, err error) {
	b, id := c.find(layer, expert, len(dst))
	if b == nil {
		return c.Source.ReadPiece(ctx, layer, expert, piece, of, dst) // which tells what is wrong
	}
	if of > 1 {
		if piece == 0 {
			c.missed()
		}
		return c.Source.ReadPiece(ctx, layer, expert, piece, of, dst)
	}
	data := c.take(b, id, len(dst))
	if data == nil {
		return c.Source.ReadPiece(ctx, layer, expert, piece, of, dst)
	}
	copy(dst, data)
	c.mu.Lock()
	defer c.mu.Unlock()
	b.unpin(id)
	return 0, nil
}

// holds reports whether a record is held.
func (c *Cache) holds(b *bank, id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &b.entries[id]
	return e.slot >= 0 && !e.filling
}

// missed counts a read of a record that is not held.
func (c *Cache) missed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted.Misses++
}

// find is where a record of n bytes goes; nil where there is none such.
func (c *Cache) find(layer, expert, n int) (*bank, int) {
	at, ok := c.places[layer]
	if !ok || expert < 0 || expert >= at.bank.experts || n != at.stride {
		return nil, 0
	}
	return at.bank, at.first + expert
}

// take pins what is held of an id, which is on its way to the GPU; nil where that is nothing.
func (c *Cache) take(b *bank, id, n int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &b.entries[id]
	if e.slot < 0 || e.filling {
		c.counted.Misses++
		return nil
	}
	c.counted.Hits++
	c.counted.Bytes += int64(n)
	b.pin(id)
	e.spare = true
	return b.data(e.slot)
}

// Wants says that an expert's record leaves the GPU, and reports whether Keep would take it: it would not where it is held
// still.
func (c *Cache) Wants(layer, expert int) bool {
	at := c.places[layer]
	b, id := c.find(layer, expert, at.stride)
	if b == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &b.entries[id]
	if e.slot < 0 {
		return true
	}
	b.pin(id)
	e.spare = false
	b.unpin(id) // the newest of those kept
	return false
}

// Keep takes a copy of a record that leaves the GPU. What can't be kept, since all slots are in use, is dropped.
func (c *Cache) Keep(layer, expert int, data []byte) {
	b, id := c.find(layer, expert, len(data))
	if b == nil {
		panic(fmt.Sprintf("BUG: ram: layer %d expert %d: have %d bytes to keep of no record", layer, expert, len(data)))
	}
	slot := c.claim(b, id)
	if slot == nil {
		return
	}
	copy(slot, data)
	c.mu.Lock()
	defer c.mu.Unlock()
	b.entries[id].filling = false
	b.unpin(id)
}

// claim pins a slot for an absent id, to be filled; nil where there is none, or where the id is not absent.
func (c *Cache) claim(b *bank, id int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &b.entries[id]
	if e.slot >= 0 || !b.makeRoom(&c.counted.Evictions) {
		return nil
	}
	last := len(b.free) - 1
	e.slot, b.free = b.free[last], b.free[:last]
	e.pins, e.filling, e.spare = 1, true, false
	c.counted.Kept++
	return b.data(e.slot)
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
