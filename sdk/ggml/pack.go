package ggml

import "fmt"

// planes are the parts of a form's planes that one call reads or writes.
type planes [maxPlanes][]byte

// Pack writes the GPU form of src, rows × cols values in ggml blocks, to dst,
// whose length must be the total that Planes gives. Padding becomes zero, so
// equal weights give equal bytes. dst and src must not overlap.
func (p Packing) Pack(dst, src []byte, rows, cols uint64) error {
	return p.PackRows(dst, src, rows, cols, 0, rows)
}

// PackRows writes n rows from src as rows [row0, row0+n) of a form of
// rows × cols in dst, whose length must be that of the whole form: so tensors
// stacked by rows are packed one after the other. Calls for other rows may run
// at the same time. The call that ends with the last row also zeroes the
// padding.
func (p Packing) PackRows(dst, src []byte, rows, cols, row0, n uint64) error {
	whole, err := p.whole(uint64(len(dst)), rows, cols)
	if err != nil {
		return err
	}
	spans, err := p.spans(rows, cols, row0, n)
	if err != nil {
		return err
	}
	// rows and n are bounded by the length of dst now: nothing overflows below.
	want := n * cols / p.typ.BlockSize() * p.typ.BlockBytes()
	if uint64(len(src)) != want {
		return fmt.Errorf("ggml: %v: have %d bytes for %d rows of %d values, want %d", p.typ, len(src), n, cols, want)
	}
	var out planes
	for i := range p.kind.planes {
		out[i] = dst[spans[i].Offset : spans[i].Offset+spans[i].Len]
	}
	p.kind.pack(out, src)
	if row0+n == rows {
		for i := range p.kind.planes {
			end := whole[i].Offset + whole[i].Len
			clear(dst[end:alignUp(end)])
		}
	}
	return nil
}

// Unpack writes the values of a form of rows × cols to dst, row after row. It
// is the inverse that tests and references use: slow, and exact as Dequantize.
func (p Packing) Unpack(dst []float64, src []byte, rows, cols uint64) error {
	whole, err := p.whole(uint64(len(src)), rows, cols)
	if err != nil {
		return err
	}
	if uint64(len(dst)) != rows*cols {
		return fmt.Errorf("ggml: %v: have room for %d values, want %d x %d", p.typ, len(dst), rows, cols)
	}
	var in planes
	for i := range p.kind.planes {
		in[i] = src[whole[i].Offset : whole[i].Offset+whole[i].Len]
	}
	for g := 0; len(dst) > 0; g++ {
		p.kind.unit(dst[:UnitSize], &in, g)
		dst = dst[UnitSize:]
	}
	return nil
}

// whole is the layout of a form that must fill have bytes.
func (p Packing) whole(have, rows, cols uint64) ([maxPlanes]Span, error) {
	spans, total, err := p.layout(rows, cols)
	if err == nil && have != total {
		err = fmt.Errorf("ggml: %v: have %d bytes for the form of %d x %d values, want %d", p.typ, have, rows, cols, total)
	}
	return spans, err
}
