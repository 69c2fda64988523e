package gguf

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Metadata is a model's key/value table in the order of the file.
type Metadata struct {
	keys   []string
	values map[string]any
}

// Keys are the keys in the order of the file; the slice is the caller's.
func (m *Metadata) Keys() []string { return slices.Clone(m.keys) }

// Value returns a key's value and whether the file has the key. A value is a
// uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32, float64,
// bool or string, or a slice of one of these ([]string, []int32, ...), or []any
// for an array of arrays, each of which is one of these slices again. Strings
// are the file's bytes: usually, but not surely, valid UTF-8. Slices are shared
// between callers and must not be changed.
func (m *Metadata) Value(key string) (any, bool) {
	v, ok := m.values[key]
	return v, ok
}

// maxKey is the longest key that the format allows, in bytes.
const maxKey = 1<<16 - 1

// readMetadata reads n key/value pairs.
func readMetadata(r *reader, n uint64) (*Metadata, error) {
	m := &Metadata{values: make(map[string]any)}
	for i := range n {
		key, err := r.str()
		if err != nil {
			return nil, fmt.Errorf("key %d of %d: %w", i, n, err)
		}
		if err := checkName(key, maxKey); err != nil {
			return nil, fmt.Errorf("key %d of %d: %w", i, n, err)
		}
		if _, dup := m.values[key]; dup {
			return nil, fmt.Errorf("key %s: have it twice, want each key once: the file is damaged", key)
		}
		v, err := readValue(r)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", key, err)
		}
		m.keys = append(m.keys, key)
		m.values[key] = v
	}
	return m, nil
}

// checkName refuses keys and tensor names that are empty, too long, or not
// printable: they go into error texts, tables and protobuf strings.
func checkName(s string, limit int) error {
	switch {
	case s == "":
		return fmt.Errorf("have an empty name, want one: the file is damaged")
	case len(s) > limit:
		return fmt.Errorf("have a name of %d bytes (%.32q...), want at most %d: the file is damaged", len(s), s, limit)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }):
		return fmt.Errorf("have the name %.64q, want printable UTF-8: the file is damaged", s)
	}
	return nil
}

// defaultAlignment holds where a file has no general.alignment.
const defaultAlignment = 32

// alignment is the multiple of which tensor data must start, in bytes. The
// format asks for a uint32 and a multiple of 8, llama.cpp for a power of two.
func (m *Metadata) alignment() (uint64, error) {
	const key = "general.alignment"
	v, ok := m.values[key]
	if !ok {
		return defaultAlignment, nil
	}
	a, ok := v.(uint32)
	if !ok {
		return 0, fmt.Errorf("key %s: have a %s, want a uint32: convert the model again", key, typeName(v))
	}
	if a < 8 || a&(a-1) != 0 {
		return 0, fmt.Errorf("key %s: have %d, want a power of two of at least 8: convert the model again", key, a)
	}
	return uint64(a), nil
}

// count returns a non-negative integer of whatever width the writer chose.
// present is false where the file lacks the key.
func (m *Metadata) count(key string) (n uint64, present bool, err error) {
	v, present := m.values[key]
	if !present {
		return 0, false, nil
	}
	signed := int64(0)
	switch v := v.(type) {
	case uint8:
		n = uint64(v)
	case uint16:
		n = uint64(v)
	case uint32:
		n = uint64(v)
	case uint64:
		n = v
	case int8:
		signed = int64(v)
	case int16:
		signed = int64(v)
	case int32:
		signed = int64(v)
	case int64:
		signed = v
	default:
		return 0, true, fmt.Errorf("key %s: have a %s, want an integer: split the model again", key, typeName(v))
	}
	if signed < 0 {
		return 0, true, fmt.Errorf("key %s: have %d, want at least 0: split the model again", key, signed)
	}
	return n + uint64(signed), true, nil
}

// typeName is the Go type of a value, which names GGUF's types well.
func typeName(v any) string { return fmt.Sprintf("%T", v) }
