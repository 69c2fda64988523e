package ggml

import (
	"fmt"
	"sync"
)

// Dequantize writes the values of src, a run of whole blocks of type t, to
// dst, whose length must be exactly their number.
//
// Every value is exact: the products that ggml forms in float32 (scale times
// sub-scale times quant) fit its 24 bits, and float64 also holds the minimum's
// subtraction without rounding, so float32(dst[i]) is bit for bit what ggml's
// own dequantizer returns. It fails for a type without a reference (see Form)
// and for sizes that do not match.
func Dequantize(t Type, dst []float64, src []byte) error {
	k, err := blocksOf(t, uint64(len(dst)), uint64(len(src)))
	if err != nil {
		return err
	}
	values, bytes := t.BlockSize(), t.BlockBytes()
	for len(src) > 0 {
		k.reference(dst[:values], src[:bytes])
		dst, src = dst[values:], src[bytes:]
	}
	return nil
}

// DequantizeF32 is Dequantize rounded to float32, which is ggml's own result:
// what the host reads an embedding row with.
func DequantizeF32(t Type, dst []float32, src []byte) error {
	k, err := blocksOf(t, uint64(len(dst)), uint64(len(src)))
	if err != nil {
		return err
	}
	values, bytes := t.BlockSize(), t.BlockBytes()
	buf := blocks.Get().(*[256]float64)
	defer blocks.Put(buf)
	block := buf[:values]
	for len(src) > 0 {
		k.reference(block, src[:bytes])
		for i, v := range block {
			dst[i] = float32(v)
		}
		dst, src = dst[values:], src[bytes:]
	}
	return nil
}

// blocks lends out the memory of one block.
var blocks = sync.Pool{New: func() any { return new([256]float64) }}

// blocksOf finds t's table entry and checks that bytes hold exactly values.
func blocksOf(t Type, values, bytes uint64) (*kind, error) {
	k, ok := kinds[t]
	if !ok {
		return nil, fmt.Errorf("ggml: %v: have no dequantizer for it: requantize the tensor to another type", t)
	}
	want, err := t.RowBytes(values)
	if err != nil {
		return nil, err
	}
	if bytes != want {
		return nil, fmt.Errorf("ggml: %v: have %d bytes for %d values, want %d", t, bytes, values, want)
	}
	return k, nil
}
