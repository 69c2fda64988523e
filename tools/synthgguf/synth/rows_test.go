package synth

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// freshSeed is another one each time, and printed.
func freshSeed(t *testing.T) uint64 {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

var matrixTypes = []ggml.Type{ggml.Q4_0, ggml.Q5_0, ggml.Q8_0, ggml.Q4_K, ggml.Q5_K, ggml.Q6_K}

func dequantized(t *testing.T, typ ggml.Type, data []byte) []float64 {
	t.Helper()
	out := make([]float64, uint64(len(data))/typ.BlockBytes()*typ.BlockSize())
	if err := ggml.Dequantize(typ, out, data); err != nil {
		t.Fatal(err)
	}
	return out
}

func moments(values []float64) (mean, rms, most float64) {
	for _, v := range values {
		mean += v
		rms += v * v
		most = max(most, math.Abs(v))
	}
	n := float64(len(values))
	return mean / n, math.Sqrt(rms / n), most
}

func TestRandomRows(t *testing.T) {
	seed := freshSeed(t)
	for _, typ := range matrixTypes {
		for _, want := range []float64{0, 0.001, 0.02, 1} {
			t.Run(fmt.Sprint(typ, " ", want), func(t *testing.T) {
				const cols, rows = 2048, 64
				size, _ := typ.RowBytes(cols)
				data := make([]byte, rows*size)
				fill(typ, data, &stream{seed}, newScales(typ, want))
				mean, rms, most := moments(dequantized(t, typ, data))
				if math.Abs(rms-want) > 0.03*want {
					t.Errorf("have root mean square %g, want %g", rms, want)
				}
				// A mean adds up over a row: it must stay small beside the row's root.
				if math.Abs(mean)*math.Sqrt(cols) > 0.5*want {
					t.Errorf("have mean %g, want it below %g/sqrt(%d)", mean, want/2, cols)
				}
				if most > 4*want {
					t.Errorf("have a value of size %g, want at most 4 times the root mean square", most)
				}
			})
		}
	}
}

// Every byte of a row is written, whatever was in the buffer.
func TestRowsAreWritten(t *testing.T) {
	seed := freshSeed(t)
	for _, typ := range matrixTypes {
		size, _ := typ.RowBytes(2048)
		a, b := make([]byte, size), make([]byte, size)
		for i := range b {
			b[i] = 0xff
		}
		s := newScales(typ, 1)
		fill(typ, a, &stream{seed}, s)
		fill(typ, b, &stream{seed}, s)
		if string(a) != string(b) {
			t.Errorf("%v: a row depends on what was in the buffer", typ)
		}
	}
}

func TestCodes(t *testing.T) {
	seed := freshSeed(t)
	c := signs(seed).plus(signs(seed + 1))
	for _, typ := range matrixTypes {
		if !codeType(typ) {
			continue
		}
		for _, unit := range []float64{1, 0.0189} {
			size, _ := typ.RowBytes(codeWidth)
			data := make([]byte, size)
			c.pack(typ, data, unit)
			for i, v := range dequantized(t, typ, data) {
				if want := float64(c[i]) * unit; math.Abs(v-want) > 0.01*unit {
					t.Fatalf("%v, unit %g: value %d: have %g, want %g", typ, unit, i, v, want)
				}
			}
		}
	}
}

func TestF16(t *testing.T) {
	for want, v := range map[uint16]float64{0: 0, 0x3c00: 1, 0xbc00: -1, 0x4248: 3.140625, 1: 0x1p-24, 0x03ff: 1023 * 0x1p-24, 0x0400: 0x1p-14, 0x7bff: 65504, 0x8001: -0x1p-24} {
		if have := f16(v); have != want {
			t.Errorf("f16(%g): have %#x, want %#x", v, have, want)
		}
	}
}

func TestGauss(t *testing.T) {
	r := stream{freshSeed(t)}
	values := make([]float64, 1<<17)
	for i := range values {
		values[i] = r.gauss()
	}
	if mean, rms, _ := moments(values); math.Abs(mean) > 0.02 || math.Abs(rms-1) > 0.02 {
		t.Errorf("have mean %g and root mean square %g, want 0 and 1", mean, rms)
	}
}

func BenchmarkFill(b *testing.B) {
	for _, typ := range matrixTypes {
		b.Run(typ.String(), func(b *testing.B) {
			size, _ := typ.RowBytes(2048)
			row := make([]byte, size)
			s := newScales(typ, 0.02)
			b.SetBytes(int64(size))
			for i := range b.N {
				fill(typ, row, &stream{uint64(i)}, s)
			}
		})
	}
}
