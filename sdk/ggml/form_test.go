package ggml

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// fresh is a new random source; its seed is printed when the test fails.
func fresh(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func randomBytes(r *rand.Rand, n uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// same compares bit for bit, all NaNs being one.
func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

// sorted is every type with a form, in upstream's order.
func sorted() []Type {
	var types []Type
	for t := range kinds {
		types = append(types, t)
	}
	slices.Sort(types)
	return types
}

// TestPackIsLossless packs random blocks (any bit pattern is a valid block) and
// reads them back.
func TestPackIsLossless(t *testing.T) {
	r := fresh(t)
	for _, typ := range sorted() {
		for _, rows := range []uint64{1, 3, 17} {
			cols := max(32, typ.BlockSize()) * (1 + 2*r.Uint64N(2))
			t.Run(fmt.Sprintf("%v/%dx%d", typ, rows, cols), func(t *testing.T) {
				rowBytes, err := typ.RowBytes(cols)
				if err != nil {
					t.Fatal(err)
				}
				checkRoundTrip(t, typ, randomBytes(r, rows*rowBytes), rows, cols)
			})
		}
	}
}

func checkRoundTrip(t *testing.T, typ Type, src []byte, rows, cols uint64) {
	t.Helper()
	p, _ := Form(typ)
	_, total, err := p.Planes(rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	dst := bytes.Repeat([]byte{0xa5}, int(total))
	if err := p.Pack(dst, src, rows, cols); err != nil {
		t.Fatal(err)
	}
	want, have := make([]float64, rows*cols), make([]float64, rows*cols)
	if err := Dequantize(typ, want, src); err != nil {
		t.Fatal(err)
	}
	if err := p.Unpack(have, dst, rows, cols); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !same(have[i], want[i]) {
			t.Fatalf("%v %dx%d, value %d: have %v, want %v", typ, rows, cols, i, have[i], want[i])
		}
	}
}

// TestPackRows packs a stack piece by piece in a random order and expects the
// bytes of packing it at once, padding included, and no byte beyond the piece.
func TestPackRows(t *testing.T) {
	r := fresh(t)
	for _, typ := range sorted() {
		t.Run(typ.String(), func(t *testing.T) {
			const rows = 13
			cols := 3 * max(32, typ.BlockSize())
			p, _ := Form(typ)
			rowBytes, _ := typ.RowBytes(cols)
			_, total, _ := p.Planes(rows, cols)
			src := randomBytes(r, rows*rowBytes)
			want, have := make([]byte, total), bytes.Repeat([]byte{0xa5}, int(total))
			if err := p.Pack(want, src, rows, cols); err != nil {
				t.Fatal(err)
			}
			pieces := []uint64{0, 1, 6, 11, rows}
			for _, i := range r.Perm(4) {
				row0, n := pieces[i], pieces[i+1]-pieces[i]
				part := src[row0*rowBytes : (row0+n)*rowBytes]
				before := slices.Clone(have)
				if err := p.PackRows(have, part, rows, cols, row0, n); err != nil {
					t.Fatal(err)
				}
				checkUntouched(t, p, before, have, rows, cols, row0, n)
				checkPiece(t, p, have, part, rows, cols, row0, n)
			}
			if !bytes.Equal(have, want) {
				t.Error("the pieces differ from the whole")
			}
		})
	}
}

// checkUntouched: outside the spans of the rows nothing changes but padding.
func checkUntouched(t *testing.T, p Packing, before, after []byte, rows, cols, row0, n uint64) {
	t.Helper()
	spans, err := p.Spans(rows, cols, row0, n)
	if err != nil {
		t.Fatal(err)
	}
	for i := range after {
		inside := slices.ContainsFunc(spans, func(s Span) bool {
			return uint64(i) >= s.Offset && uint64(i) < s.Offset+s.Len
		})
		if !inside && before[i] != after[i] && !(row0+n == rows && after[i] == 0) {
			t.Fatalf("rows %d+%d: byte %d changed from %02x to %02x", row0, n, i, before[i], after[i])
		}
	}
}

// checkPiece: a piece packed as a form of its own is what lies at the spans.
func checkPiece(t *testing.T, p Packing, whole, src []byte, rows, cols, row0, n uint64) {
	t.Helper()
	offsets, total, _ := p.Planes(n, cols)
	piece := make([]byte, total)
	if err := p.Pack(piece, src, n, cols); err != nil {
		t.Fatal(err)
	}
	spans, _ := p.Spans(rows, cols, row0, n)
	for i, s := range spans {
		if !bytes.Equal(piece[offsets[i]:offsets[i]+s.Len], whole[s.Offset:s.Offset+s.Len]) {
			t.Fatalf("rows %d+%d: plane %d differs from the piece", row0, n, i)
		}
	}
}

func TestPlanes(t *testing.T) {
	for _, c := range []struct {
		typ        Type
		rows, cols uint64
		offsets    []uint64
		total      uint64
	}{
		{F32, 3, 32, []uint64{0}, 384},
		{BF16, 1, 64, []uint64{0}, 128},
		{Q4_0, 3, 32, []uint64{0, 48}, 64},
		{Q8_0, 2, 2816, []uint64{0, 5632}, 5632 + 352},
		{Q5_0, 1, 32, []uint64{0, 16, 32}, 48},
		{Q4_K, 3, 256, []uint64{0, 384, 432}, 448},
		{Q5_K, 1, 512, []uint64{0, 256, 320, 352}, 368},
		{Q6_K, 5, 256, []uint64{0, 640, 960, 1040}, 1056},
		{Q3_K, 1, 256, []uint64{0, 64, 96, 112}, 128},
		{MXFP4, 1, 96, []uint64{0, 48}, 64},
		{Q4_0, 0, 32, []uint64{0, 0}, 0},
	} {
		p, ok := Form(c.typ)
		if !ok || p.Type() != c.typ || p.PlaneCount() != len(c.offsets) {
			t.Fatalf("%v: form %v of %v with %d planes, want %d", c.typ, ok, p.Type(), p.PlaneCount(), len(c.offsets))
		}
		offsets, total, err := p.Planes(c.rows, c.cols)
		if err != nil || total != c.total || !slices.Equal(offsets, c.offsets) {
			t.Errorf("%v %dx%d: have %v, %d, %v, want %v, %d", c.typ, c.rows, c.cols, offsets, total, err, c.offsets, c.total)
		}
	}
	if _, ok := Form(IQ2_XXS); ok {
		t.Error("IQ2_XXS has no form yet")
	}
}

// TestPackedBytes pins the order within planes, which the WGSL shares, for one
// type of each family.
func TestPackedBytes(t *testing.T) {
	block := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i)
		}
		return b
	}
	pack := func(typ Type) []byte {
		p, _ := Form(typ)
		cols := typ.BlockSize()
		_, total, _ := p.Planes(1, cols)
		dst := make([]byte, total)
		if err := p.Pack(dst, block(int(typ.BlockBytes())), 1, cols); err != nil {
			t.Fatal(err)
		}
		return dst
	}
	for _, c := range []struct {
		typ  Type
		at   int
		want []byte
	}{
		{Q4_0, 0, []byte{2, 3, 4, 5}},
		{Q4_0, 16, []byte{0, 1, 0, 0}},
		// Unit 0: low nibbles of source bytes 16, 17 … with those of 32, 33 … above.
		{Q4_K, 0, []byte{0x00, 0x11, 0x22}},
		// Unit 1: the high nibbles.
		{Q4_K, 16, []byte{0x21, 0x21}},
		// (sc, m) of units 0 and 1: source bytes 4, 8 and 5, 9.
		{Q4_K, 128, []byte{4, 8, 5, 9}},
		{Q4_K, 144, []byte{0, 1, 2, 3}},
		// Unit 0: bit 0 of source bytes 16–47 is 0, 1, 0, 1 …; byte j%4, bit j/4.
		{Q5_K, 128, []byte{0x00, 0xff, 0x00, 0xff}},
		// Unit 0: pairs 0 of source bytes 128–159 are 0, 1, 2, 3, 0 …; byte j%8.
		{Q6_K, 128, []byte{0x00, 0x55, 0xaa, 0xff, 0x00, 0x55, 0xaa, 0xff}},
		{Q6_K, 192, []byte{192, 193, 194}},
	} {
		if have := pack(c.typ)[c.at:]; !bytes.HasPrefix(have, c.want) {
			t.Errorf("%v at byte %d: have % x, want % x", c.typ, c.at, have[:len(c.want)], c.want)
		}
	}
}

func TestFormRefuses(t *testing.T) {
	q4, _ := Form(Q4_0)
	q4k, _ := Form(Q4_K)
	f32, _ := Form(F32)
	ok := make([]byte, 64) // the form of 3 x 32 values of Q4_0
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"odd columns", errOf(f32.Planes(4, 33)), "F32: have rows of 33 values, want a multiple of 32"},
		{"part of a superblock", errOf(q4k.Planes(4, 96)), "Q4_K: have rows of 96 values, want a multiple of 256"},
		{"units overflow", errOf(q4.Planes(math.MaxUint64, 1<<40)), "2^62"},
		{"bytes overflow", errOf(f32.Planes(1<<58, 32)), "2^62"},
		{"short form", q4.Pack(make([]byte, 48), make([]byte, 54), 3, 32), "have 48 bytes for the form of 3 x 32"},
		{"long form", q4.Pack(make([]byte, 80), make([]byte, 54), 3, 32), "want 64"},
		{"short source", q4.Pack(ok, make([]byte, 53), 3, 32), "have 53 bytes for 3 rows"},
		{"rows past the end", q4.PackRows(ok, make([]byte, 36), 3, 32, 2, 2), "at most 3"},
		{"rows that wrap", q4.PackRows(ok, nil, 3, 32, 2, math.MaxUint64), "at most 3"},
		{"short room", q4.Unpack(make([]float64, 95), ok, 3, 32), "have room for 95"},
		{"short unpack", q4.Unpack(make([]float64, 96), ok[:63], 3, 32), "have 63 bytes"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: have %v, want an error with %q", c.name, c.err, c.want)
		}
	}
}

func errOf(_ []uint64, _ uint64, err error) error { return err }

func FuzzBlocks(f *testing.F) {
	f.Add(uint32(Q4_0), uint64(2), uint64(32), make([]byte, 36))
	f.Add(uint32(Q6_K), uint64(1), uint64(256), make([]byte, 210))
	f.Add(uint32(F32), uint64(1), uint64(0), []byte{})
	f.Fuzz(func(t *testing.T, id uint32, rows, cols uint64, src []byte) {
		typ := Type(id)
		values := make([]float64, cols%4096)
		_ = Dequantize(typ, values, src) // any size may come; it must not panic
		p, ok := Form(typ)
		if !ok {
			return
		}
		if _, total, err := p.Planes(rows, cols); err == nil && total > uint64(4*len(src)+4096) {
			if p.Pack(make([]byte, len(src)), src, rows, cols) == nil {
				t.Fatalf("%v %dx%d: packed into %d bytes of %d", typ, rows, cols, len(src), total)
			}
			return
		}
		// Whole rows of what bytes there are must come back exactly.
		cols = max(32, typ.BlockSize()) * (1 + cols%3)
		rowBytes, _ := typ.RowBytes(cols)
		rows = uint64(len(src)) / rowBytes
		checkRoundTrip(t, typ, src[:rows*rowBytes], rows, cols)
	})
}

func BenchmarkPack(b *testing.B) {
	for _, typ := range sorted() {
		b.Run(typ.String(), func(b *testing.B) {
			const rows, cols = 512, 2816 &^ 255
			p, _ := Form(typ)
			rowBytes, _ := typ.RowBytes(cols)
			_, total, _ := p.Planes(rows, cols)
			dst, src := make([]byte, total), make([]byte, rows*rowBytes)
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if err := p.Pack(dst, src, rows, cols); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDequantizeF32(b *testing.B) {
	for _, typ := range sorted() {
		b.Run(typ.String(), func(b *testing.B) {
			const cols = 4096
			rowBytes, _ := typ.RowBytes(cols)
			dst, src := make([]float32, cols), make([]byte, rowBytes)
			b.SetBytes(4 * cols)
			for b.Loop() {
				if err := DequantizeF32(typ, dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
