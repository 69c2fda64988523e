package gguftest_test

import (
	"bytes"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/sdk/ggml"
)

func model() *gguftest.Model {
	return &gguftest.Model{
		Version:  2,
		Metadata: gguftest.Pairs("a", "x", "b", []int32{1, 2}, "general.alignment", uint32(64)),
		Tensors:  []gguftest.Tensor{gguftest.Zeros("w", ggml.Q8_0, 64, 2), gguftest.Zeros("v", ggml.F32, 3), gguftest.Zeros("u", ggml.F32, 1)},
	}
}

func write(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := model().Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	m, err := gguftest.Load(write(t))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m, model()) {
		t.Errorf("have %+v, want %+v", m, model())
	}
	if _, err := gguftest.Load("absent.gguf"); err == nil {
		t.Error("have no error for an absent file")
	}
}

func TestLoadSplit(t *testing.T) {
	paths, err := gguftest.WriteParts(t.TempDir(), "m", model().Split(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	m, err := gguftest.Load(paths[1])
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m, model()) {
		t.Errorf("have %+v, want %+v", m, model())
	}
}

func TestEdit(t *testing.T) {
	src := write(t)
	path := gguftest.Edit(t, src, func(m *gguftest.Model) {
		m.Set("a", "y")
		m.Set("c", true)
		m.Drop("b")
		m.DropTensor("u")
		m.RenameTensor("v", "renamed")
		m.Tensor("w").Reshape(ggml.F16, 5, 3)
	})
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if keys := f.Metadata.Keys(); !reflect.DeepEqual(keys, []string{"a", "general.alignment", "c"}) {
		t.Errorf("have keys %q", keys)
	}
	if v, _ := f.Metadata.Value("a"); v != "y" {
		t.Errorf("have a = %v, want y", v)
	}
	w, _ := f.Tensor("w")
	if w.Type != ggml.F16 || !reflect.DeepEqual(w.Dims, []uint64{5, 3}) || w.Size != 30 {
		t.Errorf("have %+v, want F16 [5 3] of 30 bytes", w)
	}
	if _, ok := f.Tensor("renamed"); !ok || len(f.Tensors) != 2 {
		t.Errorf("have tensors %+v", f.Tensors)
	}
	if m, err := gguftest.Load(src); err != nil || !bytes.Equal(m.Encode(), model().Encode()) {
		t.Errorf("the source changed: %v", err)
	}
}

func TestPanics(t *testing.T) {
	for name, f := range map[string]func(*gguftest.Model){
		"drop":          func(m *gguftest.Model) { m.Drop("absent") },
		"drop-tensor":   func(m *gguftest.Model) { m.DropTensor("absent") },
		"rename-tensor": func(m *gguftest.Model) { m.RenameTensor("absent", "x") },
		"split":         func(m *gguftest.Model) { m.Split(1, 1) },
		"int":           func(m *gguftest.Model) { m.Set("a", 1); m.Encode() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: have no panic", name)
				}
			}()
			f(model())
		}()
	}
}
