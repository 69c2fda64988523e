package gguf_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
)

// realFiles are the GGUF files in the golden folder and the shipped models.
func realFiles(t testing.TB) []string {
	t.Helper()
	golden := os.Getenv("SLUICE_GOLDEN")
	if golden == "" {
		golden = "../../../shared/golden"
	}
	var files []string
	for _, pattern := range []string{filepath.Join(golden, "*", "*.gguf"), "../../testdata/models/*.gguf"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 && os.Getenv("CI") == "true" {
			t.Fatalf("no file matches %s: set SLUICE_GOLDEN, check out testdata", pattern)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Skip("neither SLUICE_GOLDEN nor testdata/models has GGUF files")
	}
	return files
}

// Real files were written by llama.cpp or gguf-py: reading one and writing it
// again must give the same bytes, but for the padding after the last tensor.
func TestRealFiles(t *testing.T) {
	for _, path := range realFiles(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			f := open(t, path)
			last := f.Tensors[len(f.Tensors)-1]
			if rest := f.Size() - last.Offset - last.Size; rest < 0 || rest >= 32 {
				t.Errorf("have %d bytes after the last tensor, want padding to 32", rest)
			}
			arch, _ := f.Metadata.Value("general.architecture")
			vocab, _ := f.Metadata.Value("tokenizer.ggml.tokens")
			embd, _ := f.Tensor("token_embd.weight")
			if n, ok := vocab.([]string); !ok || len(embd.Dims) != 2 || embd.Dims[1] != uint64(len(n)) {
				t.Errorf("%v: have %d tokens, token_embd.weight %v", arch, len(n), embd.Dims)
			}
			m, err := gguftest.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if have := m.Encode(); !bytes.Equal(have, want[:last.Offset+last.Size]) {
				t.Error("have other bytes after reading and writing")
			}
		})
	}
}

// A real model in three parts has the same tensors and bytes as the whole.
func TestRealFileSplit(t *testing.T) {
	path := realFiles(t)[0]
	m, err := gguftest.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	n := len(m.Tensors)
	paths := writeParts(t, m.Split(0, n/2, n-n/2))
	whole, parts := open(t, path), open(t, paths[1])
	if len(parts.Tensors) != n || len(parts.Metadata.Keys()) != len(whole.Metadata.Keys())+3 {
		t.Fatalf("have %d tensors, %d keys", len(parts.Tensors), len(parts.Metadata.Keys()))
	}
	for i, w := range whole.Tensors {
		p := parts.Tensors[i]
		if p.Name != w.Name || p.Size != w.Size || !bytes.Equal(data(t, parts, p), data(t, whole, w)) {
			t.Errorf("tensor %s: have %+v, want %+v and the same data", w.Name, p, w)
		}
	}
}

func data(t *testing.T, f *gguf.File, tensor gguf.Tensor) []byte {
	t.Helper()
	b := make([]byte, tensor.Size)
	if _, err := f.ReadAt(b, tensor.Offset); err != nil {
		t.Fatal(err)
	}
	return b
}
