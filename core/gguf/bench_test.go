package gguf_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/sdk/ggml"
)

// bigVocab is a header as the largest models have it: 262,144 tokens with
// scores and types, 514,906 merges, 660 tensors.
func bigVocab() *gguftest.Model {
	const nTokens, nMerges = 262_144, 514_906
	tokens, scores, types := make([]string, nTokens), make([]float32, nTokens), make([]int32, nTokens)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("▁t%x", i*2654435761%(1<<28))
		scores[i], types[i] = -float32(i), 1
	}
	merges := make([]string, nMerges)
	for i := range merges {
		merges[i] = tokens[i%nTokens] + " " + tokens[i*7%nTokens][:4]
	}
	m := &gguftest.Model{Metadata: gguftest.Pairs("general.architecture", "big", "tokenizer.ggml.tokens", tokens,
		"tokenizer.ggml.scores", scores, "tokenizer.ggml.token_type", types, "tokenizer.ggml.merges", merges)}
	for i := range 660 {
		m.Tensors = append(m.Tensors, gguftest.Zeros(fmt.Sprintf("blk.%d.weight", i), ggml.F32, 32))
	}
	return m
}

// BenchmarkOpen260k opens a file with a vocabulary of 260k tokens.
func BenchmarkOpen260k(b *testing.B) {
	path := filepath.Join(b.TempDir(), "big.gguf")
	if err := bigVocab().Write(path); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f, err := gguf.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(f.Parts[0].HeaderSize)
		f.Close()
	}
}

// All of a large vocabulary comes through, and not as a string of its own for
// each of its 800k entries.
func TestBigVocab(t *testing.T) {
	m := bigVocab()
	file := m.Encode()
	r := bytes.NewReader(file)
	var f *gguf.File
	n := testing.AllocsPerRun(1, func() {
		var err error
		if f, err = gguf.Read(r, int64(len(file)), "big.gguf"); err != nil {
			t.Fatal(err)
		}
	})
	if n > 10_000 {
		t.Errorf("have %.0f allocations, want at most 10000", n)
	}
	for _, kv := range m.Metadata {
		if have, _ := f.Metadata.Value(kv.Key); !reflect.DeepEqual(have, kv.Value) {
			t.Errorf("key %s: have other values", kv.Key)
		}
	}
}
