package gguf_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/sdk/ggml"
)

// read parses bytes as the file named test.gguf.
func read(b []byte) (*gguf.File, error) {
	return gguf.Read(bytes.NewReader(b), int64(len(b)), "test.gguf")
}

func mustRead(t *testing.T, b []byte) *gguf.File {
	t.Helper()
	f, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// byHand is a file written out from the format's description, independent of
// the package's own writer: one key, one F32 tensor of 3 values.
const byHand = "GGUF" + "\x03\x00\x00\x00" +
	"\x01\x00\x00\x00\x00\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" +
	"\x14\x00\x00\x00\x00\x00\x00\x00general.architecture" + "\x08\x00\x00\x00" + "\x03\x00\x00\x00\x00\x00\x00\x00abc" +
	"\x01\x00\x00\x00\x00\x00\x00\x00w" + "\x01\x00\x00\x00" + "\x03\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + // type, offset: the header ends at byte 100
	"~~~~~~~~~~~~~~~~~~~~~~~~~~~~" + // to 128
	"\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40"

func TestReadByHand(t *testing.T) {
	f := mustRead(t, []byte(byHand))
	if v, _ := f.Metadata.Value("general.architecture"); v != "abc" || f.Version != 3 {
		t.Errorf("have architecture %v, version %d, want abc, 3", v, f.Version)
	}
	want := gguf.Tensor{Name: "w", Dims: []uint64{3}, Type: ggml.F32, Offset: 128, Size: 12}
	if have, ok := f.Tensor("w"); !ok || !reflect.DeepEqual(have, want) || len(f.Tensors) != 1 {
		t.Errorf("have %+v, want %+v", have, want)
	}
	if p := f.Parts[0]; p.Name != "test.gguf" || p.HeaderSize != 100 || p.Offset != 0 || p.Size != 140 || f.Size() != 140 {
		t.Errorf("have part %+v of %d bytes", p, f.Size())
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// allValues has one value of every type, at both ends of its range.
func allValues() []gguftest.KV {
	long := strings.Repeat("long as a chat template ", 20_000) // over several windows
	return gguftest.Pairs(
		"u8", uint8(255), "i8", int8(-128), "u16", uint16(65535), "i16", int16(-32768),
		"u32", uint32(math.MaxUint32), "i32", int32(math.MinInt32),
		"u64", uint64(math.MaxUint64), "i64", int64(math.MinInt64),
		"f32", float32(-1.5), "f64", math.Pi, "f32.inf", float32(math.Inf(-1)),
		"yes", true, "no", false, "s", "héllo", "s.empty", "", "s.bytes", "\x00\xff", "s.long", long,
		"au8", []uint8{0, 255}, "ai8", []int8{-128, 127}, "au16", []uint16{1, 65535}, "ai16", []int16{-1, 2},
		"au32", []uint32{1, math.MaxUint32}, "ai32", []int32{-1, 7},
		"au64", []uint64{1, math.MaxUint64}, "ai64", []int64{-1, 7},
		"af32", []float32{0.5, -0.25}, "af64", []float64{0.1, -0.2}, "abool", []bool{true, false, true},
		"as", []string{"", "a", "", "long" + long, "\xff"}, "as.empty", []string{}, "ai32.empty", []int32{},
		"aa", []any{[]int32{1, 2}, []string{"x"}, []any{[]bool{true}, []uint8{}}}, "aa.empty", []any{},
		"ai32.windows", slices.Repeat([]int32{1, 2, 3}, 50_000),
	)
}

func TestMetadata(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		m := &gguftest.Model{Version: version, Metadata: allValues()}
		f := mustRead(t, m.Encode())
		if f.Version != version {
			t.Errorf("have version %d, want %d", f.Version, version)
		}
		keys := f.Metadata.Keys()
		if len(keys) != len(m.Metadata) {
			t.Fatalf("have %d keys, want %d", len(keys), len(m.Metadata))
		}
		for i, kv := range m.Metadata {
			have, ok := f.Metadata.Value(kv.Key)
			if keys[i] != kv.Key || !ok || !reflect.DeepEqual(have, kv.Value) {
				t.Errorf("key %d: have %s = %.60v, want %s = %.60v", i, keys[i], have, kv.Key, kv.Value)
			}
		}
		if v, ok := f.Metadata.Value("absent"); ok || v != nil {
			t.Errorf("have %v for an absent key", v)
		}
	}
}

// tensors is a model whose tensors have 0 to 4 dimensions and need padding.
func tensors(align uint32) *gguftest.Model {
	m := &gguftest.Model{Tensors: []gguftest.Tensor{
		gguftest.Zeros("scalar", ggml.F32),
		gguftest.Zeros("norm", ggml.F32, 5),
		gguftest.Zeros("q4", ggml.Q4_K, 512, 3),
		gguftest.Zeros("exps", ggml.Q8_0, 32, 3, 2),
		gguftest.Zeros("four", ggml.F16, 1, 2, 3, 4),
	}}
	for i := range m.Tensors {
		for j := range m.Tensors[i].Data {
			m.Tensors[i].Data[j] = byte(10*i + j)
		}
	}
	if align > 0 {
		m.Set("general.alignment", align)
	}
	return m
}

func TestTensors(t *testing.T) {
	for _, align := range []uint32{0, 8, 32, 64, 4096} {
		m := tensors(align)
		f := mustRead(t, m.Encode())
		at := int64(0)
		for i, want := range m.Tensors {
			have, ok := f.Tensor(want.Name)
			dims := want.Dims
			if len(dims) == 0 {
				dims = []uint64{1}
			}
			if !ok || !reflect.DeepEqual(have, f.Tensors[i]) || !slices.Equal(have.Dims, dims) || have.Type != want.Type {
				t.Errorf("align %d: have %+v, want %s %v %v", align, have, want.Name, want.Type, want.Dims)
			}
			if a := int64(max(align, 8)); have.Offset%a != 0 || have.Offset < at || have.Offset < f.Parts[0].HeaderSize {
				t.Errorf("align %d: tensor %s: have offset %d after %d", align, have.Name, have.Offset, at)
			}
			at = have.Offset + have.Size
			data := make([]byte, have.Size)
			if _, err := f.ReadAt(data, have.Offset); err != nil || !bytes.Equal(data, want.Data) {
				t.Errorf("align %d: tensor %s: have data %v, error %v, want %v", align, have.Name, data, err, want.Data)
			}
		}
		if _, ok := f.Tensor("absent"); ok {
			t.Error("have an absent tensor")
		}
	}
}

func TestNoTensors(t *testing.T) {
	m := &gguftest.Model{Metadata: gguftest.Pairs("k", uint8(1))} // ends off any alignment
	if f := mustRead(t, m.Encode()); len(f.Tensors) != 0 {
		t.Errorf("have %d tensors, want none", len(f.Tensors))
	}
	if f := mustRead(t, (&gguftest.Model{}).Encode()); f.Size() != 24 || len(f.Metadata.Keys()) != 0 {
		t.Errorf("have %d bytes, %d keys", f.Size(), len(f.Metadata.Keys()))
	}
}

func TestReadAt(t *testing.T) {
	b := tensors(0).Encode()
	f := mustRead(t, b)
	size := int64(len(b))
	tests := map[string]struct {
		off, n int64
		want   int
		err    error
	}{
		"all":         {0, size, int(size), nil},
		"end":         {size - 3, 3, 3, nil},
		"past-end":    {size - 3, 5, 3, io.EOF},
		"at-end":      {size, 1, 0, io.EOF},
		"far":         {math.MaxInt64, 1, 0, io.EOF},
		"nothing":     {size + 5, 0, 0, nil},
		"before-zero": {-1, 1, 0, errors.New("any")},
	}
	for name, c := range tests {
		p := make([]byte, c.n)
		n, err := f.ReadAt(p, c.off)
		if n != c.want || (err == nil) != (c.err == nil) || (c.err == io.EOF && err != io.EOF) {
			t.Errorf("%s: have %d, %v, want %d, %v", name, n, err, c.want, c.err)
		}
		if n > 0 && !bytes.Equal(p[:n], b[c.off:c.off+int64(n)]) {
			t.Errorf("%s: have other bytes", name)
		}
	}
}

// countingReader counts what is read of b and fails from byte bad on.
type countingReader struct {
	b     []byte
	bad   int64
	bytes int64
}

var errDisk = errors.New("disk on fire")

func (r *countingReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > r.bad {
		return 0, errDisk
	}
	n := copy(p, r.b[off:])
	r.bytes += int64(n)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestReadsHeaderOnly(t *testing.T) {
	m := &gguftest.Model{Metadata: allValues(), Tensors: []gguftest.Tensor{gguftest.Zeros("big", ggml.F32, 4<<20)}}
	r := &countingReader{b: m.Encode(), bad: math.MaxInt64}
	f, err := gguf.Read(r, int64(len(r.b)), "test.gguf")
	if err != nil {
		t.Fatal(err)
	}
	if limit := f.Parts[0].HeaderSize + 128<<10; r.bytes > limit {
		t.Errorf("have %d bytes read, want at most %d of %d", r.bytes, limit, len(r.b))
	}
}

func TestReadErrors(t *testing.T) {
	m := &gguftest.Model{Metadata: allValues(), Tensors: []gguftest.Tensor{gguftest.Zeros("w", ggml.F32, 100_000)}}
	b := m.Encode()
	r := &countingReader{b: b, bad: 200_000}
	if _, err := gguf.Read(r, int64(len(b)), "m.gguf"); !errors.Is(err, errDisk) || !strings.HasPrefix(err.Error(), "gguf: m.gguf: key s.long: ") {
		t.Errorf("have %v, want the disk's error at key s.long", err)
	}
	r = &countingReader{b: b[:len(b)-100], bad: math.MaxInt64} // shrinks after its size was taken
	f, err := gguf.Read(r, int64(len(b)), "m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	w, _ := f.Tensor("w")
	if n, err := f.ReadAt(make([]byte, w.Size), w.Offset); n != 399_900 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("have %d, %v, want 399900, unexpected EOF", n, err)
	}
	r = &countingReader{b: b[:1000], bad: math.MaxInt64}
	if _, err := gguf.Read(r, int64(len(b)), "m.gguf"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("have %v, want unexpected EOF", err)
	}
}
