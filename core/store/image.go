package store

import (
	"fmt"
	"io"
	"os"
	"sort"
	"sync/atomic"

	"github.com/sluicehost/sluice/core/gguf"
)

// image stands in for a file of the GGUF: while it is parsed, its header with
// zeros behind it; afterwards the header and the dense tensors, each at its old place.
type image struct {
	header  []byte
	start   *io.SectionReader // the header as the store has it, once it is parsed
	size    int64
	base    int64 // of the file in the address space
	tensors []stored
	dense   *dense
}

// show gives an image what it shows after its parsing; tensors are those of all
// files, in the order of the address space.
func (x *image) show(start *io.SectionReader, base int64, tensors []stored, dense *dense) {
	x.start, x.base, x.tensors, x.dense = start, base, tensors, dense
}

// ReadAt implements io.ReaderAt for reads within the header or one tensor.
func (x *image) ReadAt(p []byte, off int64) (int, error) {
	if x.header != nil {
		return x.readHeader(p, off)
	}
	if off < x.start.Size() {
		return x.start.ReadAt(p, off)
	}
	at := off + x.base
	i := sort.Search(len(x.tensors), func(i int) bool { return x.tensors[i].Offset+x.tensors[i].Size > at })
	if i == len(x.tensors) || at < x.tensors[i].Offset || int64(len(p)) > x.tensors[i].Offset+x.tensors[i].Size-at {
		return 0, fmt.Errorf("the store does not have these bytes of the GGUF")
	}
	return x.dense.ReadAt(p, x.tensors[i].at+at-x.tensors[i].Offset)
}

// readHeader reads the header or what the parser takes with it of the data.
func (x *image) readHeader(p []byte, off int64) (int, error) {
	if off >= x.size {
		return 0, io.EOF
	}
	var end error
	if int64(len(p)) > x.size-off {
		p, end = p[:x.size-off], io.EOF
	}
	clear(p)
	if off < int64(len(x.header)) {
		copy(p, x.header[off:])
	}
	return len(p), end
}

// dense reads the file of dense tensors, and checks each block when it is first
// read.
type dense struct {
	store   *Store
	file    *os.File
	path    string
	scratch *buffers // for blocks of which only a part is wanted
	taken   atomic.Int64
}

// ReadAt implements io.ReaderAt for reads within the file.
func (d *dense) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := d.step(p[done:], off+int64(done))
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// step reads the start of p: whole blocks where off is the start of one, or else
// what p wants of the block at off.
func (d *dense) step(p []byte, off int64) (int, error) {
	block, within := int(off/blockBytes), int(off%blockBytes)
	if whole := len(p) / blockBytes * blockBytes; within == 0 && whole > 0 {
		return whole, d.blocks(p[:whole], block)
	}
	part := p[:min(len(p), blockBytes-within)]
	if d.store.seen[block].Load() {
		return len(part), d.take(part, off)
	}
	buf := d.scratch.get()
	defer d.scratch.put(buf)
	all := buf[:min(blockBytes, d.store.layout.dense-int64(block)*blockBytes)]
	if err := d.blocks(all, block); err != nil {
		return 0, err
	}
	return copy(part, all[within:]), nil
}

// blocks reads and checks blocks from one on; the last may be the file's, which is
// shorter.
func (d *dense) blocks(p []byte, block int) error {
	if err := d.take(p, int64(block)*blockBytes); err != nil {
		return err
	}
	for ; len(p) > 0; block++ {
		b := p[:min(blockBytes, len(p))]
		if err := d.store.check(block, checksum(b)); err != nil {
			return fmt.Errorf("%s: block %d (%s): %w", d.path, block, d.store.layout.blockTensors(block), err)
		}
		p = p[len(b):]
	}
	return nil
}

// take reads all of p at off.
func (d *dense) take(p []byte, off int64) error {
	n, err := d.file.ReadAt(p, off)
	d.taken.Add(int64(n))
	if n < len(p) {
		return gguf.ShortRead(d.path, off+int64(n), d.store.layout.dense, err)
	}
	return nil
}
