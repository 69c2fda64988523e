package gguf

import "fmt"

// valueType is a metadata value's type id (enum gguf_type).
type valueType uint32

const (
	typeUint8   valueType = 0
	typeInt8    valueType = 1
	typeUint16  valueType = 2
	typeInt16   valueType = 3
	typeUint32  valueType = 4
	typeInt32   valueType = 5
	typeFloat32 valueType = 6
	typeBool    valueType = 7
	typeString  valueType = 8
	typeArray   valueType = 9
	typeUint64  valueType = 10
	typeInt64   valueType = 11
	typeFloat64 valueType = 12
)

// maxDepth bounds arrays in arrays. No known file nests them at all; without a
// bound a file could make us recurse once per 12 bytes.
const maxDepth = 4

// readValue reads a type id and a value of it.
func readValue(r *reader) (any, error) {
	t, err := r.u32()
	if err != nil {
		return nil, err
	}
	if valueType(t) == typeArray {
		return readArray(r, 1)
	}
	return readScalar(r, valueType(t))
}

func readScalar(r *reader, t valueType) (any, error) {
	switch t {
	case typeUint8:
		return boxed(number(r, 1, getU8))
	case typeInt8:
		return boxed(number(r, 1, getI8))
	case typeUint16:
		return boxed(number(r, 2, getU16))
	case typeInt16:
		return boxed(number(r, 2, getI16))
	case typeUint32:
		return boxed(number(r, 4, getU32))
	case typeInt32:
		return boxed(number(r, 4, getI32))
	case typeFloat32:
		return boxed(number(r, 4, getF32))
	case typeUint64:
		return boxed(number(r, 8, getU64))
	case typeInt64:
		return boxed(number(r, 8, getI64))
	case typeFloat64:
		return boxed(number(r, 8, getF64))
	case typeString:
		return boxed(r.str())
	case typeBool:
		b, err := number(r, 1, getU8)
		if err == nil && b > 1 {
			err = badBool(b)
		}
		return boxed(b == 1, err)
	}
	return nil, badType(t)
}

// readArray reads an element type, a count and that many elements.
func readArray(r *reader, depth int) (any, error) {
	id, err := r.u32()
	if err != nil {
		return nil, err
	}
	n, err := r.u64()
	if err != nil {
		return nil, err
	}
	t := valueType(id)
	least := t.leastBytes()
	if least == 0 {
		return nil, badType(t)
	}
	if err := r.need(n, least); err != nil {
		return nil, fmt.Errorf("array of %d elements: %w", n, err)
	}
	switch t {
	case typeUint8:
		return boxed(numbers(r, n, 1, getU8))
	case typeInt8:
		return boxed(numbers(r, n, 1, getI8))
	case typeUint16:
		return boxed(numbers(r, n, 2, getU16))
	case typeInt16:
		return boxed(numbers(r, n, 2, getI16))
	case typeUint32:
		return boxed(numbers(r, n, 4, getU32))
	case typeInt32:
		return boxed(numbers(r, n, 4, getI32))
	case typeFloat32:
		return boxed(numbers(r, n, 4, getF32))
	case typeUint64:
		return boxed(numbers(r, n, 8, getU64))
	case typeInt64:
		return boxed(numbers(r, n, 8, getI64))
	case typeFloat64:
		return boxed(numbers(r, n, 8, getF64))
	case typeString:
		return boxed(r.strs(n))
	case typeBool:
		return readBools(r, n)
	}
	return readNested(r, n, depth)
}

func readBools(r *reader, n uint64) (any, error) {
	raw, err := numbers(r, n, 1, getU8)
	if err != nil {
		return nil, err
	}
	out := make([]bool, n)
	for i, b := range raw {
		if b > 1 {
			return nil, fmt.Errorf("element %d of %d: %w", i, n, badBool(b))
		}
		out[i] = b == 1
	}
	return out, nil
}

// readNested reads n arrays, each with an element type and count of its own.
func readNested(r *reader, n uint64, depth int) (any, error) {
	if depth == maxDepth {
		return nil, fmt.Errorf("have arrays nested more than %d deep, want fewer: the file is damaged", maxDepth)
	}
	out := []any{}
	for i := range n {
		v, err := readArray(r, depth+1)
		if err != nil {
			return nil, fmt.Errorf("element %d of %d: %w", i, n, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// leastBytes is the fewest bytes that a value of type t takes: its size, or of
// an empty string or array. 0 stands for an unknown type.
func (t valueType) leastBytes() uint64 {
	switch t {
	case typeUint8, typeInt8, typeBool:
		return 1
	case typeUint16, typeInt16:
		return 2
	case typeUint32, typeInt32, typeFloat32:
		return 4
	case typeUint64, typeInt64, typeFloat64, typeString:
		return 8
	case typeArray:
		return 12
	}
	return 0
}

func badType(t valueType) error {
	return fmt.Errorf("have value type %d, want 0 to %d: the file is damaged, or needs a newer version of this program", t, typeFloat64)
}

func badBool(b uint8) error {
	return fmt.Errorf("have a bool of %d, want 0 or 1: the file is damaged", b)
}

// boxed turns a typed result into an untyped one, nil on an error.
func boxed[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}
