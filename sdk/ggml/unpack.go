package ggml

// The inverses of the packers, field by field as the WGSL snippets read them.

func unitF32(dst []float64, in *planes, g int) {
	for j := range dst {
		dst[j] = floatAt(in[0][128*g+4*j:])
	}
}

func unitF16(dst []float64, in *planes, g int) {
	for j := range dst {
		dst[j] = halfAt(in[0][64*g+2*j:])
	}
}

func unitBF16(dst []float64, in *planes, g int) {
	for j := range dst {
		dst[j] = bfloatAt(in[0][64*g+2*j:])
	}
}

func unitQ4_0(dst []float64, in *planes, g int) {
	d := halfAt(in[1][2*g:])
	for j := range dst {
		dst[j] = d * (nibble(in[0], g, j) - 8)
	}
}

func unitQ4_1(dst []float64, in *planes, g int) {
	d, m := halfAt(in[1][4*g:]), halfAt(in[1][4*g+2:])
	for j := range dst {
		dst[j] = d*nibble(in[0], g, j) + m
	}
}

func unitQ5_0(dst []float64, in *planes, g int) {
	d := halfAt(in[2][2*g:])
	for j := range dst {
		dst[j] = d * (nibble(in[0], g, j) + 16*oneBit(in[1], g, j) - 16)
	}
}

func unitQ5_1(dst []float64, in *planes, g int) {
	d, m := halfAt(in[2][4*g:]), halfAt(in[2][4*g+2:])
	for j := range dst {
		dst[j] = d*(nibble(in[0], g, j)+16*oneBit(in[1], g, j)) + m
	}
}

func unitQ8_0(dst []float64, in *planes, g int) {
	d := halfAt(in[1][2*g:])
	for j := range dst {
		dst[j] = d * float64(int8(in[0][32*g+j]))
	}
}

func unitQ2_K(dst []float64, in *planes, g int) {
	d, dmin := halfAt(in[2][g/8*4:]), halfAt(in[2][g/8*4+2:])
	for j := range dst {
		s := in[1][2*g+j/16]
		dst[j] = d*float64(s&15)*pair(in[0], g, j) - dmin*float64(s>>4)
	}
}

func unitQ3_K(dst []float64, in *planes, g int) {
	d := halfAt(in[3][g/8*2:])
	for j := range dst {
		sc := float64(int8(in[2][2*g+j/16]))
		dst[j] = d * sc * (pair(in[0], g, j) + 4*oneBit(in[1], g, j) - 4)
	}
}

func unitQ4_K(dst []float64, in *planes, g int) {
	d, dmin := halfAt(in[2][g/8*4:]), halfAt(in[2][g/8*4+2:])
	sc, m := float64(in[1][2*g]), float64(in[1][2*g+1])
	for j := range dst {
		dst[j] = d*sc*nibble(in[0], g, j) - dmin*m
	}
}

func unitQ5_K(dst []float64, in *planes, g int) {
	d, dmin := halfAt(in[3][g/8*4:]), halfAt(in[3][g/8*4+2:])
	sc, m := float64(in[2][2*g]), float64(in[2][2*g+1])
	for j := range dst {
		dst[j] = d*sc*(nibble(in[0], g, j)+16*oneBit(in[1], g, j)) - dmin*m
	}
}

func unitQ6_K(dst []float64, in *planes, g int) {
	d := halfAt(in[3][g/8*2:])
	for j := range dst {
		sc := float64(int8(in[2][2*g+j/16]))
		dst[j] = d * sc * (nibble(in[0], g, j) + 16*pair(in[1], g, j) - 32)
	}
}

func unitIQ4_NL(dst []float64, in *planes, g int) {
	fromLevels(dst, in[0][16*g:], &levelsIQ4, halfAt(in[1][2*g:]))
}

func unitIQ4_XS(dst []float64, in *planes, g int) {
	d, sc := halfAt(in[2][g/8*2:]), float64(int8(in[1][g]))
	fromLevels(dst, in[0][16*g:], &levelsIQ4, d*sc)
}

func unitMXFP4(dst []float64, in *planes, g int) {
	fromLevels(dst, in[0][16*g:], &levelsFP4, e8m0Half(in[1][g]))
}

// nibble is value j of unit g in a plane of 16 bytes a unit, Q4_0's order.
func nibble(p []byte, g, j int) float64 { return float64(p[16*g+j%16] >> (j / 16 * 4) & 15) }

// oneBit is value j of unit g in a plane of 4 bytes a unit: see splitBits.
func oneBit(p []byte, g, j int) float64 { return float64(p[4*g+j%4] >> (j / 4) & 1) }

// pair is value j of unit g in a plane of 8 bytes a unit: see splitPairs.
func pair(p []byte, g, j int) float64 { return float64(p[8*g+j%8] >> (j / 8 * 2) & 3) }
