package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
)

const (
	// window is the most that one read of the header asks for.
	window = 128 << 10
	// maxHeader bounds the header, and so the memory that a hostile file (a
	// sparse one may claim terabytes) makes us use. The largest vocabularies
	// known, of 260k tokens with their merges, take about 16 MiB.
	maxHeader = 256 << 20
)

// damaged is what to do about most bad headers.
const damaged = "the file is cut off or damaged, download it again"

// reader walks over the header and refuses to go past the end of the file.
type reader struct {
	src  io.ReaderAt
	size int64  // of the file
	off  int64  // of the next byte that was not yet taken
	buf  []byte // what was read from off on
	mem  []byte // the memory behind buf
}

func newReader(src io.ReaderAt, size int64) *reader {
	return &reader{src: src, size: size, mem: make([]byte, min(size, window))}
}

// left is how many bytes may still be taken.
func (r *reader) left() uint64 {
	return uint64(min(r.size, maxHeader) - r.off)
}

// need fails where fewer than n things of at least each bytes are left. It comes
// before every allocation.
func (r *reader) need(n, each uint64) error {
	if n <= r.left()/each {
		return nil
	}
	rest := uint64(r.size - r.off)
	if n <= rest/each {
		return fmt.Errorf("have a header that goes on for %d bytes at byte %d, want at most %d MiB in all: no model needs that much, the file is damaged",
			n*each, r.off, maxHeader>>20)
	}
	want := fmt.Sprint(n)
	if each > 1 {
		want = fmt.Sprintf("%d times at least %d", n, each)
	}
	return fmt.Errorf("have %d bytes left at byte %d, want %s: %s", rest, r.off, want, damaged)
}

// take returns the next n bytes, at most a window; they are valid until the
// next call.
func (r *reader) take(n int) ([]byte, error) {
	if n > window {
		panic("BUG: gguf: take of more than a window")
	}
	if err := r.need(uint64(n), 1); err != nil {
		return nil, err
	}
	if len(r.buf) < n {
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
	b := r.buf[:n]
	r.buf = r.buf[n:]
	r.off += int64(n)
	return b, nil
}

// fill reads a whole window from off on, or what is left of the header's bytes.
func (r *reader) fill() error {
	want := min(int64(len(r.mem)), int64(r.left()))
	kept := copy(r.mem, r.buf)
	n, err := r.src.ReadAt(r.mem[kept:want], r.off+int64(kept))
	if int64(kept+n) < want {
		return shortRead(r.off+int64(kept+n), r.size, err)
	}
	r.buf = r.mem[:want]
	return nil
}

func (r *reader) u32() (uint32, error) {
	b, err := r.take(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (r *reader) u64() (uint64, error) {
	b, err := r.take(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// str reads a string: its length as u64, then its bytes.
func (r *reader) str() (string, error) {
	n, err := r.u64()
	if err != nil {
		return "", err
	}
	if err := r.need(n, 1); err != nil {
		return "", err
	}
	var s strings.Builder
	s.Grow(int(n))
	for n > 0 {
		part, err := r.take(int(min(n, window)))
		if err != nil {
			return "", err
		}
		s.Write(part)
		n -= uint64(len(part))
	}
	return s.String(), nil
}

// strs reads n strings. Those that lie whole in one window share an allocation:
// 260k tokens as strings of their own would cost more than the rest of the
// header. The caller has checked that n lengths are there.
func (r *reader) strs(n uint64) ([]string, error) {
	out := make([]string, 0, n)
	for uint64(len(out)) < n {
		count, total := wholeStrings(r.buf, n-uint64(len(out)))
		if count == 0 { // at a window's end
			s, err := r.str()
			if err != nil {
				return nil, fmt.Errorf("string %d of %d: %w", len(out), n, err)
			}
			out = append(out, s)
			continue
		}
		var shared strings.Builder
		shared.Grow(total) // never grows again, so that its strings stay in one place
		for range count {
			size := int(binary.LittleEndian.Uint64(r.buf))
			start := shared.Len()
			shared.Write(r.buf[8 : 8+size])
			out = append(out, shared.String()[start:])
			r.buf = r.buf[8+size:]
			r.off += int64(8 + size)
		}
	}
	return out, nil
}

// wholeStrings is how many strings, at most n, lie whole at the start of b, and
// the sum of their lengths.
func wholeStrings(b []byte, n uint64) (count, total int) {
	for uint64(count) < n && len(b) >= 8 {
		size := binary.LittleEndian.Uint64(b)
		if size > uint64(len(b)-8) {
			break
		}
		b = b[8+size:]
		total += int(size)
		count++
	}
	return count, total
}

// number reads one value of size bytes.
func number[T any](r *reader, size int, get func([]byte) T) (T, error) {
	b, err := r.take(size)
	if err != nil {
		var zero T
		return zero, err
	}
	return get(b), nil
}

// numbers reads n values of size bytes each; the caller has checked that they
// are there.
func numbers[T any](r *reader, n uint64, size int, get func([]byte) T) ([]T, error) {
	out := make([]T, n)
	for rest := out; len(rest) > 0; {
		k := min(len(rest), window/size)
		b, err := r.take(k * size)
		if err != nil {
			return nil, err
		}
		for i := range k {
			rest[i] = get(b[i*size : i*size+size])
		}
		rest = rest[k:]
	}
	return out, nil
}

func getU8(b []byte) uint8    { return b[0] }
func getI8(b []byte) int8     { return int8(b[0]) }
func getU16(b []byte) uint16  { return binary.LittleEndian.Uint16(b) }
func getI16(b []byte) int16   { return int16(binary.LittleEndian.Uint16(b)) }
func getU32(b []byte) uint32  { return binary.LittleEndian.Uint32(b) }
func getI32(b []byte) int32   { return int32(binary.LittleEndian.Uint32(b)) }
func getU64(b []byte) uint64  { return binary.LittleEndian.Uint64(b) }
func getI64(b []byte) int64   { return int64(binary.LittleEndian.Uint64(b)) }
func getF32(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
func getF64(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
