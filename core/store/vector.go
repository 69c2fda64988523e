package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// vectorOf finds a VECTOR's tensors and checks its band, whose bytes it returns.
func vectorOf(f *gguf.File, w *program.Weight, p *program.Placed) ([]gguf.Tensor, uint64, error) {
	var n uint64
	var out []gguf.Tensor
	for _, name := range w.GetTensors() {
		t, ok := f.Tensor(name)
		if !ok {
			return nil, 0, fmt.Errorf("tensor %.80q is not in the file", name)
		}
		if !copied(t.Type) {
			return nil, 0, fmt.Errorf("tensor %s: have a VECTOR of %v, want F32, F16 or BF16", name, t.Type)
		}
		n += uint64(t.Size) / t.Type.BlockBytes()
		out = append(out, t)
	}
	want := roundUp(4*n, ggml.PlaneAlign)
	if b := p.GetBands(); n == 0 || len(b) != 1 || b[0].GetBytes() != want || p.GetRows() != 1 || p.GetCols() != n {
		return nil, 0, fmt.Errorf("have a place for %d x %d values, want one band of 1 x %d", p.GetRows(), p.GetCols(), n)
	}
	return out, want, nil
}

// readVector gives the values of a VECTOR's tensors, one after the other, as f32.
func (s *GGUF) readVector(ctx context.Context, w *weight, emit func(off uint64, data []byte) error) error {
	raw, packed := s.raw.get(), s.packed.get()
	defer s.raw.put(raw)
	defer s.packed.put(packed)
	out := packed[:bandPiece]
	have, off := 0, uint64(0) // bytes of out, and of the band before it
	for _, t := range w.vector {
		for done := int64(0); done < t.Size; {
			if err := ctx.Err(); err != nil {
				return err
			}
			size := int64(t.Type.BlockBytes())
			part := raw[:min(t.Size-done, int64(len(out)-have)/4*size)]
			if err := s.readAt(part, t.Offset+done, t.Name); err != nil {
				return err
			}
			have += widen(out[have:], part, t.Type)
			done += int64(len(part))
			if have == len(out) {
				if err := emit(off, out); err != nil {
					return err
				}
				off, have = off+uint64(have), 0
			}
		}
	}
	if have == 0 {
		return nil
	}
	rest := out[:w.bytes-off]
	clear(rest[have:])
	return emit(off, rest)
}

// widen writes values of F32, F16 or BF16 as little-endian f32 and returns how
// many bytes it wrote.
func widen(dst, src []byte, t ggml.Type) int {
	if t == ggml.F32 {
		return copy(dst, src)
	}
	var values [256]float32
	size, written := int(t.BlockBytes()), 0
	for len(src) > 0 {
		n := min(len(src)/size, len(values))
		if err := ggml.DequantizeF32(t, values[:n], src[:n*size]); err != nil {
			panic("BUG: store: " + err.Error())
		}
		for _, v := range values[:n] {
			binary.LittleEndian.PutUint32(dst[written:], math.Float32bits(v))
			written += 4
		}
		src = src[n*size:]
	}
	return written
}

// roundUp is n as a multiple of align, a power of two; n is far from overflow.
func roundUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }
