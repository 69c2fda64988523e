package ggml

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goldenFolder is SLUICE_GOLDEN, by default beside the module. Its absence
// skips the test, but fails it in CI.
func goldenFolder(t *testing.T) string {
	folder := os.Getenv("SLUICE_GOLDEN")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "golden")
	}
	if _, err := os.Stat(folder); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("golden data: %v", err)
		}
		t.Skipf("no golden data (set SLUICE_GOLDEN): %v", err)
	}
	return folder
}

func readFile(t *testing.T, parts ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDequantizeGolden(t *testing.T) {
	folder := filepath.Join(goldenFolder(t), "quant")
	var index map[string]struct {
		ID         Type
		Block      uint64
		Bytes      uint64
		Rows, Cols uint64
	}
	if err := json.Unmarshal(readFile(t, folder, "index.json"), &index); err != nil {
		t.Fatal(err)
	}
	for typ := range kinds {
		if _, ok := index[typ.String()]; !ok && typ != F32 {
			t.Errorf("%v has no golden file", typ)
		}
	}
	for name, want := range index {
		t.Run(name, func(t *testing.T) {
			typ := want.ID
			if typ.String() != name || typ.BlockSize() != want.Block || typ.BlockBytes() != want.Bytes {
				t.Fatalf("have %v, %d values in %d bytes, want %+v", typ, typ.BlockSize(), typ.BlockBytes(), want)
			}
			src, expect := readFile(t, folder, name+".bin"), readFile(t, folder, name+".f32")
			values, rounded := make([]float64, want.Rows*want.Cols), make([]float32, want.Rows*want.Cols)
			if err := Dequantize(typ, values, src); err != nil {
				t.Fatal(err)
			}
			if err := DequantizeF32(typ, rounded, src); err != nil {
				t.Fatal(err)
			}
			for i, v := range values {
				bits := binary.LittleEndian.Uint32(expect[4*i:])
				if have := math.Float32bits(float32(v)); have != bits {
					t.Fatalf("value %d: have %v (%08x), want %v (%08x)", i, v, have, math.Float32frombits(bits), bits)
				}
				if math.Float32bits(rounded[i]) != bits {
					t.Fatalf("DequantizeF32, value %d: have %v, want %v", i, rounded[i], math.Float32frombits(bits))
				}
			}
		})
	}
}

func TestHalf(t *testing.T) {
	for _, c := range []struct {
		bits uint16
		want float64
	}{
		{0x0000, 0}, {0x3c00, 1}, {0xbc00, -1}, {0x0001, 0x1p-24}, {0x03ff, 1023 * 0x1p-24},
		{0x0400, 0x1p-14}, {0x7bff, 65504}, {0x7c00, math.Inf(1)}, {0xfc00, math.Inf(-1)}, {0x3555, 1365 * 0x1p-12},
	} {
		if have := half(c.bits); have != c.want {
			t.Errorf("half(%04x) = %v, want %v", c.bits, have, c.want)
		}
	}
	if !math.IsNaN(half(0x7e00)) || !math.Signbit(half(0x8000)) {
		t.Error("a NaN or the negative zero is lost")
	}
}

// TestReferenceExtremes holds the values that random data seldom meets, worked
// out by hand from ggml's formulas.
func TestReferenceExtremes(t *testing.T) {
	fill := func(n int, b byte, at map[int]byte) []byte {
		block := make([]byte, n)
		for i := range block {
			block[i] = b
		}
		for i, v := range at {
			block[i] = v
		}
		return block
	}
	one := map[int]byte{0: 0x00, 1: 0x3c}
	for _, c := range []struct {
		name  string
		typ   Type
		block []byte
		want  float64
	}{
		{"q8_0 at -128", Q8_0, fill(34, 0x80, one), -128},
		{"q4_0 at 15", Q4_0, fill(18, 0xff, one), 7},
		{"q5_0 at 31", Q5_0, fill(22, 0xff, one), 15},
		{"q4_k at its largest", Q4_K, fill(144, 0xff, map[int]byte{0: 0, 1: 0x3c, 2: 0, 3: 0}), 63 * 15},
		{"q5_k minimum only", Q5_K, fill(176, 0xff, map[int]byte{0: 0, 1: 0, 2: 0, 3: 0x3c}), -63},
		{"q6_k at 63, scale -1", Q6_K, fill(210, 0xff, map[int]byte{208: 0, 209: 0x3c}), -31},
		{"iq4_xs at level 15, scale 31", IQ4_XS, fill(136, 0xff, one), 113 * 31},
		{"mxfp4 smallest exponent", MXFP4, fill(17, 0x77, map[int]byte{0: 0}), 12 * 0x1p-128},
		{"mxfp4 largest exponent", MXFP4, fill(17, 0x77, map[int]byte{0: 255}), 12 * 0x1p127},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst := make([]float64, c.typ.BlockSize())
			if err := Dequantize(c.typ, dst, c.block); err != nil {
				t.Fatal(err)
			}
			for i, v := range dst {
				if v != c.want {
					t.Fatalf("value %d: have %v, want %v", i, v, c.want)
				}
			}
		})
	}
}

func TestDequantizeRefuses(t *testing.T) {
	for _, c := range []struct {
		name          string
		typ           Type
		values, bytes int
		want          string
	}{
		{"unknown type", 999, 32, 32, "type 999"},
		{"no reference", IQ1_S, 256, 50, "IQ1_S"},
		{"part of a block", Q4_K, 32, 18, "256"},
		{"too few bytes", Q8_0, 64, 34, "want 68"},
		{"too many bytes", F32, 1, 8, "want 4"},
		{"bytes for no values", Q4_0, 0, 18, "want 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := make([]byte, c.bytes)
			err := Dequantize(c.typ, make([]float64, c.values), src)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Dequantize: have %v, want an error with %q", err, c.want)
			}
			err = DequantizeF32(c.typ, make([]float32, c.values), src)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("DequantizeF32: have %v, want an error with %q", err, c.want)
			}
		})
	}
}
