package ggml

import (
	"fmt"
	"math/bits"
	"slices"
)

// A GPU form is how the host packs a weight of rows × cols values for WGSL:
// the same values as the GGUF's blocks, losslessly, cut into units and planes.
//
// A unit is 32 consecutive values of a row; unit u of row r has the index
// g = r·(cols/32) + u. A plane holds one field of every unit in index order
// (or of every superblock, eight units, at index g/8), and the planes follow
// each other, each from a multiple of PlaneAlign, so that a kernel binds one
// array<vec4<u32>> and finds any field from g alone. sdk/kernels/types holds
// the WGSL that reads each form; Unpack is the same in Go.

// UnitSize is the number of values in a unit.
const UnitSize = 32

// PlaneAlign is the alignment in bytes of a plane and of a whole form: one
// vec4<u32>.
const PlaneAlign = 16

// maxPlanes is the number of plane offsets a kernel is given: one vec4<u32>.
const maxPlanes = 4

// maxBytes bounds a form, so that no later addition can overflow.
const maxBytes = 1 << 62

// Span is a range of bytes within a form.
type Span struct{ Offset, Len uint64 }

// Packing is the GPU form of one type. Get one from Form.
type Packing struct {
	typ  Type
	kind *kind
}

// Form is the GPU form of t; false where t has none, which means that weights
// of t cannot run.
func Form(t Type) (Packing, bool) {
	k, ok := kinds[t]
	return Packing{t, k}, ok
}

// Type is the type that p packs.
func (p Packing) Type() Type { return p.typ }

// PlaneCount is the number of planes, 1 to 4.
func (p Packing) PlaneCount() int { return len(p.kind.planes) }

// Planes lays out a form of rows × cols values: the byte offset of each plane
// and the size of the whole, all multiples of PlaneAlign. It fails where cols
// is not a whole number of units (of superblocks, for types that have them) or
// where a size overflows.
func (p Packing) Planes(rows, cols uint64) (offsets []uint64, total uint64, err error) {
	spans, total, err := p.layout(rows, cols)
	if err != nil {
		return nil, 0, err
	}
	offsets = make([]uint64, len(p.kind.planes))
	for i := range offsets {
		offsets[i] = spans[i].Offset
	}
	return offsets, total, nil
}

// Spans says where rows [row0, row0+n) lie in each plane of a form of
// rows × cols. With it a large tensor is uploaded piece by piece: Pack n rows
// as a form of their own, then copy plane i of the piece to the span of i.
func (p Packing) Spans(rows, cols, row0, n uint64) ([]Span, error) {
	spans, err := p.spans(rows, cols, row0, n)
	if err != nil {
		return nil, err
	}
	return slices.Clone(spans[:len(p.kind.planes)]), nil
}

func (p Packing) spans(rows, cols, row0, n uint64) ([maxPlanes]Span, error) {
	if row0 > rows || n > rows-row0 {
		return [maxPlanes]Span{}, fmt.Errorf("ggml: %v: have rows %d and %d more, want at most %d in all", p.typ, row0, n, rows)
	}
	spans, _, err := p.layout(rows, cols)
	for i, plane := range p.kind.planes {
		row := cols / UnitSize / plane.units * plane.bytes
		spans[i] = Span{spans[i].Offset + row0*row, n * row}
	}
	return spans, err
}

// layout is each plane's span and the size of the whole form.
func (p Packing) layout(rows, cols uint64) (spans [maxPlanes]Span, total uint64, err error) {
	if err := p.checkCols(cols); err != nil {
		return spans, 0, err
	}
	over, units := bits.Mul64(rows, cols/UnitSize)
	for i, plane := range p.kind.planes {
		high, size := bits.Mul64(units/plane.units, plane.bytes)
		if over|high != 0 || size > maxBytes/8 {
			return spans, 0, fmt.Errorf("ggml: %v: have %d x %d values, want a form under 2^62 bytes", p.typ, rows, cols)
		}
		spans[i] = Span{total, size}
		total += alignUp(size)
	}
	return spans, total, nil
}

// checkCols refuses rows that are not whole units and whole blocks.
func (p Packing) checkCols(cols uint64) error {
	want := max(UnitSize, p.typ.BlockSize())
	if cols%want != 0 {
		return fmt.Errorf("ggml: %v: have rows of %d values, want a multiple of %d: "+
			"only such a tensor can be packed for the GPU", p.typ, cols, want)
	}
	return nil
}

func alignUp(n uint64) uint64 { return (n + PlaneAlign - 1) &^ (PlaneAlign - 1) }
