package gguftest

import (
	"encoding/binary"
	"fmt"
	"math"
)

const defaultAlignment = 32

// Encode gives the bytes of the model as one file.
func (m *Model) Encode() []byte {
	w := writer{}
	version := m.Version
	if version == 0 {
		version = 3
	}
	w = append(w, "GGUF"...)
	w.u32(version)
	w.u64(claim(m.ClaimTensors, len(m.Tensors)))
	w.u64(claim(m.ClaimPairs, len(m.Metadata)))
	for _, kv := range m.Metadata {
		w.str(kv.Key)
		w.typed(kv.Value)
	}
	align := m.alignment()
	offset := 0
	for _, t := range m.Tensors {
		w.str(t.Name)
		w.u32(uint32(len(t.Dims)))
		for _, d := range t.Dims {
			w.u64(d)
		}
		w.u32(uint32(t.Type))
		w.u64(uint64(offset) + t.Shift)
		offset = padded(offset+len(t.Data), align)
	}
	for _, t := range m.Tensors {
		w = append(w, make([]byte, padded(len(w), align)-len(w))...)
		w = append(w, t.Data...)
	}
	return w
}

func claim(claimed *uint64, have int) uint64 {
	if claimed != nil {
		return *claimed
	}
	return uint64(have)
}

// alignment is the model's where a reader could accept it, else the default.
func (m *Model) alignment() int {
	v, _ := m.Value("general.alignment")
	if a, ok := v.(uint32); ok && a > 0 {
		return int(a)
	}
	return defaultAlignment
}

func padded(n, align int) int { return (n + align - 1) / align * align }

// writer appends GGUF's primitives, little-endian.
type writer []byte

func (w *writer) u32(v uint32) { *w = binary.LittleEndian.AppendUint32(*w, v) }
func (w *writer) u64(v uint64) { *w = binary.LittleEndian.AppendUint64(*w, v) }

func (w *writer) str(s string) {
	w.u64(uint64(len(s)))
	*w = append(*w, s...)
}

// typed writes a value's type id and the value.
func (w *writer) typed(v any) {
	if r, ok := v.(Raw); ok {
		w.u32(r.Type)
		*w = append(*w, r.Bytes...)
		return
	}
	if id, ok := w.scalarID(v); ok {
		w.u32(id)
		w.scalar(v)
		return
	}
	w.u32(9)
	w.array(v)
}

// scalarID is the type id (enum gguf_type) of a value that is no array.
func (w *writer) scalarID(v any) (uint32, bool) {
	switch v.(type) {
	case uint8:
		return 0, true
	case int8:
		return 1, true
	case uint16:
		return 2, true
	case int16:
		return 3, true
	case uint32:
		return 4, true
	case int32:
		return 5, true
	case float32:
		return 6, true
	case bool:
		return 7, true
	case string:
		return 8, true
	case uint64:
		return 10, true
	case int64:
		return 11, true
	case float64:
		return 12, true
	}
	return 0, false
}

func (w *writer) scalar(v any) {
	switch v := v.(type) {
	case string:
		w.str(v)
	case float32:
		w.u32(math.Float32bits(v))
	case float64:
		w.u64(math.Float64bits(v))
	default:
		b, err := binary.Append(nil, binary.LittleEndian, v)
		if err != nil {
			panic(fmt.Sprintf("BUG: gguftest: %v", err))
		}
		*w = append(*w, b...)
	}
}

// array writes an array's element type, count and elements. It panics on a Go
// type that GGUF has no array of.
func (w *writer) array(v any) {
	switch v := v.(type) {
	case []uint8:
		elements(w, v)
	case []int8:
		elements(w, v)
	case []uint16:
		elements(w, v)
	case []int16:
		elements(w, v)
	case []uint32:
		elements(w, v)
	case []int32:
		elements(w, v)
	case []float32:
		elements(w, v)
	case []bool:
		elements(w, v)
	case []string:
		elements(w, v)
	case []uint64:
		elements(w, v)
	case []int64:
		elements(w, v)
	case []float64:
		elements(w, v)
	case []any:
		w.u32(9)
		w.u64(uint64(len(v)))
		for _, e := range v {
			w.array(e)
		}
	default:
		panic(fmt.Sprintf("gguftest: GGUF has no value of type %T", v))
	}
}

func elements[T any](w *writer, v []T) {
	var zero T
	id, _ := w.scalarID(zero)
	w.u32(id)
	w.u64(uint64(len(v)))
	for _, e := range v {
		w.scalar(e)
	}
}
