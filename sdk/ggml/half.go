package ggml

import (
	"encoding/binary"
	"math"
)

// halfAt is the IEEE 754 binary16 at b[0:2], little-endian.
func halfAt(b []byte) float64 { return half(binary.LittleEndian.Uint16(b)) }

// half widens an IEEE 754 binary16. float64 holds every value of it exactly.
func half(h uint16) float64 {
	fraction := uint64(h & 0x3ff)
	var v float64
	switch exponent := uint64(h >> 10 & 0x1f); {
	case exponent == 0:
		v = float64(fraction) * 0x1p-24
	case exponent == 31 && fraction != 0:
		return math.NaN()
	case exponent == 31:
		v = math.Inf(1)
	default:
		v = math.Float64frombits((exponent+1023-15)<<52 | fraction<<42)
	}
	if h&0x8000 != 0 {
		return -v
	}
	return v
}

// bfloatAt is the bfloat16 at b[0:2]: the upper half of a float32.
func bfloatAt(b []byte) float64 {
	return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
}

// floatAt is the float32 at b[0:4], little-endian.
func floatAt(b []byte) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
}
