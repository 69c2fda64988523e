package ggml

// kind is all that can be run of a type. A new type is one entry here (its
// reference, its planes, its packer and the packer's inverse) and one WGSL
// snippet in sdk/kernels/types.
type kind struct {
	// reference writes the values of one ggml block to dst.
	reference func(dst []float64, block []byte)
	planes    []plane
	// pack writes whole blocks to as many units of the planes. Lengths match.
	pack func(out planes, src []byte)
	// unit writes the 32 values of unit g to dst.
	unit func(dst []float64, in *planes, g int)
}

// plane says how many bytes one field takes: bytes for each units units, which
// is 1, or 8 for a field of a superblock.
type plane struct{ bytes, units uint64 }

// per is a field of every unit, shared one of every superblock of 256 values.
func per(bytes uint64) plane    { return plane{bytes, 1} }
func shared(bytes uint64) plane { return plane{bytes, 8} }

// kinds is the table. The comment on each packer says what its planes hold.
var kinds = map[Type]*kind{
	F32:  {refF32, []plane{per(128)}, packPlain, unitF32},
	F16:  {refF16, []plane{per(64)}, packPlain, unitF16},
	BF16: {refBF16, []plane{per(64)}, packPlain, unitBF16},

	Q4_0: {refQ4_0, []plane{per(16), per(2)}, packQ4_0, unitQ4_0},
	Q4_1: {refQ4_1, []plane{per(16), per(4)}, packQ4_1, unitQ4_1},
	Q5_0: {refQ5_0, []plane{per(16), per(4), per(2)}, packQ5_0, unitQ5_0},
	Q5_1: {refQ5_1, []plane{per(16), per(4), per(4)}, packQ5_1, unitQ5_1},
	Q8_0: {refQ8_0, []plane{per(32), per(2)}, packQ8_0, unitQ8_0},

	Q2_K: {refQ2_K, []plane{per(8), per(2), shared(4)}, packQ2_K, unitQ2_K},
	Q3_K: {refQ3_K, []plane{per(8), per(4), per(2), shared(2)}, packQ3_K, unitQ3_K},
	Q4_K: {refQ4_K, []plane{per(16), per(2), shared(4)}, packQ4_K, unitQ4_K},
	Q5_K: {refQ5_K, []plane{per(16), per(4), per(2), shared(4)}, packQ5_K, unitQ5_K},
	Q6_K: {refQ6_K, []plane{per(16), per(8), per(2), shared(2)}, packQ6_K, unitQ6_K},

	IQ4_NL: {refIQ4_NL, []plane{per(16), per(2)}, packQ4_0, unitIQ4_NL},
	IQ4_XS: {refIQ4_XS, []plane{per(16), per(1), shared(2)}, packIQ4_XS, unitIQ4_XS},
	MXFP4:  {refMXFP4, []plane{per(16), per(1)}, packMXFP4, unitMXFP4},
}
