package tokenizer

import (
	"fmt"
	"math"
)

// The keys of a vocabulary (ggml's docs/gguf.md).
const (
	keyModel  = "tokenizer.ggml.model"
	keyPre    = "tokenizer.ggml.pre"
	keyTokens = "tokenizer.ggml.tokens"
	keyTypes  = "tokenizer.ggml.token_type"
	keyScores = "tokenizer.ggml.scores"
	keyMerges = "tokenizer.ggml.merges"
	keyAddBOS = "tokenizer.ggml.add_bos_token"
	keyBOS    = "tokenizer.ggml.bos_token_id"
	keyEOS    = "tokenizer.ggml.eos_token_id"
	keyUNK    = "tokenizer.ggml.unknown_token_id"
)

// Type is a token's type, numbered as in tokenizer.ggml.token_type.
type Type uint8

// The token types of GGUF.
const (
	Undefined   Type = 0
	Normal      Type = 1
	Unknown     Type = 2
	Control     Type = 3
	UserDefined Type = 4
	Unused      Type = 5
	Byte        Type = 6
)

// hidden says whether tokens of this type are matched and rendered only on
// demand: control tokens, and the unknown token, as in llama.cpp.
func (t Type) hidden() bool { return t == Control || t == Unknown }

func readString(md Metadata, key, want string) (string, error) {
	v, ok := md.Value(key)
	if !ok {
		return "", fmt.Errorf("tokenizer: %s: have none, want %s: the file has no tokenizer that is known here", key, want)
	}
	s, ok := v.(string)
	if !ok {
		return "", wrongType(key, v, "a string")
	}
	return s, nil
}

func readStrings(md Metadata, key string) ([]string, error) {
	v, ok := md.Value(key)
	if !ok {
		return nil, fmt.Errorf("tokenizer: %s: have none, want an array of strings: convert the model again", key)
	}
	s, ok := v.([]string)
	if !ok {
		return nil, wrongType(key, v, "an array of strings")
	}
	return s, nil
}

// readBool returns fallback where the key is missing.
func readBool(md Metadata, key string, fallback bool) (bool, error) {
	v, ok := md.Value(key)
	if !ok {
		return fallback, nil
	}
	b, ok := v.(bool)
	if !ok {
		return false, wrongType(key, v, "a bool")
	}
	return b, nil
}

// readID returns a token id below n, or none where the key is missing.
func readID(md Metadata, key string, n int) (int32, error) {
	v, ok := md.Value(key)
	if !ok {
		return none, nil
	}
	id, ok := integer(v)
	if !ok {
		return none, wrongType(key, v, "an integer")
	}
	if id < 0 || id >= int64(n) {
		return none, fmt.Errorf("tokenizer: %s: have %v, want an id below the %d of %s: convert the model again", key, v, n, keyTokens)
	}
	return int32(id), nil
}

// integer widens any integer; a uint64 past int64 becomes the largest int64,
// which is out of every range that is asked for here.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case uint8:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint64:
		return int64(min(v, math.MaxInt64)), true
	case int64:
		return v, true
	}
	return 0, false
}

// readTypes reads the types of n tokens; without the key all are Normal.
func readTypes(md Metadata, n int) ([]Type, error) {
	if err := checkLength(md, keyTypes, n); err != nil {
		return nil, err
	}
	v, ok := md.Value(keyTypes)
	if !ok {
		types := make([]Type, n)
		for i := range types {
			types[i] = Normal
		}
		return types, nil
	}
	switch v := v.(type) {
	case []int32:
		return asTypes(v), nil
	case []uint32:
		return asTypes(v), nil
	case []int64:
		return asTypes(v), nil
	case []uint64:
		return asTypes(v), nil
	case []int16:
		return asTypes(v), nil
	case []uint16:
		return asTypes(v), nil
	case []int8:
		return asTypes(v), nil
	case []uint8:
		return asTypes(v), nil
	}
	return nil, wrongType(keyTypes, v, "an array of integers")
}

// asTypes takes numbers that name no type for Undefined, as llama.cpp does.
func asTypes[T int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64](v []T) []Type {
	types := make([]Type, len(v))
	for i, x := range v {
		if x > 0 && x <= T(Byte) {
			types[i] = Type(x)
		}
	}
	return types
}

// checkLength refuses an array that has not one entry a token, if there is one.
func checkLength(md Metadata, key string, n int) error {
	v, ok := md.Value(key)
	if !ok {
		return nil
	}
	have := -1
	switch v := v.(type) {
	case []float32:
		have = len(v)
	case []float64:
		have = len(v)
	case []int32:
		have = len(v)
	case []uint32:
		have = len(v)
	case []int64:
		have = len(v)
	case []uint64:
		have = len(v)
	case []int16:
		have = len(v)
	case []uint16:
		have = len(v)
	case []int8:
		have = len(v)
	case []uint8:
		have = len(v)
	default:
		return wrongType(key, v, "an array of numbers")
	}
	if have != n {
		return fmt.Errorf("tokenizer: %s: have %d entries, want the %d of %s: convert the model again", key, have, n, keyTokens)
	}
	return nil
}

func wrongType(key string, v any, want string) error {
	return fmt.Errorf("tokenizer: %s: have a %T, want %s: convert the model again", key, v, want)
}
