package ggml

import (
	"encoding/binary"
	"math"
)

// levelsIQ4 are the 16 reconstruction levels of IQ4_NL and IQ4_XS
// (kvalues_iq4nl in ggml-common.h).
var levelsIQ4 = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// levelsFP4 are twice the E2M1 values of the OCP microscaling format, so that
// they are whole (kvalues_mxfp4 in ggml-common.h).
var levelsFP4 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// refIQ4_NL: as Q4_0 with a table for the quants; y = d·levels[q].
func refIQ4_NL(dst []float64, b []byte) {
	fromLevels(dst, b[2:18], &levelsIQ4, halfAt(b))
}

// refIQ4_XS: d f16, eight 6-bit scales (high pairs as one u16, low nibbles in
// 4 bytes), 128 bytes of nibbles, 16 a run in Q4_0's order;
// y = d·(sc−32)·levels[q].
func refIQ4_XS(dst []float64, b []byte) {
	d, high, low, q := halfAt(b), binary.LittleEndian.Uint16(b[2:]), b[4:8], b[8:136]
	for run := range 8 {
		sc := low[run/2]>>(4*(run%2))&15 | byte(high>>(2*run)&3)<<4
		fromLevels(dst[32*run:], q[16*run:], &levelsIQ4, d*(float64(sc)-32))
	}
}

// refMXFP4: one exponent byte, nibbles as Q4_0; y = e8m0Half(e)·levels[q].
func refMXFP4(dst []float64, b []byte) {
	fromLevels(dst, b[1:17], &levelsFP4, e8m0Half(b[0]))
}

// e8m0Half is half of the E8M0 scale 2^(e−127), because the levels are doubled.
// As in ggml, 255 is not a NaN.
func e8m0Half(e byte) float64 { return math.Ldexp(1, int(e)-128) }

// fromLevels writes 32 values from 16 bytes of nibbles in Q4_0's order.
func fromLevels(dst []float64, q []byte, levels *[16]int8, d float64) {
	for j := range 16 {
		dst[j] = d * float64(levels[q[j]&15])
		dst[j+16] = d * float64(levels[q[j]>>4])
	}
}
