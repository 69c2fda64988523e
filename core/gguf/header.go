package gguf

import (
	"fmt"
	"io"
	"math/bits"

	"github.com/sluicehost/sluice/sdk/ggml"
)

const (
	magic = "GGUF"
	// fixedBytes are the magic, the version and the two counts.
	fixedBytes = 4 + 4 + 8 + 8
	// leastPair and leastTensor are the fewest bytes of a key/value pair (an
	// empty key, a one-byte value) and of a tensor's entry (an empty name, no
	// dimension); they bound the counts by the size of the file.
	leastPair   = 8 + 4 + 1
	leastTensor = 8 + 4 + 4 + 8
	// maxName is the longest tensor name that the format allows, in bytes.
	maxName = 64
	// maxDims is ggml's GGML_MAX_DIMS.
	maxDims = 4
)

// header is what one file says of itself. Tensor offsets are from its start.
type header struct {
	version  uint32
	metadata *Metadata
	tensors  []Tensor
	size     int64 // up to the end of the tensor table, in bytes
}

// readHeader reads and checks all before the tensor data.
func readHeader(src io.ReaderAt, size int64) (*header, error) {
	if size < fixedBytes {
		return nil, fmt.Errorf("have %d bytes, want a GGUF file, which has at least %d: %s", max(size, 0), fixedBytes, damaged)
	}
	r := newReader(src, size)
	version, err := readVersion(r)
	if err != nil {
		return nil, err
	}
	nTensors, err := readCount(r, "tensors", leastTensor)
	if err != nil {
		return nil, err
	}
	nPairs, err := readCount(r, "metadata keys", leastPair)
	if err != nil {
		return nil, err
	}
	m, err := readMetadata(r, nPairs)
	if err != nil {
		return nil, err
	}
	align, err := m.alignment()
	if err != nil {
		return nil, err
	}
	tensors, err := readTensors(r, nTensors)
	if err != nil {
		return nil, err
	}
	if err := place(tensors, uint64(r.off), align, uint64(size)); err != nil {
		return nil, err
	}
	return &header{version: version, metadata: m, tensors: tensors, size: r.off}, nil
}

func readVersion(r *reader) (uint32, error) {
	b, err := r.take(len(magic))
	if err != nil {
		return 0, err
	}
	if string(b) != magic {
		return 0, fmt.Errorf("have a file that starts with %q, want %q: this is not a GGUF model", b, magic)
	}
	v, err := r.u32()
	if err != nil {
		return 0, err
	}
	switch {
	case v == 2 || v == 3:
		return v, nil
	case v == 1:
		return 0, fmt.Errorf("have GGUF version 1, want 2 or 3: convert the model again with a current llama.cpp")
	case v != 0 && v&0xffff == 0: // a small number, read from the wrong end
		return 0, fmt.Errorf("have a big-endian GGUF file (version %d), want a little-endian one: convert it with gguf-py's gguf_convert_endian",
			bits.ReverseBytes32(v))
	}
	return 0, fmt.Errorf("have GGUF version %d, want 2 or 3: the file is damaged, or needs a newer version of this program", v)
}

// readCount reads how many things follow, each of at least so many bytes.
func readCount(r *reader, what string, least uint64) (uint64, error) {
	n, err := r.u64()
	if err != nil {
		return 0, err
	}
	if err := r.need(n, least); err != nil {
		return 0, fmt.Errorf("count of %s: %w", what, err)
	}
	return n, nil
}

// readTensors reads n entries; their Offset is still relative to the data.
func readTensors(r *reader, n uint64) ([]Tensor, error) {
	var tensors []Tensor
	seen := make(map[string]bool)
	for i := range n {
		name, err := r.str()
		if err != nil {
			return nil, fmt.Errorf("tensor %d of %d: %w", i, n, err)
		}
		if err := checkName(name, maxName); err != nil {
			return nil, fmt.Errorf("tensor %d of %d: %w", i, n, err)
		}
		if seen[name] {
			return nil, fmt.Errorf("tensor %s: have it twice, want each name once: the file is damaged", name)
		}
		seen[name] = true
		t, err := readTensor(r)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", name, err)
		}
		t.Name = name
		tensors = append(tensors, t)
	}
	return tensors, nil
}

// readTensor reads an entry after its name and computes its size.
func readTensor(r *reader) (t Tensor, err error) {
	nDims, err := r.u32()
	if err != nil {
		return t, err
	}
	if nDims > maxDims {
		return t, fmt.Errorf("have %d dimensions, want at most %d: the file is damaged, or needs a newer version of this program", nDims, maxDims)
	}
	t.Dims = make([]uint64, max(nDims, 1))
	t.Dims[0] = 1
	for i := range nDims {
		if t.Dims[i], err = r.u64(); err != nil {
			return t, err
		}
	}
	id, err := r.u32()
	if err != nil {
		return t, err
	}
	t.Type = ggml.Type(id)
	offset, err := r.u64()
	if err != nil {
		return t, err
	}
	size, err := tensorBytes(t.Type, t.Dims)
	if err != nil {
		return t, err
	}
	// Offsets past 2^63 turn negative and are refused with the rest by place.
	t.Offset, t.Size = int64(offset), int64(size)
	return t, nil
}

// tensorBytes is the size of a tensor's data: rows of Dims[0] values each.
func tensorBytes(typ ggml.Type, dims []uint64) (uint64, error) {
	if !typ.Known() {
		return 0, fmt.Errorf("have ggml type id %d, want one that this version knows: a newer version of this program may", uint32(typ))
	}
	values := uint64(1)
	for _, d := range dims {
		hi, lo := bits.Mul64(values, d)
		if d == 0 || hi != 0 || lo >= 1<<63 {
			return 0, fmt.Errorf("have shape %v, want dimensions of at least 1 and fewer than 2^63 values: the file is damaged", dims)
		}
		values = lo
	}
	row, err := typ.RowBytes(dims[0])
	if err != nil {
		return 0, fmt.Errorf("have shape %v of type %v, want whole blocks of %d: the file is damaged: %w", dims, typ, typ.BlockSize(), err)
	}
	hi, size := bits.Mul64(row, values/dims[0])
	if hi != 0 || size >= 1<<63 {
		return 0, fmt.Errorf("have shape %v of type %v, want fewer than 2^63 bytes: the file is damaged", dims, typ)
	}
	return size, nil
}

// place checks the tensors' offsets and makes them count from the start of the
// file. As in llama.cpp the data must follow in the order of the table, each at
// the next multiple of the alignment, so that none overlap. Only the last may
// lack its padding. All sums stay below 2^64: the file and each offset that
// passed are below 2^63, the alignment below 2^32.
func place(tensors []Tensor, headerBytes, align, fileSize uint64) error {
	pad := func(n uint64) uint64 { return (n + align - 1) / align * align }
	start := pad(headerBytes)
	next := start
	for i := range tensors {
		t := &tensors[i]
		if uint64(t.Offset) != next-start {
			return fmt.Errorf("tensor %s: have offset %d, want %d, after the tensor before it in steps of %d: the file is damaged",
				t.Name, uint64(t.Offset), next-start, align)
		}
		if next > fileSize || uint64(t.Size) > fileSize-next {
			return fmt.Errorf("tensor %s: have %d bytes in the file, want %d at byte %d: %s", t.Name, fileSize, t.Size, next, damaged)
		}
		t.Offset = int64(next)
		next = pad(next + uint64(t.Size))
	}
	return nil
}
