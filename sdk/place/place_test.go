package place_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/place"
	"github.com/sluicehost/sluice/sdk/program"
)

// header is a file of these tensors.
func header(tensors ...*program.Tensor) *program.Header { return &program.Header{Tensors: tensors} }

func tensor(name string, t ggml.Type, dims ...uint64) *program.Tensor {
	return &program.Tensor{Name: name, Type: uint32(t), Dims: dims}
}

func matrix(name string, tensors ...string) *program.Weight {
	return &program.Weight{Name: name, Tensors: tensors}
}

func vector(name string, tensors ...string) *program.Weight {
	return &program.Weight{Name: name, Tensors: tensors, Use: program.Use_VECTOR}
}

// show writes a placed weight shortly: rows x cols, then each band.
func show(p *program.Placed) string {
	s := fmt.Sprintf("%dx%d", p.Rows, p.Cols)
	for _, b := range p.Bands {
		s += fmt.Sprintf(" | %v %d+%d %dB %v", ggml.Type(b.Type), b.Row0, b.Rows, b.Bytes, b.Planes)
	}
	return s
}

var file = header(
	tensor("q", ggml.Q4_0, 64, 6), tensor("k", ggml.Q4_0, 64, 2), tensor("v", ggml.Q6_K, 256, 3),
	tensor("wide", ggml.Q4_0, 256, 2), tensor("three", ggml.F16, 32, 3, 5), tensor("tiny", ggml.Q4_0, 32, 1),
	tensor("norm", ggml.F32, 7), tensor("taps", ggml.F16, 3, 5), tensor("ints", ggml.I32, 64),
	tensor("odd", ggml.Q4_0, 96, 4), tensor("kodd", ggml.F32, 96, 4), tensor("crooked", ggml.F32, 40, 4),
	tensor("gate", ggml.Q4_0, 64, 3, 8), tensor("up", ggml.Q4_0, 64, 3, 8), tensor("wideup", ggml.F16, 64, 1, 8),
	tensor("down", ggml.Q8_0, 32, 5, 8), tensor("exps4", ggml.Q8_0, 32, 5, 4),
)

func TestWeights(t *testing.T) {
	for _, c := range []struct {
		name string
		w    *program.Weight
		max  uint64
		want string
	}{
		// Q4_0: 2 units a row, 16 bytes of nibbles and 2 of scale each.
		{"one tensor", matrix("w", "q"), 0, "6x64 | Q4_0 0+6 224B [0 12]"},
		{"neighbours merge", matrix("w", "q", "k"), 0, "8x64 | Q4_0 0+8 288B [0 16]"},
		{"types part", matrix("w", "q", "k", "q"), 1 << 20, "14x64 | Q4_0 0+14 512B [0 28]"},
		{"unlike types", matrix("w", "odd", "kodd", "odd"), 0,
			"12x96 | Q4_0 0+4 224B [0 12] | F32 4+4 1536B [0] | Q4_0 8+4 224B [0 12]"},
		{"superblocks", matrix("w", "v"), 0, "3x256 | Q6_K 0+3 640B [0 24 36 39]"},
		{"as large as the binding", matrix("w", "q", "k"), 288, "8x64 | Q4_0 0+8 288B [0 16]"},
		{"a byte too large", matrix("w", "q", "k"), 287, "8x64 | Q4_0 0+7 256B [0 14] | Q4_0 7+1 48B [0 2]"},
		{"cut inside tensors", matrix("w", "q", "k"), 130,
			"8x64 | Q4_0 0+3 112B [0 6] | Q4_0 3+3 112B [0 6] | Q4_0 6+2 80B [0 4]"},
		{"a row a band", matrix("w", "k"), 48, "2x64 | Q4_0 0+1 48B [0 2] | Q4_0 1+1 48B [0 2]"},
		{"3-D is rows", matrix("w", "three"), 0, "15x32 | F16 0+15 960B [0]"},
		{"smallest", matrix("w", "tiny"), 0, "1x32 | Q4_0 0+1 32B [0 1]"},
		{"vector", vector("w", "norm"), 0, "1x7 | F32 0+1 32B [0]"},
		{"vector of halves", vector("w", "taps", "norm"), 0, "1x22 | F32 0+1 96B [0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			placed, err := place.Weights(file, &program.Plan{Weights: []*program.Weight{c.w}}, c.max)
			if err != nil {
				t.Fatal(err)
			}
			if have := show(placed[0]); have != c.want || placed[0].Name != "w" {
				t.Errorf("have %s %s\nwant w %s", placed[0].Name, have, c.want)
			}
		})
	}
}

func TestWeightsRefused(t *testing.T) {
	long := header(tensor("q", ggml.Q4_0, 64, 1<<40), tensor("huge", ggml.F32, 1<<33, 1<<33), tensor("flat", ggml.F32, 1<<32, 1<<28))
	for _, c := range []struct {
		name string
		h    *program.Header
		w    *program.Weight
		max  uint64
		want string
	}{
		{"missing", file, matrix("w", "q", "nope"), 0, `place: weight "w": tensor "nope" is not in the file`},
		{"no tensors", file, matrix("w"), 0, `place: weight "w": have no tensors`},
		{"no vector tensors", file, vector("w"), 0, `place: weight "w": have no tensors`},
		{"type", file, matrix("w", "ints"), 0, "tensor ints: have type I32, want one of F32, F16"},
		{"cols", file, matrix("w", "q", "wide"), 0, "tensor wide: have rows of 256 values, want 64"},
		{"crooked", file, matrix("w", "crooked"), 0, "tensor crooked: ggml: F32: have rows of 40 values"},
		{"row over the binding", file, matrix("w", "q"), 47, "tensor q: have rows of 48 bytes on the GPU, want at most 47"},
		{"vector over the binding", file, vector("w", "norm"), 31, "have a VECTOR of 32 bytes, want at most 31"},
		{"vector type", file, vector("w", "q"), 0, "tensor q: have a VECTOR of Q4_0"},
		{"too many bands", long, matrix("w", "q"), 48, "have more bands of at most 48 bytes"},
		{"planes past 64 GiB", long, matrix("w", "q"), 0, "have a plane at byte 35184372088832, want at most 64 GiB"},
		{"overflow", long, matrix("w", "huge"), 0, "tensor huge: have shape [8589934592 8589934592]"},
		{"overflowing stack", long, vector("w", "flat", "flat", "flat"), 0, "have a stack of 2^61 values or more"},
		{"shape", header(tensor("q", ggml.F32)), matrix("w", "q"), 0, "tensor q: have shape [], want 1 to 4 dims"},
		{"empty", header(tensor("q", ggml.F32, 32, 0)), matrix("w", "q"), 0, "tensor q: have shape [32 0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := place.Weights(c.h, &program.Plan{Weights: []*program.Weight{c.w}}, c.max)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have error %v\nwant %s", err, c.want)
			}
		})
	}
}

// plan is one of a single layer, number 2, of 8 experts with 3 used.
func plan(parts ...*program.Weight) *program.Plan {
	return &program.Plan{Model: &program.Model{Experts: 8, TopK: 3}, Records: []*program.Record{{Layer: 2, Parts: parts}}}
}

func TestRecords(t *testing.T) {
	p := plan(matrix("gu", "gate", "up", "wideup"), matrix("d", "down"), matrix("g", "gate"))
	placed, err := place.Records(file, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := placed[0]
	want := []string{
		// 6 rows of Q4_0 are 192 + 32 bytes, then a row of F16, 128.
		"7x64 | Q4_0 0+6 224B [0 12] | F16 6+1 128B [14]",
		"5x32 | Q8_0 0+5 176B [22 32]", // 160 + 16 from byte 352 on
		"3x64 | Q4_0 0+3 112B [33 39]", // 96 + 16 from byte 528 on
	}
	if len(r.Parts) != len(want) || r.Layer != 2 {
		t.Fatalf("have layer %d with %d parts", r.Layer, len(r.Parts))
	}
	for i, w := range want {
		if have := show(r.Parts[i]); have != w {
			t.Errorf("part %d: have %s\nwant %s", i, have, w)
		}
	}
	if r.Stride != 768 { // 640 bytes
		t.Errorf("have stride %d, want 768", r.Stride)
	}
	if _, err := place.Records(file, p, 3*768); err != nil {
		t.Errorf("three records fit the binding: %v", err)
	}
	if _, err := place.Records(file, p, 3*768-1); err == nil || !strings.Contains(err.Error(),
		"place: record of layer 2: have 768 bytes an expert and 3 experts a token, want both within 2303 bytes") {
		t.Errorf("three records don't fit the binding: have error %v", err)
	}
}

func TestRecordsRefused(t *testing.T) {
	none := plan(matrix("g", "gate"))
	none.Model.Experts = 0
	for _, c := range []struct {
		name string
		p    *program.Plan
		want string
	}{
		{"no experts", none, "place: record of layer 2: have 0 experts"},
		{"no parts", plan(), "have no parts"},
		{"a vector", plan(vector("g", "gate")), `part "g": have use VECTOR, want MATRIX`},
		{"2-D", plan(matrix("g", "q")), `part "g": tensor q: have shape [64 6], want 3 dims, the last of 8 experts`},
		{"other experts", plan(matrix("d", "exps4")), "tensor exps4: have shape [32 5 4]"},
		{"missing", plan(matrix("d", "nope")), `tensor "nope" is not in the file`},
		{"cols", plan(matrix("d", "gate", "down")), "tensor down: have rows of 32 values, want 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := place.Records(file, c.p, 0)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have error %v\nwant %s", err, c.want)
			}
		})
	}
}
