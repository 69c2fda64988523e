// Package gguftest writes GGUF files for tests: models made from nothing, real
// models with a key dropped or a tensor reshaped, and files that no reader
// should accept. It checks nothing of what it writes, so that it can write bad
// files; use it in tests only. Start at [Model], or at [Edit] for a changed copy
// of a real file.
package gguftest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/sdk/ggml"
)

// Model is a GGUF file in memory, to be changed freely and written.
type Model struct {
	// Version is the format version; 0 is written as 3.
	Version uint32
	// Metadata is written in order, duplicates included.
	Metadata []KV
	// Tensors are written in order, duplicates included.
	Tensors []Tensor
	// ClaimTensors and ClaimPairs, where not nil, are written as the counts of
	// tensors and of key/value pairs instead of the true ones.
	ClaimTensors, ClaimPairs *uint64
}

// KV is one key and its value, of the types that gguf.Metadata.Value lists, or
// a Raw value.
type KV struct {
	Key   string
	Value any
}

// Pairs makes metadata of keys and values in turn: Pairs("a", int32(1), "b", "x").
func Pairs(keysAndValues ...any) []KV {
	var kvs []KV
	for i := 0; i < len(keysAndValues); i += 2 {
		kvs = append(kvs, KV{keysAndValues[i].(string), keysAndValues[i+1]})
	}
	return kvs
}

// Raw is a metadata value given by its type id and bytes, which may be wrong.
type Raw struct {
	Type  uint32
	Bytes []byte
}

// Tensor is a tensor with its data.
type Tensor struct {
	Name string
	Dims []uint64 // ne0 first; none are written as such
	Type ggml.Type
	Data []byte
	// Shift is added to the offset that the table claims, modulo 2^64.
	Shift uint64
}

// Zeros is a tensor of the right size for its shape, all bytes 0. It panics
// where ggml knows no such tensor.
func Zeros(name string, typ ggml.Type, dims ...uint64) Tensor {
	return Tensor{Name: name, Dims: dims, Type: typ, Data: make([]byte, dataBytes(typ, dims))}
}

func dataBytes(typ ggml.Type, dims []uint64) uint64 {
	if len(dims) == 0 {
		return typ.BlockBytes()
	}
	n, err := typ.RowBytes(dims[0])
	if err != nil {
		panic(fmt.Sprintf("gguftest: %v", err))
	}
	for _, d := range dims[1:] {
		n *= d
	}
	return n
}

// Load reads a whole model into memory, data included; a split model becomes
// one without split keys.
func Load(path string) (*Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m := &Model{Version: f.Version}
	for _, key := range f.Metadata.Keys() {
		v, _ := f.Metadata.Value(key)
		m.Metadata = append(m.Metadata, KV{key, v})
	}
	if len(f.Parts) > 1 {
		m.Metadata = slices.DeleteFunc(m.Metadata, func(kv KV) bool { return slices.Contains(splitKeys, kv.Key) })
	}
	for _, t := range f.Tensors {
		data := make([]byte, t.Size)
		if _, err := f.ReadAt(data, t.Offset); err != nil {
			return nil, err
		}
		m.Tensors = append(m.Tensors, Tensor{Name: t.Name, Dims: slices.Clone(t.Dims), Type: t.Type, Data: data})
	}
	return m, nil
}

// Edit writes a changed copy of the model at src to a temporary file of its
// own and returns that file's path. It fails the test where src can't be read.
func Edit(tb testing.TB, src string, change func(*Model)) string {
	tb.Helper()
	m, err := Load(src)
	if err != nil {
		tb.Fatal(err)
	}
	change(m)
	path := filepath.Join(tb.TempDir(), filepath.Base(src))
	if err := m.Write(path); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Set gives a key a value, in its place or else at the end.
func (m *Model) Set(key string, value any) {
	if i := m.index(key); i >= 0 {
		m.Metadata[i].Value = value
		return
	}
	m.Metadata = append(m.Metadata, KV{key, value})
}

// Value returns a key's value and whether the model has it.
func (m *Model) Value(key string) (any, bool) {
	if i := m.index(key); i >= 0 {
		return m.Metadata[i].Value, true
	}
	return nil, false
}

// Drop removes a key. It panics where there is none, since a test that drops
// nothing tests nothing.
func (m *Model) Drop(key string) {
	i := m.index(key)
	if i < 0 {
		panic("gguftest: no key " + key)
	}
	m.Metadata = slices.Delete(m.Metadata, i, i+1)
}

func (m *Model) index(key string) int {
	return slices.IndexFunc(m.Metadata, func(kv KV) bool { return kv.Key == key })
}

// Tensor is the tensor of that name, to be changed in place. It panics where
// there is none.
func (m *Model) Tensor(name string) *Tensor {
	i := slices.IndexFunc(m.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		panic("gguftest: no tensor " + name)
	}
	return &m.Tensors[i]
}

// DropTensor removes a tensor. It panics where there is none.
func (m *Model) DropTensor(name string) {
	m.Tensor(name)
	m.Tensors = slices.DeleteFunc(m.Tensors, func(t Tensor) bool { return t.Name == name })
}

// RenameTensor gives a tensor another name. It panics where there is none.
func (m *Model) RenameTensor(name, to string) { m.Tensor(name).Name = to }

// Reshape gives a tensor another type and shape, and data of the right size:
// the old bytes, cut off or followed by zeros. It panics where ggml knows no
// such tensor.
func (t *Tensor) Reshape(typ ggml.Type, dims ...uint64) {
	data := make([]byte, dataBytes(typ, dims))
	copy(data, t.Data)
	t.Type, t.Dims, t.Data = typ, dims, data
}

// Write writes the model as one file.
func (m *Model) Write(path string) error {
	return os.WriteFile(path, m.Encode(), 0o644)
}
