package gguf_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/sluicehost/sluice/core/gguf/gguftest"
)

// FuzzRead: any bytes are refused or give a file that keeps its promises, in
// memory bounded by their number.
func FuzzRead(f *testing.F) {
	f.Add([]byte(byHand))
	m := tensors(64)
	m.Metadata = append(m.Metadata, gguftest.Pairs("a", []string{"x", "yz"}, "b", []any{[]bool{true}, []any{}}, "c", "s", "d", 1.5, "e", []int16{1, 2})...)
	f.Add(m.Encode())
	m.Version = 2
	f.Add(m.Encode())
	for _, p := range m.Split(0, 2, 3) {
		f.Add(p.Encode())
	}
	for _, c := range refusals {
		if len(c.file) < 4096 {
			f.Add(c.file)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := allocated()
		file, err := read(b)
		if used := allocated() - before; used > memoryLimit(len(b)) {
			t.Errorf("have %d bytes allocated for %d, want at most %d", used, len(b), memoryLimit(len(b)))
		}
		if err != nil {
			if file != nil {
				t.Error("have a file with an error")
			}
			return
		}
		end := file.Parts[0].HeaderSize
		for i, tensor := range file.Tensors {
			if tensor.Offset < end || tensor.Size <= 0 || tensor.Offset+tensor.Size > file.Size() {
				t.Errorf("tensor %d: have %+v after byte %d of %d", i, tensor, end, file.Size())
			}
			end = tensor.Offset + tensor.Size
			if got, ok := file.Tensor(tensor.Name); !ok || !reflect.DeepEqual(got, tensor) {
				t.Errorf("tensor %d: have %+v by name, want %+v", i, got, tensor)
			}
			if !bytes.Equal(data(t, file, tensor), b[tensor.Offset:end]) {
				t.Errorf("tensor %d: have other data", i)
			}
		}
		for _, key := range file.Metadata.Keys() {
			if v, ok := file.Metadata.Value(key); !ok || v == nil {
				t.Errorf("key %q has no value", key)
			}
		}
	})
}
