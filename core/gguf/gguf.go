// Package gguf reads the header of GGUF model files, version 2 and 3, and
// gives a model of one or several files as one address space of bytes. It
// checks all that a header says against the file, so that whoever reads a
// tensor afterwards needs no check of its own. It interprets neither values
// nor tensors: which keys a model needs is for its plugin to say, what a
// tensor's bytes mean is sdk/ggml's to know.
//
// Start at [Open]. The format is described in ggml's docs/gguf.md; where that
// leaves a choice (the order of tensors, the split keys) the reader demands
// what llama.cpp demands.
package gguf

import (
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// File is an open GGUF model: metadata, tensor table and bytes. Its methods
// may be called from several goroutines at once, except Close.
type File struct {
	// Version is the format version of the first part, 2 or 3.
	Version uint32
	// Metadata is the first part's: the others repeat at most their split keys.
	Metadata *Metadata
	// Tensors are all parts' tensors, in the order of their data.
	Tensors []Tensor
	// Parts are the files, in order; one, unless the model is split.
	Parts []Part

	byName map[string]int
	size   int64
	closed bool
}

// Part is one file of a model.
type Part struct {
	// Name is the file's path as it was opened, or the name given to Read.
	Name string
	// Offset is where the file's first byte lies in the address space.
	Offset int64
	// Size is the file's size in bytes.
	Size int64
	// HeaderSize is the number of bytes before the padding and the tensor data:
	// fixed fields, metadata and tensor table.
	HeaderSize int64

	src io.ReaderAt
}

// Tensor is one entry of the tensor table.
type Tensor struct {
	Name string
	// Dims are the numbers of values along each axis in ggml's order: Dims[0] is
	// ne0, the length of a contiguous row. There are 1 to 4, none is 0; a tensor
	// stored without any is one value and has Dims [1].
	Dims []uint64
	Type ggml.Type
	// Offset is where the data starts in the file's address space.
	Offset int64
	// Size is the length of the data in bytes, without padding.
	Size int64
}

var _ io.ReaderAt = (*File)(nil)

// Read parses one GGUF file of the given size in bytes; name stands for it in
// errors. It reads the header only, in pieces of up to 128 KiB and 256 MiB in all
// at most, and keeps r for ReadAt without owning it. A part of a split model is read as a file of its
// own, with no look at its split keys: Open joins parts. Errors name the file
// and the key or tensor at fault.
func Read(r io.ReaderAt, size int64, name string) (*File, error) {
	h, err := readHeader(r, size)
	if err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", name, err)
	}
	f := &File{Version: h.version, Metadata: h.metadata, byName: make(map[string]int, len(h.tensors))}
	if err := f.add(Part{Name: name, Size: size, HeaderSize: h.size, src: r}, h.tensors); err != nil {
		return nil, err
	}
	return f, nil
}

// add appends a part and its tensors, whose offsets are relative to the part.
func (f *File) add(p Part, tensors []Tensor) error {
	p.Offset = f.size
	if f.size+p.Size < f.size {
		return fmt.Errorf("gguf: %s: the parts are larger than 2^63 bytes together: one of them is damaged", p.Name)
	}
	f.size += p.Size
	f.Parts = append(f.Parts, p)
	for _, t := range tensors {
		if i, dup := f.byName[t.Name]; dup {
			return fmt.Errorf("gguf: %s: tensor %s: have it in %s too, want each name once: the parts are not of one model",
				p.Name, t.Name, f.partAt(f.Tensors[i].Offset).Name)
		}
		f.byName[t.Name] = len(f.Tensors)
		t.Offset += p.Offset
		f.Tensors = append(f.Tensors, t)
	}
	return nil
}

// Tensor returns the table entry of that name, and whether there is one.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Size is the length of the address space in bytes: the sizes of all parts.
func (f *File) Size() int64 { return f.size }

// ReadAt reads len(p) bytes at off of the address space, which is the parts'
// bytes one after the other, headers included. It follows io.ReaderAt: fewer
// bytes come with an error, io.EOF at the end of the last part.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("gguf: %s: read at byte %d, want at least 0", f.Parts[0].Name, off)
	}
	done := 0
	for done < len(p) {
		if off >= f.size {
			return done, io.EOF
		}
		part := f.partAt(off)
		n := min(int64(len(p)-done), part.Offset+part.Size-off)
		got, err := part.src.ReadAt(p[done:done+int(n)], off-part.Offset)
		done += got
		off += int64(got)
		if int64(got) < n {
			return done, fmt.Errorf("gguf: %w", ShortRead(part.Name, off-part.Offset, part.Size, err))
		}
	}
	return done, nil
}

// ShortRead words a read that stopped short at byte off of a file, which had size bytes when it was
// opened. The end of the file becomes io.ErrUnexpectedEOF.
func ShortRead(name string, off, size int64, err error) error {
	return fmt.Errorf("%s: %w", name, shortRead(off, size, err))
}

// shortRead is ShortRead without the name.
func shortRead(off, size int64, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("have no byte %d, want the %d bytes that it had when it was opened: it was cut off since, get the whole file and start again: %w",
			off, size, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("read at byte %d of %d: %w", off, size, err)
}

// partAt is the part that holds the byte at off, which lies within the space.
func (f *File) partAt(off int64) *Part {
	i := sort.Search(len(f.Parts), func(i int) bool { return f.Parts[i].Offset+f.Parts[i].Size > off })
	return &f.Parts[i]
}

// Close closes the files that Open opened; the reader given to Read stays open.
// A second call does nothing.
func (f *File) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	var errs []error
	for i := range f.Parts {
		if c, ok := f.Parts[i].src.(*osFile); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
