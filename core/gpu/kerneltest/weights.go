package kerneltest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// Matrix is a weight in its GPU form, as a test binds it.
type Matrix struct {
	Form   []byte
	Planes [4]uint32 // starts of the planes in Form, in units of 16 bytes
}

// RandomMatrix is rows × cols random values of type t. Quants and sub-scales
// are any bits; scales are such that values are about 1. cols must be whole
// blocks.
func RandomMatrix(r *rand.Rand, t ggml.Type, rows, cols int) Matrix {
	packing, ok := ggml.Form(t)
	if !ok {
		panic(fmt.Sprintf("BUG: %v has no GPU form", t))
	}
	offsets, total, err := packing.Planes(uint64(rows), uint64(cols))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	m := Matrix{Form: make([]byte, total)}
	if err := packing.Pack(m.Form, randomBlocks(r, t, rows*cols/int(t.BlockSize())), uint64(rows), uint64(cols)); err != nil {
		panic("BUG: " + err.Error())
	}
	for i, o := range offsets {
		m.Planes[i] = uint32(o / ggml.PlaneAlign)
	}
	return m
}

// half is where the f16 scales of a block lie, and about how large they should be.
type half struct {
	at   int
	size float64
}

// halves lists the f16 scales of each block type (ggml-common.h); all other bytes are free.
var halves = map[ggml.Type][]half{
	ggml.Q4_0: {{0, 0.2}}, ggml.Q4_1: {{0, 0.2}, {2, 1.5}}, ggml.Q5_0: {{0, 0.1}}, ggml.Q5_1: {{0, 0.1}, {2, 1.5}},
	ggml.Q8_0: {{0, 0.014}}, ggml.IQ4_NL: {{0, 0.014}},
	ggml.Q2_K: {{80, 0.07}, {82, 0.1}}, ggml.Q3_K: {{108, 0.025}}, ggml.Q4_K: {{0, 0.004}, {2, 0.03}},
	ggml.Q5_K: {{0, 0.002}, {2, 0.03}}, ggml.Q6_K: {{208, 0.0007}}, ggml.IQ4_XS: {{0, 0.0007}},
}

// randomBlocks is n random blocks of type t.
func randomBlocks(r *rand.Rand, t ggml.Type, n int) []byte {
	size := int(t.BlockBytes())
	b := make([]byte, n*size)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for i := range n {
		block := b[i*size:][:size]
		switch t {
		case ggml.F32:
			binary.LittleEndian.PutUint32(block, math.Float32bits(float32(r.NormFloat64())))
		case ggml.BF16:
			binary.LittleEndian.PutUint16(block, uint16(math.Float32bits(float32(r.NormFloat64()))>>16))
		case ggml.F16:
			binary.LittleEndian.PutUint16(block, f16Bits(ggml.RoundF16(r.NormFloat64())))
		case ggml.MXFP4:
			block[0] = byte(124 + r.IntN(4)) // e8m0: 2^-3 to 1
		default:
			for _, h := range halves[t] {
				v := ggml.RoundF16(h.size * (0.5 + r.Float64()) * float64(1-2*r.IntN(2)))
				binary.LittleEndian.PutUint16(block[h.at:], f16Bits(v))
			}
		}
	}
	return b
}

// Types is every ggml type that has a GPU form.
func Types() []ggml.Type {
	var types []ggml.Type
	for t := ggml.Type(0); t < 64; t++ {
		if _, ok := ggml.Form(t); ok {
			types = append(types, t)
		}
	}
	return types
}

// Part is one matrix of an expert's record.
type Part struct {
	Type       ggml.Type
	Rows, Cols int
}

// Bank is a bank of expert slots: every resident expert's record, in a random
// slot, and poison in the slots between.
type Bank struct {
	Form      []byte
	Stride    uint32      // of a slot, in units of 16 bytes
	Planes    [][4]uint32 // of each part, within a record
	Residency []uint32    // the slot of each expert
}

// RandomBank fills a bank with experts records of random values; one slot in
// four stays empty.
func RandomBank(r *rand.Rand, experts int, parts ...Part) Bank {
	b := Bank{Planes: make([][4]uint32, len(parts)), Residency: make([]uint32, experts)}
	slots := experts + (experts+3)/4
	perm := r.Perm(slots)
	for e := range experts {
		var record []byte
		for i, p := range parts {
			m := RandomMatrix(r, p.Type, p.Rows, p.Cols)
			for j, at := range m.Planes {
				b.Planes[i][j] = at + uint32(len(record)/ggml.PlaneAlign)
			}
			record = append(record, m.Form...)
		}
		stride := (len(record) + 255) &^ 255
		if e == 0 {
			b.Stride = uint32(stride / ggml.PlaneAlign)
			b.Form = make([]byte, slots*stride)
			for i := 0; i < len(b.Form); i += 2 {
				binary.LittleEndian.PutUint16(b.Form[i:], readPoisonF16)
			}
		}
		copy(b.Form[perm[e]*stride:], record)
		b.Residency[e] = uint32(perm[e])
	}
	return b
}
