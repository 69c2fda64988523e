// Package ggml knows ggml's tensor types: their ids, names and block sizes, a
// float64 reference that dequantizes each, and the form in which the host
// packs each for the GPU. It knows no file format and no model.
package ggml

import "fmt"

// Type is a ggml tensor type id as GGUF stores it (enum ggml_type).
type Type uint32

// The ggml types that GGUF files hold today, by upstream's ids.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
)

// shape is a type's name, values per block and bytes per block.
type shape struct {
	name   string
	values uint64
	bytes  uint64
}

var shapes = map[Type]shape{
	F32: {"F32", 1, 4}, F16: {"F16", 1, 2}, BF16: {"BF16", 1, 2}, F64: {"F64", 1, 8},
	I8: {"I8", 1, 1}, I16: {"I16", 1, 2}, I32: {"I32", 1, 4}, I64: {"I64", 1, 8},
	Q4_0: {"Q4_0", 32, 18}, Q4_1: {"Q4_1", 32, 20}, Q5_0: {"Q5_0", 32, 22}, Q5_1: {"Q5_1", 32, 24},
	Q8_0: {"Q8_0", 32, 34}, Q8_1: {"Q8_1", 32, 36},
	Q2_K: {"Q2_K", 256, 84}, Q3_K: {"Q3_K", 256, 110}, Q4_K: {"Q4_K", 256, 144}, Q5_K: {"Q5_K", 256, 176},
	Q6_K: {"Q6_K", 256, 210}, Q8_K: {"Q8_K", 256, 292},
	IQ2_XXS: {"IQ2_XXS", 256, 66}, IQ2_XS: {"IQ2_XS", 256, 74}, IQ2_S: {"IQ2_S", 256, 82},
	IQ3_XXS: {"IQ3_XXS", 256, 98}, IQ3_S: {"IQ3_S", 256, 110}, IQ1_S: {"IQ1_S", 256, 50}, IQ1_M: {"IQ1_M", 256, 56},
	IQ4_NL: {"IQ4_NL", 32, 18}, IQ4_XS: {"IQ4_XS", 256, 136},
	TQ1_0: {"TQ1_0", 256, 54}, TQ2_0: {"TQ2_0", 256, 66}, MXFP4: {"MXFP4", 32, 17},
}

// Known reports whether GGUF defines t, whether or not kernels for it exist.
func (t Type) Known() bool { _, ok := shapes[t]; return ok }

// String is ggml's name of the type, or "type N" for an unknown id.
func (t Type) String() string {
	if s, ok := shapes[t]; ok {
		return s.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// BlockSize is the number of values in one block; 0 for an unknown type.
func (t Type) BlockSize() uint64 { return shapes[t].values }

// BlockBytes is the size of one block in bytes; 0 for an unknown type.
func (t Type) BlockBytes() uint64 { return shapes[t].bytes }

// RowBytes is the size in bytes of a row of n values. It fails where n is not
// a whole number of blocks, as ggml does, or where the size overflows.
func (t Type) RowBytes(n uint64) (uint64, error) {
	s, ok := shapes[t]
	if !ok {
		return 0, fmt.Errorf("ggml: %v is not a known tensor type", t)
	}
	if n%s.values != 0 {
		return 0, fmt.Errorf("ggml: a row of %d values is not a multiple of %v's block of %d", n, t, s.values)
	}
	blocks := n / s.values
	if blocks > (1<<62)/s.bytes {
		return 0, fmt.Errorf("ggml: a row of %d values of %v is too long", n, t)
	}
	return blocks * s.bytes, nil
}
