package ggml

// packQ2_K: 2-bit quants (value j: pair j/8 of byte j%8) | per 16 values a
// byte, scale low nibble and minimum high | per superblock d, dmin f16.
func packQ2_K(out planes, src []byte) {
	q, scales, dm := out[0], out[1], out[2]
	for ; len(src) >= 84; src = src[84:] {
		b := (*[84]byte)(src)
		splitPairs(q, b[16:])
		splitPairs(q[32:], b[48:])
		copy16(scales, b[:])
		store32(dm, load32(b[80:]))
		q, scales, dm = q[64:], scales[16:], dm[4:]
	}
}

// packQ3_K: low bit pairs as Q2_K's | high bits as Q5_0's | per 16 values an
// int8 scale, 32 already taken off | per superblock d f16.
func packQ3_K(out planes, src []byte) {
	q, high, scales, d := out[0], out[1], out[2], out[3]
	for ; len(src) >= 110; src = src[110:] {
		b := (*[110]byte)(src)
		splitPairs(q, b[32:])
		splitPairs(q[32:], b[64:])
		splitBits(high, b[:])
		unpackScalesQ3(scales, b[96:])
		*(*[2]byte)(d) = [2]byte(b[108:])
		q, high, scales, d = q[64:], high[32:], scales[16:], d[2:]
	}
}

// unpackScalesQ3 writes the sixteen scales that scaleQ3 describes as int8.
func unpackScalesQ3(dst, src []byte) {
	s, out := (*[12]byte)(src), (*[16]byte)(dst)
	low, top := load64(s[:]), load32(s[8:])
	const two = 0x03030303
	first := low&low4 | uint64(top&two)<<4 | uint64(top>>2&two)<<36
	second := low>>4&low4 | uint64(top>>4&two)<<4 | uint64(top>>6&two)<<36
	store64(out[0:], less32(first))
	store64(out[8:], less32(second))
}

// packQ4_K: nibbles, each unit in Q4_0's order | 6-bit scale, 6-bit minimum, a
// byte each | per superblock d, dmin f16.
func packQ4_K(out planes, src []byte) {
	q, scales, dm := out[0], out[1], out[2]
	for ; len(src) >= 144; src = src[144:] {
		b := (*[144]byte)(src)
		splitRuns(q, b[16:])
		unpackScaleMins(scales, b[4:])
		store32(dm, load32(b[:]))
		q, scales, dm = q[128:], scales[16:], dm[4:]
	}
}

// packQ5_K: as Q4_K with high bits as Q5_0's after the nibbles.
func packQ5_K(out planes, src []byte) {
	q, high, scales, dm := out[0], out[1], out[2], out[3]
	for ; len(src) >= 176; src = src[176:] {
		b := (*[176]byte)(src)
		splitRuns(q, b[48:])
		splitBits(high, b[16:])
		unpackScaleMins(scales, b[4:])
		store32(dm, load32(b[:]))
		q, high, scales, dm = q[128:], high[32:], scales[16:], dm[4:]
	}
}

// packQ6_K: low nibbles, each unit in Q4_0's order | high bit pairs as Q2_K's |
// per 16 values an int8 scale | per superblock d f16.
func packQ6_K(out planes, src []byte) {
	q, high, scales, d := out[0], out[1], out[2], out[3]
	for ; len(src) >= 210; src = src[210:] {
		b := (*[210]byte)(src)
		splitNibbles(q[0:], q[32:], b[0:])
		splitNibbles(q[16:], q[48:], b[32:])
		splitNibbles(q[64:], q[96:], b[64:])
		splitNibbles(q[80:], q[112:], b[96:])
		splitPairs(high, b[128:])
		splitPairs(high[32:], b[160:])
		copy16(scales, b[192:])
		*(*[2]byte)(d) = [2]byte(b[208:])
		q, high, scales, d = q[128:], high[64:], scales[16:], d[2:]
	}
}

// packIQ4_XS: nibbles, already in Q4_0's order | int8 scale, 32 taken off | per
// superblock d f16.
func packIQ4_XS(out planes, src []byte) {
	q, scales, d := out[0], out[1], out[2]
	for ; len(src) >= 136; src = src[136:] {
		b := (*[136]byte)(src)
		copy(q[:128], b[8:])
		high := uint32(b[2]) | uint32(b[3])<<8
		store64(scales, less32(spreadNibbles(load32(b[4:]))|spreadPairs(high)<<4))
		*(*[2]byte)(d) = [2]byte(b[:2])
		q, scales, d = q[128:], scales[8:], d[2:]
	}
}

// splitRuns splits 128 bytes of Q4_K's nibbles into eight units.
func splitRuns(dst, src []byte) {
	q, s := (*[128]byte)(dst), (*[128]byte)(src)
	splitNibbles(q[0:], q[16:], s[0:])
	splitNibbles(q[32:], q[48:], s[32:])
	splitNibbles(q[64:], q[80:], s[64:])
	splitNibbles(q[96:], q[112:], s[96:])
}

// unpackScaleMins writes the eight pairs that scaleMin describes, a byte each.
func unpackScaleMins(dst, src []byte) {
	s, out := (*[12]byte)(src), (*[16]byte)(dst)
	a, b, c := load32(s[0:]), load32(s[4:]), load32(s[8:])
	const six, four, two = 0x3f3f3f3f, 0x0f0f0f0f, 0x03030303
	sc, m := c&four|a>>6&two<<4, c>>4&four|b>>6&two<<4
	store64(out[0:], spreadBytes(a&six)|spreadBytes(b&six)<<8)
	store64(out[8:], spreadBytes(sc)|spreadBytes(m)<<8)
}
