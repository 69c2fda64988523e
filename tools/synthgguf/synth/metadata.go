package synth

import (
	"fmt"
	"math"
)

// KV is a metadata pair. A value is a uint32, float32, bool or string, or a slice of int32, float32, bool or string.
type KV struct {
	Key   string
	Value any
}

// key appends a pair.
func (b *builder) key(key string, value any) { b.Metadata = append(b.Metadata, KV{key, value}) }

// number appends a key of the architecture with a whole number.
func (b *builder) number(key string, v int) { b.key(b.s.Arch+"."+key, uint32(v)) }

// real appends a key of the architecture with a float32.
func (b *builder) real(key string, v float64) { b.key(b.s.Arch+"."+key, float32(v)) }

// general appends the keys that every file begins with.
func (b *builder) general() {
	s := &b.s
	b.key("general.architecture", s.Arch)
	b.key("general.type", "model")
	b.key("general.name", fmt.Sprintf("synthetic %s %s %s", s.Arch, s.Name, b.recipe.name))
	b.key("general.description", fmt.Sprintf("Random weights in the shape of a published model, for measurements. %d layers, seed %d, skew %g, locality %g, dwell %d.",
		s.Layers, b.Seed, b.Skew, b.Locality, b.Dwell))
	b.key("general.file_type", b.recipe.fileType)
	b.key("general.quantization_version", uint32(2))
}

// common appends the keys that all four architectures have.
func (b *builder) common(eps float64) {
	b.number("context_length", b.s.Context)
	b.number("embedding_length", b.s.Hidden)
	b.number("block_count", b.blocks())
	b.number("attention.head_count", b.s.Heads)
	b.real("attention.layer_norm_rms_epsilon", eps)
	b.real("rope.freq_base", b.s.RopeBase)
	b.number("expert_count", b.s.Experts)
	b.number("expert_used_count", b.s.TopK)
	b.number("expert_feed_forward_length", b.s.ExpertFF)
}

// perBlock makes an array with a value for each block of the file.
func perBlock[T any](b *builder, value func(i int) T) []T {
	out := make([]T, b.blocks())
	for i := range out {
		out[i] = value(i)
	}
	return out
}

// typeID is a value's type in GGUF (enum gguf_value_type).
func typeID(v any) uint32 {
	switch v.(type) {
	case uint32:
		return 4
	case int32:
		return 5
	case float32:
		return 6
	case bool:
		return 7
	case string:
		return 8
	}
	panic(fmt.Sprintf("BUG: synth: no metadata of type %T", v))
}

const arrayID = 9

// alignment is GGUF's default: of each tensor's data, from the end of the header.
const alignment = 32

// Header is the file's beginning: all before the first tensor's data, padding included. The tensors follow in order, each
// at the next multiple of 32 bytes.
func (m *Model) Header() []byte {
	b := []byte("GGUF")
	b = le.AppendUint32(b, 3)
	b = le.AppendUint64(b, uint64(len(m.Tensors)))
	b = le.AppendUint64(b, uint64(len(m.Metadata)))
	for _, kv := range m.Metadata {
		b = appendString(b, kv.Key)
		b = appendValue(b, kv.Value)
	}
	var offset uint64
	for i := range m.Tensors {
		t := &m.Tensors[i]
		b = appendString(b, t.Name)
		b = le.AppendUint32(b, uint32(len(t.Dims)))
		for _, d := range t.Dims {
			b = le.AppendUint64(b, d)
		}
		b = le.AppendUint32(b, uint32(t.Type))
		b = le.AppendUint64(b, offset)
		offset += Padded(t.Size())
	}
	return append(b, make([]byte, Padded(uint64(len(b)))-uint64(len(b)))...)
}

// Padded is n up to the next multiple of the alignment, 32.
func Padded(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }

func appendString(b []byte, s string) []byte {
	return append(le.AppendUint64(b, uint64(len(s))), s...)
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case []int32:
		return appendArray(b, v)
	case []float32:
		return appendArray(b, v)
	case []bool:
		return appendArray(b, v)
	case []string:
		return appendArray(b, v)
	}
	return appendScalar(le.AppendUint32(b, typeID(v)), v)
}

func appendArray[T any](b []byte, values []T) []byte {
	var zero T
	b = le.AppendUint32(b, arrayID)
	b = le.AppendUint32(b, typeID(zero))
	b = le.AppendUint64(b, uint64(len(values)))
	for _, v := range values {
		b = appendScalar(b, v)
	}
	return b
}

func appendScalar(b []byte, v any) []byte {
	switch v := v.(type) {
	case uint32:
		return le.AppendUint32(b, v)
	case int32:
		return le.AppendUint32(b, uint32(v))
	case float32:
		return le.AppendUint32(b, math.Float32bits(v))
	case bool:
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	case string:
		return appendString(b, v)
	}
	panic(fmt.Sprintf("BUG: synth: no metadata of type %T", v))
}
