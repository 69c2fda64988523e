package store_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

func TestHeader(t *testing.T) {
	m := &gguftest.Model{
		Metadata: gguftest.Pairs(
			"general.architecture", "test",
			"u8", uint8(200), "u16", uint16(60000), "u32", uint32(4000000000), "u64", uint64(1)<<63,
			"i8", int8(-100), "i16", int16(-30000), "i32", int32(-2000000000), "i64", int64(-1)<<63,
			"f32", float32(0.1), "f64", 0.1, "yes", true, "no", false,
			"text", "a\xffb", "empty", "",
			"tokenizer.ggml.tokens", []string{"a", "b", "c"}, "tokenizer.ggml.scores", []float32{1, 2, 3},
			"tokenizer.ggml.token_type", []int32{1, 1, 1}, "tokenizer.ggml.merges", []string{"a b"},
			"tokenizer.ggml.model", "gpt2",
			"u8s", []uint8{1}, "u16s", []uint16{2}, "u32s", []uint32{3}, "u64s", []uint64{4},
			"i8s", []int8{-1}, "i16s", []int16{-2}, "i32s", []int32{-3, 5}, "i64s", []int64{-4},
			"f32s", []float32{0.5}, "f64s", []float64{0.25}, "bools", []bool{true, false}, "texts", []string{"x", "\xfe\xff"},
			"none", []int32{}, "nested", []any{[]int32{1}, []string{"y"}},
		),
		Tensors: []gguftest.Tensor{gguftest.Zeros("w", ggml.Q4_0, 32, 2, 3), gguftest.Zeros("v", ggml.F32, 5)},
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := store.Header(f)
	var want program.Header
	err = prototext.Unmarshal([]byte(`
		metadata { key: "general.architecture" value { string: "test" } }
		metadata { key: "u8" value { uint: 200 } }
		metadata { key: "u16" value { uint: 60000 } }
		metadata { key: "u32" value { uint: 4000000000 } }
		metadata { key: "u64" value { uint: 9223372036854775808 } }
		metadata { key: "i8" value { int: -100 } }
		metadata { key: "i16" value { int: -30000 } }
		metadata { key: "i32" value { int: -2000000000 } }
		metadata { key: "i64" value { int: -9223372036854775808 } }
		metadata { key: "f32" value { float: 0.10000000149011612 } }
		metadata { key: "f64" value { float: 0.1 } }
		metadata { key: "yes" value { bool: true } }
		metadata { key: "no" value { bool: false } }
		metadata { key: "text" value { string: "a\357\277\275b" } }
		metadata { key: "empty" value { string: "" } }
		metadata { key: "tokenizer.ggml.model" value { string: "gpt2" } }
		metadata { key: "u8s" value { array { values { uint: 1 } } } }
		metadata { key: "u16s" value { array { values { uint: 2 } } } }
		metadata { key: "u32s" value { array { values { uint: 3 } } } }
		metadata { key: "u64s" value { array { values { uint: 4 } } } }
		metadata { key: "i8s" value { array { values { int: -1 } } } }
		metadata { key: "i16s" value { array { values { int: -2 } } } }
		metadata { key: "i32s" value { array { values { int: -3 } values { int: 5 } } } }
		metadata { key: "i64s" value { array { values { int: -4 } } } }
		metadata { key: "f32s" value { array { values { float: 0.5 } } } }
		metadata { key: "f64s" value { array { values { float: 0.25 } } } }
		metadata { key: "bools" value { array { values { bool: true } values { bool: false } } } }
		metadata { key: "texts" value { array { values { string: "x" } values { string: "\357\277\275" } } } }
		metadata { key: "none" value { array { } } }
		metadata { key: "nested" value { array { values { array { values { int: 1 } } } values { array { values { string: "y" } } } } } }
		tensors { name: "w" type: 2 dims: [32, 2, 3] }
		tensors { name: "v" dims: [5] }
		vocab: 3`), &want)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(h, &want) {
		t.Errorf("have %v\nwant %v", h, &want)
	}
	if _, err := proto.Marshal(h); err != nil {
		t.Errorf("a plugin can't be sent it: %v", err)
	}
}

// The headers of real files can be sent, and are small.
func TestRealHeaders(t *testing.T) {
	for _, path := range goldenFiles(t) {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := proto.Marshal(store.Header(f))
		if err != nil || len(raw) > 64<<10 {
			t.Errorf("%s: have %d bytes, error %v", path, len(raw), err)
		}
		f.Close()
	}
}

// Rows come in the order asked for, twice if asked twice, also where one is
// longer than the buffers that reads share.
func TestEmbedRows(t *testing.T) {
	r := random(t)
	for _, c := range []struct {
		typ  ggml.Type
		cols uint64
	}{{ggml.Q6_K, 256}, {ggml.F32, 96}, {ggml.BF16, 700000}} {
		o := open(t, write(t, noise(r, "embd", c.typ, c.cols, 7)), 0, everything)
		all := values(t, o.file, &program.Weight{Tensors: []string{"embd"}}, 0, 0)
		ids := []int32{6, 0, 3, 3, 5}
		rows := make([]float32, uint64(len(ids))*c.cols)
		if err := o.EmbedRows(ids, rows); err != nil {
			t.Fatal(err)
		}
		var have, want []float64
		for _, v := range rows {
			have = append(have, float64(v))
		}
		for _, id := range ids {
			want = append(want, all[uint64(id)*c.cols:][:c.cols]...)
		}
		if err := same(have, want); err != nil {
			t.Errorf("%v: %v", c.typ, err)
		}
	}
}

// A divisor has as many values as the rope has pairs; a plain rope has none.
func TestRopeDivisor(t *testing.T) {
	o := small(t)
	all := values(t, o.file, &program.Weight{Tensors: []string{"freqs"}}, 0, 0)
	have, err := o.RopeDivisor(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := same(have, all[:6]); err != nil {
		t.Error(err)
	}
	if have, err := o.RopeDivisor(0); err != nil || !slices.Equal(have, nil) {
		t.Errorf("a plain rope: have %v, %v", have, err)
	}
}
