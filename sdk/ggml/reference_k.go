package ggml

// Superblocks of 256 values: eight runs of 32, each with its own small scales.

// refQ2_K: 16 bytes (scale low nibble, minimum high), 64 bytes of 2-bit quants,
// d, dmin f16; y = d·sc·q − dmin·m, one (sc, m) per 16 values. Run r of each
// 128 values is bits 2r of 32 bytes.
func refQ2_K(dst []float64, b []byte) {
	scales, q, d, dmin := b[:16], b[16:80], halfAt(b[80:]), halfAt(b[82:])
	for i := range dst {
		half, run, l := i/128, i/32%4, i%32
		s := scales[i/16]
		v := q[32*half+l] >> (2 * run) & 3
		dst[i] = d*float64(s&15)*float64(v) - dmin*float64(s>>4)
	}
}

// refQ3_K: 32 bytes of high bits (bit r: run r), 64 bytes of 2-bit quants laid
// out as Q2_K's, 12 bytes of sixteen 6-bit scales, d f16;
// y = d·(sc−32)·(q−4), where q is 3 bits.
func refQ3_K(dst []float64, b []byte) {
	high, q, packed, d := b[:32], b[32:96], b[96:108], halfAt(b[108:])
	for i := range dst {
		half, run, l := i/128, i/32%4, i%32
		v := q[32*half+l]>>(2*run)&3 | high[l]>>(i/32)&1<<2
		dst[i] = d * float64(scaleQ3(packed, i/16)) * (float64(v) - 4)
	}
}

// scaleQ3 is scale i of Q3_K's sixteen, less 32: four low bits in the nibbles
// of the first 8 bytes, two high bits in the last 4.
func scaleQ3(packed []byte, i int) int8 {
	low := packed[i%8] >> (4 * (i / 8)) & 15
	high := packed[8+i%4] >> (2 * (i / 4)) & 3
	return int8(low|high<<4) - 32
}

// refQ4_K: d, dmin f16, 12 bytes of eight 6-bit (scale, minimum), 128 bytes of
// nibbles; y = d·sc·q − dmin·m. Each 32 bytes hold run 2c low, run 2c+1 high.
func refQ4_K(dst []float64, b []byte) {
	d, dmin, packed, q := halfAt(b), halfAt(b[2:]), b[4:16], b[16:144]
	for i := range dst {
		run := i / 32
		sc, m := scaleMin(packed, run)
		v := q[32*(run/2)+i%32] >> (4 * (run % 2)) & 15
		dst[i] = d*float64(sc)*float64(v) - dmin*float64(m)
	}
}

// refQ5_K: as Q4_K with 32 bytes of high bits (bit r: run r) ahead of the
// nibbles.
func refQ5_K(dst []float64, b []byte) {
	d, dmin, packed, high, q := halfAt(b), halfAt(b[2:]), b[4:16], b[16:48], b[48:176]
	for i := range dst {
		run := i / 32
		sc, m := scaleMin(packed, run)
		v := q[32*(run/2)+i%32]>>(4*(run%2))&15 | high[i%32]>>run&1<<4
		dst[i] = d*float64(sc)*float64(v) - dmin*float64(m)
	}
}

// scaleMin is the 6-bit scale and minimum of run r in Q4_K's and Q5_K's 12
// bytes: runs 0–3 lie in the low 6 bits of bytes r and r+4; runs 4–7 take four
// bits from byte r+4 and two from the tops of bytes r−4 and r.
func scaleMin(packed []byte, r int) (sc, m byte) {
	if r < 4 {
		return packed[r] & 63, packed[r+4] & 63
	}
	return packed[r+4]&15 | packed[r-4]>>6<<4, packed[r+4]>>4 | packed[r]>>6<<4
}

// refQ6_K: 128 bytes of low nibbles, 64 of high bit pairs, 16 int8 scales, d
// f16; y = d·sc·(q−32). In each 128 values, run r has its nibbles in 32 bytes
// (r odd: the second 32; r ≥ 2: the high nibbles) and its pairs at bits 2r.
func refQ6_K(dst []float64, b []byte) {
	low, high, scales, d := b[:128], b[128:192], b[192:208], halfAt(b[208:])
	for i := range dst {
		half, run, l := i/128, i/32%4, i%32
		v := low[64*half+32*(run%2)+l]>>(4*(run/2))&15 | high[32*half+l]>>(2*run)&3<<4
		dst[i] = d * float64(int8(scales[i/16])) * (float64(v) - 32)
	}
}
