package ggml

// packPlain: one plane, the ggml bytes as they are. F32, F16, BF16.
func packPlain(out planes, src []byte) { copy(out[0], src) }

// packQ4_0: nibbles (byte j: value j low, value j+16 high) | d f16.
// Q4_0 and IQ4_NL.
func packQ4_0(out planes, src []byte) {
	q, d := out[0], out[1]
	for ; len(src) >= 18; src = src[18:] {
		b := (*[18]byte)(src)
		copy16(q, b[2:])
		*(*[2]byte)(d) = [2]byte(b[:2])
		q, d = q[16:], d[2:]
	}
}

// packQ4_1: nibbles | d, m f16.
func packQ4_1(out planes, src []byte) {
	q, dm := out[0], out[1]
	for ; len(src) >= 20; src = src[20:] {
		b := (*[20]byte)(src)
		copy16(q, b[4:])
		store32(dm, load32(b[:]))
		q, dm = q[16:], dm[4:]
	}
}

// packQ5_0: nibbles | high bits (value j: bit j/4 of byte j%4) | d f16.
func packQ5_0(out planes, src []byte) {
	q, high, d := out[0], out[1], out[2]
	for ; len(src) >= 22; src = src[22:] {
		b := (*[22]byte)(src)
		copy16(q, b[6:])
		store32(high, orderBits(load32(b[2:])))
		*(*[2]byte)(d) = [2]byte(b[:2])
		q, high, d = q[16:], high[4:], d[2:]
	}
}

// packQ5_1: nibbles | high bits | d, m f16.
func packQ5_1(out planes, src []byte) {
	q, high, dm := out[0], out[1], out[2]
	for ; len(src) >= 24; src = src[24:] {
		b := (*[24]byte)(src)
		copy16(q, b[8:])
		store32(high, orderBits(load32(b[4:])))
		store32(dm, load32(b[:]))
		q, high, dm = q[16:], high[4:], dm[4:]
	}
}

// packQ8_0: 32 int8 | d f16.
func packQ8_0(out planes, src []byte) {
	q, d := out[0], out[1]
	for ; len(src) >= 34; src = src[34:] {
		b := (*[34]byte)(src)
		copy32(q, b[2:])
		*(*[2]byte)(d) = [2]byte(b[:2])
		q, d = q[32:], d[2:]
	}
}

// packMXFP4: nibbles | exponent byte.
func packMXFP4(out planes, src []byte) {
	q, e := out[0], out[1]
	for ; len(src) >= 17; src = src[17:] {
		b := (*[17]byte)(src)
		copy16(q, b[1:])
		e[0] = b[0]
		q, e = q[16:], e[1:]
	}
}
