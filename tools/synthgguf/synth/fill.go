package synth

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// scales are the block scales of random rows of one type and size: every block takes one of 16, so that blocks differ as
// in real files. Where ggml's own quantizer gives scales of either sign, half of these are negative: that also keeps the
// mean of the quants (-1/2, since -8 has no +8 beside it) from adding up over a row.
type scales struct {
	d, dmin [16]uint16 // f16; dmin of the types with a minimum
}

// unitRMS is the root mean square of a random block's values with a block scale of 1, for the distributions that fill
// writes. Test: TestRandomRows.
func unitRMS(t ggml.Type) float64 {
	uniform := func(lo, hi float64) float64 { // of the integers lo..hi
		n := hi - lo + 1
		mean := (lo + hi) / 2
		return math.Sqrt((n*n-1)/12 + mean*mean)
	}
	switch t {
	case ggml.Q4_0:
		return uniform(-8, 7)
	case ggml.Q5_0:
		return uniform(-16, 15)
	case ggml.Q8_0:
		return uniform(-127, 127)
	case ggml.Q4_K:
		return uniform(-7.5, 7.5) * uniform(32, 63)
	case ggml.Q5_K:
		return uniform(-15.5, 15.5) * uniform(32, 63)
	case ggml.Q6_K:
		return uniform(-32, 31) * math.Hypot(uniform(32, 63), uniform(33, 64)) / math.Sqrt2 // negative sub-scales are one larger
	}
	panic(fmt.Sprintf("BUG: synth: no random rows of type %v", t))
}

// newScales are the scales with which random rows of type t have the given root mean square.
func newScales(t ggml.Type, rms float64) *scales {
	d := rms / unitRMS(t)
	s := new(scales)
	for i := range s.d {
		// 8 sizes, 0.78 to 1.2 in mean square 1.
		v := d * math.Sqrt(0.6+0.8*(float64(i/2)+0.5)/8)
		switch t {
		case ggml.Q4_0, ggml.Q5_0:
			if i%2 == 1 {
				v = -v
			}
		case ggml.Q4_K:
			s.dmin[i] = f16(7.5 * v)
		case ggml.Q5_K:
			s.dmin[i] = f16(15.5 * v)
		}
		s.d[i] = f16(v)
	}
	return s
}

// f16 is the bits of v as IEEE 754 binary16, which must be finite there.
func f16(v float64) uint16 {
	r := ggml.RoundF16(v)
	var sign uint16
	if r < 0 {
		sign, r = 0x8000, -r
	}
	if r < 0x1p-14 {
		return sign | uint16(r*0x1p24)
	}
	frac, exp := math.Frexp(r)
	return sign | uint16(exp+14)<<10 | uint16((frac*2-1)*1024)
}

// subScales are the packed 6-bit scales and minima of a Q4_K or Q5_K block, each sub-block's minimum equal to its scale, 32
// to 63: then the quants' mean times the scale is what the minimum takes away.
var subScales = func() (table [64][12]byte) {
	r := stream{seedOf(0, "sub-scales", 0)}
	for i := range table {
		var sc [8]byte
		for j := range sc {
			sc[j] = 32 + byte(r.next()>>59)
		}
		table[i] = packSubScales(sc)
	}
	return table
}()

// packSubScales packs eight scales, which are the minima, too, as Q4_K and Q5_K have them.
func packSubScales(sc [8]byte) (b [12]byte) {
	for j := range 4 {
		low, high := sc[j], sc[j+4]
		b[j] = low | high>>4<<6
		b[j+4] = low | high>>4<<6
		b[j+8] = high&15 | high&15<<4
	}
	return b
}

// fill writes random blocks of type t over dst, a whole number of them.
func fill(t ggml.Type, dst []byte, r *stream, s *scales) {
	switch t {
	case ggml.Q4_0:
		fillSmall(dst, 18, r, s)
	case ggml.Q5_0:
		fillSmall(dst, 22, r, s)
	case ggml.Q8_0:
		fillQ8(dst, r, s)
	case ggml.Q4_K:
		fillK(dst, 144, r, s)
	case ggml.Q5_K:
		fillK(dst, 176, r, s)
	case ggml.Q6_K:
		fillQ6K(dst, r, s)
	default:
		panic(fmt.Sprintf("BUG: synth: no random rows of type %v", t))
	}
}

var le = binary.LittleEndian

// fillSmall writes blocks of a scale and random bits: Q4_0 and Q5_0.
func fillSmall(dst []byte, size int, r *stream, s *scales) {
	for len(dst) >= size {
		pick := r.next()
		for n := 0; n < 16 && len(dst) >= size; n++ {
			b := dst[:size:size]
			dst = dst[size:]
			le.PutUint16(b, s.d[pick>>(4*n)&15])
			b = b[2:]
			if len(b) == 20 {
				le.PutUint32(b, uint32(r.next()>>32))
				b = b[4:]
			}
			le.PutUint64(b, r.next())
			le.PutUint64(b[8:], r.next())
		}
	}
}

// fillQ8 keeps to ±127, as ggml's quantizer does: negative quants are odd.
func fillQ8(dst []byte, r *stream, s *scales) {
	for len(dst) >= 34 {
		pick := r.next()
		for n := 0; n < 16 && len(dst) >= 34; n++ {
			b := dst[:34:34]
			dst = dst[34:]
			le.PutUint16(b, s.d[pick>>(4*n)&15])
			for i := 2; i < 34; i += 8 {
				x := r.next()
				le.PutUint64(b[i:], x|x>>7&0x0101010101010101)
			}
		}
	}
}

// fillK writes Q4_K and Q5_K: d, dmin, sub-scales, then quants.
func fillK(dst []byte, size int, r *stream, s *scales) {
	for ; len(dst) >= size; dst = dst[size:] {
		b := dst[:size:size]
		pick := r.next()
		le.PutUint16(b, s.d[pick&15])
		le.PutUint16(b[2:], s.dmin[pick&15])
		copy(b[4:16], subScales[pick>>4&63][:])
		for i := 16; i < size; i += 8 {
			le.PutUint64(b[i:], r.next())
		}
	}
}

// fillQ6K writes quants, 16 sub-scales of 32 to 63 or -33 to -64, and d.
func fillQ6K(dst []byte, r *stream, s *scales) {
	const size = 210
	for ; len(dst) >= size; dst = dst[size:] {
		b := dst[:size:size]
		for i := 0; i < 192; i += 8 {
			le.PutUint64(b[i:], r.next())
		}
		for i := 192; i < 208; i += 8 {
			x := r.next()
			negative := x >> 7 & 0x0101010101010101 * 0xff // ^v is -v-1
			le.PutUint64(b[i:], (x&0x1f1f1f1f1f1f1f1f|0x2020202020202020)^negative)
		}
		le.PutUint16(b[208:], s.d[r.next()>>60])
	}
}

// fillF32 writes values that next gives.
func fillF32(dst []byte, next func(i int) float64) {
	for i := range len(dst) / 4 {
		le.PutUint32(dst[4*i:], math.Float32bits(float32(next(i))))
	}
}
