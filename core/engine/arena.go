package engine

import (
	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// Dense weights lie in few large buffers, arenas, since a buffer below gpu.OwnMemory takes up to twice what it asks for; so does
// what sessions keep (share.go). Scratch has a buffer for each thing: the library tracks what a whole buffer is used for, so a
// dispatch that reads one part of a buffer and writes another is refused, and writes to one part wait for readers of another.
// Dense weights are only ever read.

const (
	// bandAlign is a multiple of every offset alignment that WebGPU lets a device ask for.
	bandAlign = 256
	// fullArena is where an arena takes no more bands: many times what rounding could cost, and small enough that a driver finds
	// room. An arena is larger by less than its last band.
	fullArena = 256 << 20
)

// arenas is where the bands of dense weights lie.
type arenas struct {
	sizes []uint64
	at    [][]span // by weight and band
}

// span is a run of bytes of an arena.
type span struct {
	arena        int
	offset, size uint64
}

// packArenas lays all bands one after the other, in order, in buffers of at most limit bytes. No arena is smaller than
// gpu.OwnMemory where all bands together are not, unless limit forbids it.
func packArenas(weights []*program.Placed, limit uint64) arenas {
	var a arenas
	for _, w := range weights {
		spans := make([]span, 0, len(w.Bands))
		for _, b := range w.Bands {
			spans = append(spans, a.add(b.Bytes, limit))
		}
		a.at = append(a.at, spans)
	}
	a.mergeLast(limit)
	return a
}

// add finds room for a band.
func (a *arenas) add(size, limit uint64) span {
	last := len(a.sizes) - 1
	if last < 0 || a.sizes[last] >= fullArena || alignUp(a.sizes[last], bandAlign)+size > limit {
		a.sizes = append(a.sizes, size)
		return span{last + 1, 0, size}
	}
	offset := alignUp(a.sizes[last], bandAlign)
	a.sizes[last] = offset + size
	return span{last, offset, size}
}

// mergeLast puts what is left for a small last arena into the one before it.
func (a *arenas) mergeLast(limit uint64) {
	last := len(a.sizes) - 1
	if last < 1 || a.sizes[last] >= gpu.OwnMemory {
		return
	}
	base := alignUp(a.sizes[last-1], bandAlign)
	if base+a.sizes[last] > limit {
		return
	}
	a.sizes[last-1] = base + a.sizes[last]
	a.sizes = a.sizes[:last]
	for _, spans := range a.at {
		for i := range spans {
			if spans[i].arena == last {
				spans[i].arena, spans[i].offset = last-1, base+spans[i].offset
			}
		}
	}
}
