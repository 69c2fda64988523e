package store

import (
	"strings"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/sdk/program"
)

// keyTokens is the tokenizer's list of tokens, whose length is the vocabulary.
const keyTokens = "tokenizer.ggml.tokens"

// leftOut are the token tables: megabytes that no plugin needs.
var leftOut = map[string]bool{
	keyTokens:                   true,
	"tokenizer.ggml.scores":     true,
	"tokenizer.ggml.token_type": true,
	"tokenizer.ggml.merges":     true,
}

// Header is what a plugin is told of a file: metadata without the token tables,
// and the tensor table. Integers are widened to 64 bits; bytes of a string that
// are not UTF-8 become U+FFFD, since a protobuf string can't hold them.
func Header(f *gguf.File) *program.Header {
	h := &program.Header{}
	for _, key := range f.Metadata.Keys() {
		v, _ := f.Metadata.Value(key)
		if key == keyTokens {
			tokens, _ := v.([]string)
			h.Vocab = uint64(len(tokens))
		}
		if !leftOut[key] {
			h.Metadata = append(h.Metadata, &program.KeyValue{Key: key, Value: valueOf(v)})
		}
	}
	for _, t := range f.Tensors {
		h.Tensors = append(h.Tensors, &program.Tensor{Name: t.Name, Type: uint32(t.Type), Dims: t.Dims})
	}
	return h
}

// valueOf converts a value as gguf.Metadata gives it.
func valueOf(v any) *program.Value {
	switch v := v.(type) {
	case uint8:
		return uintValue(v)
	case uint16:
		return uintValue(v)
	case uint32:
		return uintValue(v)
	case uint64:
		return uintValue(v)
	case int8:
		return intValue(v)
	case int16:
		return intValue(v)
	case int32:
		return intValue(v)
	case int64:
		return intValue(v)
	case float32:
		return floatValue(v)
	case float64:
		return floatValue(v)
	case bool:
		return boolValue(v)
	case string:
		return stringValue(v)
	}
	return arrayOf(v)
}

// arrayOf converts an array.
func arrayOf(v any) *program.Value {
	switch v := v.(type) {
	case []uint8:
		return arrayValue(v, uintValue)
	case []uint16:
		return arrayValue(v, uintValue)
	case []uint32:
		return arrayValue(v, uintValue)
	case []uint64:
		return arrayValue(v, uintValue)
	case []int8:
		return arrayValue(v, intValue)
	case []int16:
		return arrayValue(v, intValue)
	case []int32:
		return arrayValue(v, intValue)
	case []int64:
		return arrayValue(v, intValue)
	case []float32:
		return arrayValue(v, floatValue)
	case []float64:
		return arrayValue(v, floatValue)
	case []bool:
		return arrayValue(v, boolValue)
	case []string:
		return arrayValue(v, stringValue)
	case []any:
		return arrayValue(v, arrayOf)
	}
	panic("BUG: store: gguf gave a value of a type that it does not list")
}

func uintValue[T uint8 | uint16 | uint32 | uint64](v T) *program.Value {
	return &program.Value{Is: &program.Value_Uint{Uint: uint64(v)}}
}

func intValue[T int8 | int16 | int32 | int64](v T) *program.Value {
	return &program.Value{Is: &program.Value_Int{Int: int64(v)}}
}

func floatValue[T float32 | float64](v T) *program.Value {
	return &program.Value{Is: &program.Value_Float{Float: float64(v)}}
}

func boolValue(v bool) *program.Value {
	return &program.Value{Is: &program.Value_Bool{Bool: v}}
}

func stringValue(v string) *program.Value {
	return &program.Value{Is: &program.Value_String_{String_: strings.ToValidUTF8(v, "\uFFFD")}}
}

func arrayValue[T any](values []T, convert func(T) *program.Value) *program.Value {
	a := &program.Array{Values: make([]*program.Value, len(values))}
	for i, v := range values {
		a.Values[i] = convert(v)
	}
	return &program.Value{Is: &program.Value_Array{Array: a}}
}
