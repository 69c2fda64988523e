package plugintest

import (
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// File is a GGUF header in the making: what a plugin sees of a file, without the file.
type File struct {
	keys    []string
	values  map[string]any
	tensors []*program.Tensor
	vocab   int
}

// NewFile starts a header for an architecture with a tokenizer of vocab tokens.
func NewFile(architecture string, vocab int) *File {
	f := &File{values: map[string]any{}, vocab: vocab}
	f.Set("general.architecture", architecture)
	return f
}

// Set gives a key a value: int, float64, bool, string, or a slice of one of them.
func (f *File) Set(key string, value any) *File {
	if _, ok := f.values[key]; !ok {
		f.keys = append(f.keys, key)
	}
	f.values[key] = value
	return f
}

// Add appends a tensor; dims have the contiguous one first.
func (f *File) Add(name string, t ggml.Type, dims ...int) *File {
	x := &program.Tensor{Name: name, Type: uint32(t)}
	for _, d := range dims {
		x.Dims = append(x.Dims, uint64(d))
	}
	f.tensors = append(f.tensors, x)
	return f
}

// Drop takes a key or a tensor out again.
func (f *File) Drop(name string) *File {
	f.keys = slices.DeleteFunc(f.keys, func(k string) bool { return k == name })
	delete(f.values, name)
	f.tensors = slices.DeleteFunc(f.tensors, func(x *program.Tensor) bool { return x.Name == name })
	return f
}

// Header is the header as the host would send it.
func (f *File) Header() *program.Header {
	h := &program.Header{Vocab: uint64(f.vocab)}
	for _, k := range f.keys {
		h.Metadata = append(h.Metadata, &program.KeyValue{Key: k, Value: value(f.values[k])})
	}
	for _, t := range f.tensors {
		h.Tensors = append(h.Tensors, &program.Tensor{Name: t.Name, Type: t.Type, Dims: slices.Clone(t.Dims)})
	}
	return h
}

func value(v any) *program.Value {
	switch v := v.(type) {
	case int:
		return &program.Value{Is: &program.Value_Uint{Uint: uint64(v)}}
	case float64:
		return &program.Value{Is: &program.Value_Float{Float: v}}
	case bool:
		return &program.Value{Is: &program.Value_Bool{Bool: v}}
	case string:
		return &program.Value{Is: &program.Value_String_{String_: v}}
	case []int:
		return array(v)
	case []float64:
		return array(v)
	case []bool:
		return array(v)
	case []string:
		return array(v)
	}
	panic(fmt.Sprintf("plugintest: a value of type %T has no place in a header", v))
}

func array[T any](v []T) *program.Value {
	a := &program.Array{}
	for _, x := range v {
		a.Values = append(a.Values, value(x))
	}
	return &program.Value{Is: &program.Value_Array{Array: a}}
}
