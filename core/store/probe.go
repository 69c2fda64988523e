package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/sdk/program"
)

// Probe reads from a GGUF what the records of its packed store would be: as many bytes in one
// piece, whatever they are, at as many places all over the file. It measures a disk.
type Probe struct {
	file    *gguf.File
	places  map[int]int // number of a layer's first record
	strides map[int]int
	step    int64 // bytes from one place to the next
	files   *files
	scratch *buffers
	taken   atomic.Int64
}

// NewProbe makes a probe of a file, whose Close it takes over, for placed records of so many
// experts each. Prepare comes before the first read.
func NewProbe(f *gguf.File, records []*program.PlacedRecord, experts int) *Probe {
	p := &Probe{file: f, places: map[int]int{}, strides: map[int]int{}}
	n, largest := 0, 0
	for _, r := range records {
		layer, stride := int(r.GetLayer()), int(r.GetStride())
		p.places[layer], p.strides[layer] = n, stride
		n, largest = n+experts, max(largest, stride)
	}
	p.step = (f.Size() - int64(largest)) / int64(max(n, 1)) &^ (align - 1)
	p.scratch = newBuffers(largest + slack)
	return p
}

// Prepare opens the files to read as r says; it may be called again.
func (p *Probe) Prepare(r Reading) error {
	f, err := openParts(r, p.file)
	if err != nil {
		return err
	}
	old := p.files
	p.files = f
	return old.close()
}

// ReadRecord reads as many bytes as a record has.
func (p *Probe) ReadRecord(ctx context.Context, layer, expert int, dst []byte) error {
	first, ok := p.places[layer]
	if !ok || len(dst) != p.strides[layer] {
		return fmt.Errorf("store: %s: layer %d: have no records of %d bytes of it", p.file.Parts[0].Name, layer, len(dst))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	off := max(0, int64(first+expert)*p.step)
	x := p.files.at(off)
	off = max(x.base, min(off, (x.base+x.size-int64(len(dst)))&^(align-1)))
	n := int(min(int64(len(dst)), x.base+x.size-off)) // less than a record where the whole file is smaller
	buf := dst
	if p.files.direct {
		buf = p.scratch.get()
		defer p.scratch.put(buf)
	}
	data, err := p.files.view(buf, n, off)
	p.taken.Add(int64(len(data)))
	if len(data) < n {
		return fmt.Errorf("store: layer %d expert %d: have %d of %d bytes: %w", layer, expert, len(data), n, err)
	}
	if p.files.direct {
		copy(dst, data)
	}
	return nil
}

// PageCache is what the system keeps in memory of the files. Prepare comes before it.
func (p *Probe) PageCache() PageCache { return PageCache{p.files} }

// Close closes the file.
func (p *Probe) Close() error { return errors.Join(p.files.close(), p.file.Close()) }
