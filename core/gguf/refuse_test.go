package gguf_test

import (
	"encoding/binary"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/sdk/ggml"
)

// raw is a metadata value: a type id, then fields of 4 (uint32), 8 (uint64) or
// as many bytes as a string has.
func raw(id uint32, fields ...any) gguftest.Raw {
	var b []byte
	for _, f := range fields {
		switch f := f.(type) {
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, f)
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, f)
		case string:
			b = append(b, f...)
		}
	}
	return gguftest.Raw{Type: id, Bytes: b}
}

func key(k string, v any) []byte {
	m := tensors(0)
	m.Set(k, v)
	return m.Encode()
}

// with encodes the model of tensors() after a change to it.
func with(change func(m *gguftest.Model)) []byte {
	m := tensors(0)
	change(m)
	return m.Encode()
}

func patched(b []byte, at int, s string) []byte {
	copy(b[at:], s)
	return b
}

const arr = 9 // the type id of an array

var refusals = map[string]struct {
	file []byte
	want []string // all in the error
}{
	"empty":            {nil, []string{"have 0 bytes", "at least 24", "download"}},
	"short":            {[]byte("GGUF\x03\x00\x00\x00"), []string{"have 8 bytes", "at least 24"}},
	"not-gguf":         {[]byte("<!DOCTYPE html><html><head>"), []string{`starts with "<!DO"`, `want "GGUF"`}},
	"version-0":        {patched(tensors(0).Encode(), 4, "\x00\x00\x00\x00"), []string{"have GGUF version 0", "want 2 or 3"}},
	"version-1":        {patched(tensors(0).Encode(), 4, "\x01\x00\x00\x00"), []string{"version 1", "convert"}},
	"version-4":        {patched(tensors(0).Encode(), 4, "\x04\x00\x00\x00"), []string{"version 4", "newer version"}},
	"big-endian":       {patched(tensors(0).Encode(), 4, "\x00\x00\x00\x03"), []string{"big-endian", "version 3", "little-endian"}},
	"pairs-2^63":       {claims(0, 1<<63), []string{"count of metadata keys", "want 9223372036854775808 times at least 13", "damaged"}},
	"pairs-2^64-1":     {claims(0, math.MaxUint64), []string{"metadata keys", "18446744073709551615"}},
	"pairs-one-more":   {claims(5, 1), []string{"tensor 0 of 5", "damaged"}},
	"tensors-2^60":     {claims(1<<60, 0), []string{"count of tensors", "1152921504606846976 times at least 24"}},
	"tensors-one-more": {claims(6, 0), []string{"tensor 5 of 6", "have an empty name"}},
	"cut-in-header":    {tensors(0).Encode()[:200], []string{"tensor four", "have 0 bytes left at byte 200", "want 8", "damaged"}},
	"cut-in-data":      {cut(tensors(0).Encode(), 1), []string{"tensor four", "want 48 at byte", "cut off"}},
	"cut-before-data":  {tensors(0).Encode()[:250], []string{"tensor scalar", "have 250 bytes in the file", "want 4 at byte 256"}},

	"key-empty":      {key("", uint8(1)), []string{"key 0 of 1", "have an empty name"}},
	"key-long":       {key(strings.Repeat("k", 65536), uint8(1)), []string{"key 0 of 1", "have a name of 65536 bytes", "at most 65535"}},
	"key-control":    {key("a\nb", uint8(1)), []string{`have the name "a\nb"`, "printable"}},
	"key-not-utf8":   {key("a\xff", uint8(1)), []string{`have the name "a\xff"`, "printable"}},
	"key-length":     {patched(key("abc", uint8(1)), 24, "\xff\xff\xff\xff\xff\xff\xff\xff"), []string{"key 0 of 1", "left at byte 32", "want 18446744073709551615"}},
	"key-twice":      {with(func(m *gguftest.Model) { m.Metadata = gguftest.Pairs("a.b", uint8(1), "a.b", uint8(2)) }), []string{"key a.b", "have it twice"}},
	"type-13":        {key("a", raw(13)), []string{"key a", "have value type 13", "want 0 to 12"}},
	"type-2^32-1":    {key("a", raw(math.MaxUint32)), []string{"key a", "value type 4294967295"}},
	"bool-2":         {key("a", raw(7, "\x02")), []string{"key a", "have a bool of 2", "want 0 or 1"}},
	"string-2^64-1":  {key("a", raw(8, uint64(math.MaxUint64))), []string{"key a", "want 18446744073709551615"}},
	"string-2^40":    {key("a", raw(8, uint64(1<<40))), []string{"key a", "want 1099511627776", "damaged"}},
	"array-type-13":  {key("a", raw(arr, uint32(13), uint64(1))), []string{"key a", "value type 13"}},
	"array-2^60":     {key("a", raw(arr, uint32(4), uint64(1<<60))), []string{"key a", "array of 1152921504606846976 elements", "times at least 4"}},
	"array-2^64-1":   {key("a", raw(arr, uint32(0), uint64(math.MaxUint64))), []string{"key a", "array of 18446744073709551615 elements"}},
	"array-wraps":    {key("a", raw(arr, uint32(12), uint64(1<<61))), []string{"key a", "array of 2305843009213693952"}},
	"strings-2^60":   {key("a", raw(arr, uint32(8), uint64(1<<60))), []string{"key a", "array of 1152921504606846976", "times at least 8"}},
	"strings-in":     {key("a", raw(arr, uint32(8), uint64(2), uint64(1), "x", uint64(1<<50))), []string{"key a", "string 1 of 2", "want 1125899906842624"}},
	"array-bool":     {key("a", raw(arr, uint32(7), uint64(3), "\x00\x01\x07")), []string{"key a", "element 2 of 3", "bool of 7"}},
	"arrays-2^60":    {key("a", raw(arr, uint32(arr), uint64(1<<60))), []string{"key a", "times at least 12"}},
	"arrays-in":      {key("a", raw(arr, uint32(arr), uint64(1), uint32(0), uint64(1<<60))), []string{"key a", "element 0 of 1", "array of 1152921504606846976"}},
	"arrays-deep":    {key("a", deep(5)), []string{"key a", "nested more than 4 deep"}},
	"arrays-deepest": {key("a", deep(1000)), []string{"key a", "nested more than 4 deep"}},

	"alignment-0":      {key("general.alignment", uint32(0)), []string{"general.alignment", "have 0", "power of two"}},
	"alignment-4":      {key("general.alignment", uint32(4)), []string{"general.alignment", "have 4", "at least 8"}},
	"alignment-24":     {key("general.alignment", uint32(24)), []string{"general.alignment", "have 24", "power of two"}},
	"alignment-huge":   {patched(key("general.alignment", uint32(8)), 24+8+17+4, "\x00\x00\x00\x80"), []string{"tensor scalar", "want 4 at byte 2147483648"}},
	"alignment-uint64": {key("general.alignment", uint64(32)), []string{"general.alignment", "have a uint64", "want a uint32"}},

	"tensor-empty-name": {with(func(m *gguftest.Model) { m.RenameTensor("q4", "") }), []string{"tensor 2 of 5", "empty name"}},
	"tensor-long-name":  {with(func(m *gguftest.Model) { m.RenameTensor("q4", strings.Repeat("n", 65)) }), []string{"tensor 2 of 5", "65 bytes", "at most 64"}},
	"tensor-bad-name":   {with(func(m *gguftest.Model) { m.RenameTensor("q4", "a\x1b[2J") }), []string{"tensor 2 of 5", "printable"}},
	"tensor-twice":      {with(func(m *gguftest.Model) { m.RenameTensor("q4", "norm") }), []string{"tensor norm", "have it twice"}},
	"dims-5":            {dims("q4", 1, 1, 1, 1, 1), []string{"tensor q4", "have 5 dimensions", "at most 4"}},
	"dims-zero":         {dims("q4", 512, 0), []string{"tensor q4", "shape [512 0]", "at least 1"}},
	"dims-2^63":         {dims("q4", 1<<62, 2), []string{"tensor q4", "2^63 values"}},
	"dims-wrap":         {dims("q4", 1<<32, 1<<32, 1), []string{"tensor q4", "2^63 values"}},
	"dims-bytes-wrap":   {with(func(m *gguftest.Model) { t := m.Tensor("q4"); t.Dims, t.Type = []uint64{2, 1 << 61}, ggml.F64 }), []string{"tensor q4", "2^63 bytes"}},
	"row-bytes-wrap":    {with(func(m *gguftest.Model) { t := m.Tensor("q4"); t.Dims, t.Type = []uint64{1 << 62}, ggml.F64 }), []string{"tensor q4", "F64", "too long"}},
	"dims-block":        {dims("q4", 255, 3), []string{"tensor q4", "shape [255 3] of type Q4_K", "whole blocks of 256"}},
	"dims-bigger":       {dims("four", 1, 2, 3, 5), []string{"tensor four", "want 60 at byte"}},
	"dims-other":        {dims("q4", 512, 2), []string{"tensor exps", "have offset 928, want 640"}},
	"type-unknown":      {with(func(m *gguftest.Model) { m.Tensor("q4").Type = 9999 }), []string{"tensor q4", "ggml type id 9999", "newer version"}},
	"type-removed":      {with(func(m *gguftest.Model) { m.Tensor("q4").Type = 4 }), []string{"tensor q4", "ggml type id 4"}},
	"offset-gap":        {with(func(m *gguftest.Model) { m.Tensor("q4").Shift = 32 }), []string{"tensor q4", "have offset 96, want 64"}},
	"offset-overlap":    {with(func(m *gguftest.Model) { m.Tensor("exps").Shift = -32 & math.MaxUint64 }), []string{"tensor exps", "have offset 896, want 928"}},
	"offset-unaligned":  {with(func(m *gguftest.Model) { m.Tensor("norm").Shift = 1 }), []string{"tensor norm", "have offset 33, want 32"}},
	"offset-2^63":       {with(func(m *gguftest.Model) { m.Tensor("norm").Shift = 1<<63 - 32 }), []string{"tensor norm", "have offset 9223372036854775808"}},
	"offset-2^64-1":     {with(func(m *gguftest.Model) { m.Tensor("norm").Shift = -33 & math.MaxUint64 }), []string{"tensor norm", "have offset 18446744073709551615"}},
}

// claims encodes tensors() with other counts in its header; 0 is the true one.
func claims(nTensors, nPairs uint64) []byte {
	m := tensors(0)
	if nTensors > 0 {
		m.ClaimTensors = &nTensors
	}
	if nPairs > 0 {
		m.ClaimPairs = &nPairs
	}
	return m.Encode()
}

func cut(b []byte, n int) []byte { return b[:len(b)-n] }

// dims gives a tensor a shape that its data does not have.
func dims(tensor string, d ...uint64) []byte {
	return with(func(m *gguftest.Model) { m.Tensor(tensor).Dims = d })
}

// deep is an array in an array, n deep.
func deep(n int) any {
	v := any([]int8{1})
	for range n - 1 {
		v = []any{v}
	}
	return v
}

func TestRefuse(t *testing.T) {
	for name, c := range refusals {
		t.Run(name, func(t *testing.T) {
			before := allocated()
			_, err := read(c.file)
			if used, limit := allocated()-before, memoryLimit(len(c.file)); used > limit {
				t.Errorf("have %d bytes allocated, want at most %d", used, limit)
			}
			if err == nil {
				t.Fatalf("have no error, want %q", c.want)
			}
			for _, want := range append(c.want, "gguf: test.gguf: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("have %q, want %q in it", err, want)
				}
			}
		})
	}
}

// memoryLimit is what reading a file of n bytes may allocate in all: some
// windows, and a factor of the file, the most for tables of tiny entries.
func memoryLimit(n int) uint64 { return 1<<20 + 64*uint64(n) }

func allocated() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.TotalAlloc
}

// sparse is a file of a header and then zeros, as a hole in a file reads.
type sparse []byte

func (s sparse) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(s)) {
		copy(p, s[off:])
	}
	return len(p), nil
}

var _ io.ReaderAt = sparse(nil)

// A sparse file is large for free: its size must not bound our memory.
func TestRefuseSparse(t *testing.T) {
	one := uint64(1)
	tests := map[string]any{
		"bytes":   raw(arr, uint32(0), uint64(1<<40)),
		"numbers": raw(arr, uint32(10), uint64(1<<30)),
		"strings": raw(arr, uint32(8), uint64(1<<40)),
		"string":  raw(8, uint64(1<<40)),
	}
	for name, v := range tests {
		m := &gguftest.Model{Metadata: gguftest.Pairs("a", v), ClaimPairs: &one}
		before := allocated()
		_, err := gguf.Read(sparse(m.Encode()), 1<<50, "sparse.gguf")
		if used := allocated() - before; used > memoryLimit(0) {
			t.Errorf("%s: have %d bytes allocated, want at most %d", name, used, memoryLimit(0))
		}
		if err == nil || !strings.Contains(err.Error(), "key a: ") || !strings.Contains(err.Error(), "256 MiB") {
			t.Errorf("%s: have %v, want a header of at most 256 MiB", name, err)
		}
	}
}

// Every prefix of a file is refused, or is the whole but for the last padding.
func TestRefuseTruncated(t *testing.T) {
	m := tensors(0)
	m.Metadata = gguftest.Pairs("a", []string{"x", "y"}, "b", []any{[]bool{true}}, "c", "s")
	b := m.Encode()
	for n := range b {
		if _, err := read(b[:n]); err == nil {
			t.Errorf("have no error for the first %d of %d bytes", n, len(b))
		}
	}
}
