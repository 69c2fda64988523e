package ggml

import "encoding/binary"

// The references below read one block each, in the field order of ggml's
// block_* structs (ggml-common.h). They are written to be read, not to be fast.

func refF32(dst []float64, b []byte)  { dst[0] = floatAt(b) }
func refF16(dst []float64, b []byte)  { dst[0] = halfAt(b) }
func refBF16(dst []float64, b []byte) { dst[0] = bfloatAt(b) }

// refQ4_0: d f16, 16 bytes of nibbles; y = d·(q−8). Byte j holds value j in
// its low nibble and value j+16 in its high one.
func refQ4_0(dst []float64, b []byte) {
	d, q := halfAt(b), b[2:18]
	for j := range 16 {
		dst[j] = d * (float64(q[j]&15) - 8)
		dst[j+16] = d * (float64(q[j]>>4) - 8)
	}
}

// refQ4_1: d, m f16, nibbles as Q4_0; y = d·q + m.
func refQ4_1(dst []float64, b []byte) {
	d, m, q := halfAt(b), halfAt(b[2:]), b[4:20]
	for j := range 16 {
		dst[j] = d*float64(q[j]&15) + m
		dst[j+16] = d*float64(q[j]>>4) + m
	}
}

// refQ5_0: d f16, 32 high bits (bit j: value j), nibbles as Q4_0;
// y = d·(q−16).
func refQ5_0(dst []float64, b []byte) {
	d, high, q := halfAt(b), binary.LittleEndian.Uint32(b[2:]), b[6:22]
	for j := range 16 {
		dst[j] = d * (float64(q[j]&15|bit(high, j)<<4) - 16)
		dst[j+16] = d * (float64(q[j]>>4|bit(high, j+16)<<4) - 16)
	}
}

// refQ5_1: d, m f16, then as Q5_0; y = d·q + m.
func refQ5_1(dst []float64, b []byte) {
	d, m := halfAt(b), halfAt(b[2:])
	high, q := binary.LittleEndian.Uint32(b[4:]), b[8:24]
	for j := range 16 {
		dst[j] = d*float64(q[j]&15|bit(high, j)<<4) + m
		dst[j+16] = d*float64(q[j]>>4|bit(high, j+16)<<4) + m
	}
}

// refQ8_0: d f16, 32 int8; y = d·q.
func refQ8_0(dst []float64, b []byte) {
	d := halfAt(b)
	for j, q := range b[2:34] {
		dst[j] = d * float64(int8(q))
	}
}

// bit is bit j of w.
func bit(w uint32, j int) byte { return byte(w >> j & 1) }
