package program

import (
	"errors"
	"fmt"
	"math/bits"
)

// FoldWidth is the x extent into which the host folds a grid of one term that
// is too long for one dimension: workgroup i lies at x = i mod FoldWidth, y = i
// div FoldWidth, so a kernel finds i as wg.x + wg.y·65535 whether folded or not.
// Every WebGPU device allows as many workgroups along one dimension.
const FoldWidth = 65535

// errTooLarge says that a size does not fit into 64 bits.
var errTooLarge = errors.New("the size overflows 64 bits")

// Bytes is the size of one element.
func (e Elem) Bytes() uint64 {
	if e == Elem_F16 {
		return 2
	}
	return 4
}

// BufferBytes is the size of b in bytes, a multiple of 4, for a chunk of that
// many rows, outs output rows and a context of that many positions. (A RING's
// positions are window + chunk, or the context where that is less.) It fails
// where the size overflows.
func BufferBytes(b *Buffer, chunk, outs, context uint64) (uint64, error) {
	n, err := BufferElems(b, chunk, outs, context)
	if err != nil {
		return 0, err
	}
	high, size := bits.Mul64(n, b.GetElem().Bytes())
	if high != 0 || size > 1<<63 {
		return 0, fmt.Errorf("program: buffer %s: %w", clip(b.GetName()), errTooLarge)
	}
	return roundUp(size, 4), nil
}

// BufferElems is BufferBytes in elements.
func BufferElems(b *Buffer, chunk, outs, context uint64) (uint64, error) {
	positions := context
	var carry uint64
	if b.GetClass() == Class_RING {
		positions, carry = bits.Add64(uint64(b.GetWindow()), chunk, 0)
		if carry != 0 || positions > context { // no position comes around
			positions, carry = context, 0
		}
	}
	blocks := ceilDiv(positions, uint64(b.GetPosDiv()))
	perBlock, carryRows := mulAdd(b.GetPerRowPos(), chunk, b.GetPerPos())
	carry |= carryRows
	total := b.GetFixed()
	for _, part := range [][2]uint64{
		{b.GetPerRow(), chunk}, {b.GetPerOut(), outs}, {perBlock, blocks},
	} {
		high, n := bits.Mul64(part[0], part[1])
		var c uint64
		total, c = bits.Add64(total, n, 0)
		carry |= high | c
	}
	if carry != 0 {
		return 0, fmt.Errorf("program: buffer %s: %w", clip(b.GetName()), errTooLarge)
	}
	return total, nil
}

// mulAdd is a·b + c, and whether that overflows (not 0).
func mulAdd(a, b, c uint64) (sum, overflow uint64) {
	high, low := bits.Mul64(a, b)
	sum, carry := bits.Add64(low, c, 0)
	return sum, high | carry
}

// ceilDiv is n/d rounded up, where a d of 0 means 1.
func ceilDiv(n, d uint64) uint64 {
	if d <= 1 {
		return n
	}
	return n/d + min(n%d, 1)
}

// value is the step's value of a grid variable.
func (s StepUniform) value(v Var, window uint32) uint32 {
	switch v {
	case Var_T:
		return s.T
	case Var_O:
		return s.O
	case Var_G:
		return s.G
	case Var_S:
		return s.S
	case Var_SW:
		return min(s.S, window)
	}
	return 1
}

// Groups is the number of workgroups that t asks for in a step: ceil(mul·n/div).
func Groups(t *Term, s StepUniform) uint64 {
	n := uint64(s.value(t.GetN(), t.GetWindow()))
	return ceilDiv(max(1, uint64(t.GetMul()))*n, uint64(t.GetDiv()))
}

// Grid is the grid of a dispatch in a step, as dispatched: missing terms are
// 1, and x is folded to FoldWidth where it is over maxGroups (the device's
// limit along one dimension) and the only term: a kernel with terms for y or z
// reads those as its own, also where they happen to be 1. It fails where a
// dimension stays over the limit. A grid with a zero dispatches nothing.
func Grid(terms []*Term, s StepUniform, maxGroups uint32) ([3]uint32, error) {
	g, err := Extent(terms, s)
	if err != nil {
		return [3]uint32{}, err
	}
	if g[0] > uint64(maxGroups) && len(terms) == 1 {
		g[0], g[1] = FoldWidth, ceilDiv(g[0], FoldWidth)
	}
	for i, n := range g {
		if n > uint64(maxGroups) {
			return [3]uint32{}, fmt.Errorf("program: grid %c: have %d workgroups, want at most %d", "xyz"[i], n, maxGroups)
		}
	}
	return [3]uint32{uint32(g[0]), uint32(g[1]), uint32(g[2])}, nil
}

// Extent is the grid of a dispatch in a step before folding.
func Extent(terms []*Term, s StepUniform) ([3]uint64, error) {
	g := [3]uint64{1, 1, 1}
	if len(terms) > len(g) {
		return g, fmt.Errorf("program: have %d grid terms, want at most 3", len(terms))
	}
	for i, t := range terms {
		g[i] = Groups(t, s)
	}
	return g, nil
}

// Pick is the variant that serves n rows (of the chunk; for the head, of the
// output), nil where none does.
func (s *Section) Pick(n uint32) *Variant {
	for _, v := range s.GetVariants() {
		if n >= v.GetMin() && (v.GetMax() == 0 || n <= v.GetMax()) {
			return v
		}
	}
	return nil
}

// Tiled reports whether the variant works on tiles of (token, pick) pairs, so
// that the host may run it in waves over parts of a step's experts. A variant
// that is not tiled runs once, with every picked expert resident.
func (v *Variant) Tiled() bool {
	for _, d := range v.GetDispatches() {
		for _, b := range d.GetBindings() {
			if at, ok := b.GetAt().(*Binding_Table); ok && at.Table == Table_TILES {
				return true
			}
		}
	}
	return false
}

// MaxTiles is the most tiles that the pairs of a step of t tokens can need:
// each expert's pairs are cut into tiles of tileRows, and its last may be short.
func MaxTiles(t uint64, topK, experts, tileRows uint32) uint64 {
	pairs := t * uint64(topK)
	if tileRows == 0 {
		return 0
	}
	return min(pairs, pairs/uint64(tileRows)+uint64(experts))
}
