package synth

import (
	"fmt"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// codeWidth is the number of values in a code, one superblock of the K types.
const codeWidth = 256

// code is a pattern of 256 small integers, -2 to 2, that a row of the embedding holds exactly up to one factor.
type code [codeWidth]int8

// signs is a code of +1 and -1.
func signs(seed uint64) (c code) {
	r := stream{seed}
	for i := 0; i < codeWidth; i += 64 {
		x := r.next()
		for j := range 64 {
			c[i+j] = int8(x>>j&1)*2 - 1
		}
	}
	return c
}

// plus is the sum of two codes of signs.
func (c code) plus(d code) code {
	for i := range c {
		c[i] += d[i]
	}
	return c
}

// codeTypes are the types that a row with codes can have.
func codeType(t ggml.Type) bool {
	return t == ggml.Q4_0 || t == ggml.Q8_0 || t == ggml.Q4_K || t == ggml.Q6_K
}

// pack writes the code times unit over dst, in blocks of type t: 256 values.
func (c *code) pack(t ggml.Type, dst []byte, unit float64) {
	switch t {
	case ggml.Q4_0:
		for i := 0; i < codeWidth; i += 32 {
			b := dst[i/32*18:]
			le.PutUint16(b, f16(unit/3))
			for j := range 16 {
				b[2+j] = byte(8+3*c[i+j]) | byte(8+3*c[i+j+16])<<4
			}
		}
	case ggml.Q8_0:
		for i := 0; i < codeWidth; i += 32 {
			b := dst[i/32*34:]
			le.PutUint16(b, f16(unit/60))
			for j := range 32 {
				b[2+j] = byte(60 * c[i+j])
			}
		}
	case ggml.Q4_K:
		c.packQ4K(dst, unit)
	case ggml.Q6_K:
		c.packQ6K(dst, unit)
	default:
		panic(fmt.Sprintf("BUG: synth: no codes in type %v", t))
	}
}

// packQ4K: value = d·32·quant - dmin·32, quant = 8 + 3·code.
func (c *code) packQ4K(dst []byte, unit float64) {
	d := ggml.RoundF16(unit / (3 * 32))
	le.PutUint16(dst, f16(d))
	le.PutUint16(dst[2:], f16(8*d))
	sc := packSubScales([8]byte{32, 32, 32, 32, 32, 32, 32, 32})
	copy(dst[4:], sc[:])
	for i := 0; i < codeWidth; i += 64 {
		for j := range 32 {
			dst[16+i/2+j] = byte(8+3*c[i+j]) | byte(8+3*c[i+j+32])<<4
		}
	}
}

// packQ6K: value = d·64·(quant - 32), quant = 32 + 15·code.
func (c *code) packQ6K(dst []byte, unit float64) {
	ql, qh := dst[:128], dst[128:192]
	for half := range 2 {
		for j := range 32 {
			var q [4]byte
			for k := range q {
				q[k] = byte(32 + 15*c[128*half+32*k+j])
			}
			ql[64*half+j] = q[0]&15 | q[2]&15<<4
			ql[64*half+32+j] = q[1]&15 | q[3]&15<<4
			qh[32*half+j] = q[0]>>4 | q[1]>>4<<2 | q[2]>>4<<4 | q[3]>>4<<6
		}
	}
	for i := 192; i < 208; i++ {
		dst[i] = 64
	}
	le.PutUint16(dst[208:], f16(unit/(64*15)))
}
