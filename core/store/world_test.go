package store_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/place"
	"github.com/sluicehost/sluice/sdk/program"
)

// goldenFiles are the GGUF files of the golden folder and of testdata.
func goldenFiles(t testing.TB) []string {
	t.Helper()
	golden := cmp.Or(os.Getenv("SLUICE_GOLDEN"), "../../../shared/golden")
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

// random is a generator whose seed the test prints where it fails.
func random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// noise is a tensor of random bytes, so of any scale, infinities and NaN included.
func noise(r *rand.Rand, name string, typ ggml.Type, dims ...uint64) gguftest.Tensor {
	x := gguftest.Zeros(name, typ, dims...)
	for i := 0; i+8 <= len(x.Data); i += 8 {
		binary.LittleEndian.PutUint64(x.Data[i:], r.Uint64())
	}
	for i := len(x.Data) &^ 7; i < len(x.Data); i++ {
		x.Data[i] = byte(r.Uint32())
	}
	return x
}

// write writes a model of these tensors and returns its path.
func write(t testing.TB, tensors ...gguftest.Tensor) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	m := &gguftest.Model{Metadata: gguftest.Pairs("general.architecture", "test"), Tensors: tensors}
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// opened is a source with what it was made from.
type opened struct {
	*store.GGUF
	file    *gguf.File
	plan    *program.Plan
	weights []*program.Placed
	records []*program.PlacedRecord
	tensors *program.TensorSource
}

// open opens a file and places a plan of it.
func open(t testing.TB, path string, maxBinding uint64, planOf func(*gguf.File) *program.Plan) *opened {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	o := &opened{file: f, plan: planOf(f)}
	h := store.Header(f)
	if o.weights, err = place.Weights(h, o.plan, maxBinding); err != nil {
		t.Fatal(err)
	}
	if o.records, err = place.Records(h, o.plan, 0); err != nil {
		t.Fatal(err)
	}
	if o.GGUF, err = store.NewGGUF(f, o.plan, o.weights, o.records); err != nil {
		t.Fatal(err)
	}
	o.tensors = tensorSource(o)
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// everything plans all tensors of a file: expert stacks as records, what has a
// form as matrices (neighbours of one row length stacked by twos and threes),
// the rest as vectors.
func everything(f *gguf.File) *program.Plan {
	p := &program.Plan{Model: &program.Model{}, Embed: &program.Embed{Scale: 1}, Ropes: []*program.Rope{{Name: "plain", Pairs: 4}}}
	parts := map[uint32]*program.Record{}
	for _, t := range f.Tensors {
		var layer uint32
		fmt.Sscanf(t.Name, "blk.%d.", &layer)
		last := len(p.Weights) - 1
		switch {
		case strings.HasSuffix(t.Name, "_exps.weight"):
			p.Model.Experts = uint32(t.Dims[2])
			if parts[layer] == nil {
				parts[layer] = &program.Record{Layer: layer}
				p.Records = append(p.Records, parts[layer])
			}
			parts[layer].Parts = append(parts[layer].Parts, &program.Weight{Name: t.Name, Tensors: []string{t.Name}})
		case len(t.Dims) == 1 || t.Dims[0]%max(32, t.Type.BlockSize()) != 0:
			p.Weights = append(p.Weights, &program.Weight{Name: t.Name, Tensors: []string{t.Name}, Use: program.Use_VECTOR})
		case last >= 0 && p.Weights[last].Use == program.Use_MATRIX && len(p.Weights[last].Tensors) < 2+last%2 && t.Dims[0] == colsOf(f, p.Weights[last]):
			p.Weights[last].Tensors = append(p.Weights[last].Tensors, t.Name)
		default:
			p.Weights = append(p.Weights, &program.Weight{Name: t.Name, Tensors: []string{t.Name}})
		}
		if len(t.Dims) == 2 && p.Embed.Tensor == "" || t.Name == "token_embd.weight" {
			p.Embed.Tensor = t.Name
			p.Model.Hidden = uint32(t.Dims[0])
		}
		if t.Name == "rope_freqs.weight" {
			p.Ropes = append(p.Ropes, &program.Rope{Name: "divided", Pairs: uint32(t.Dims[0]), Divisor: t.Name})
		}
	}
	return p
}

func colsOf(f *gguf.File, w *program.Weight) uint64 {
	t, _ := f.Tensor(w.Tensors[0])
	return t.Dims[0]
}

// values dequantizes a weight's tensors, or one expert's slice of each (experts > 0).
func values(t testing.TB, f *gguf.File, w *program.Weight, expert, experts int) []float64 {
	t.Helper()
	var out []float64
	for _, name := range w.Tensors {
		x, ok := f.Tensor(name)
		if !ok {
			t.Fatalf("no tensor %s", name)
		}
		raw := make([]byte, x.Size)
		if _, err := f.ReadAt(raw, x.Offset); err != nil {
			t.Fatal(err)
		}
		if experts > 0 {
			n := len(raw) / experts
			raw = raw[expert*n : (expert+1)*n]
		}
		v := make([]float64, uint64(len(raw))/x.Type.BlockBytes()*x.Type.BlockSize())
		if err := ggml.Dequantize(x.Type, v, raw); err != nil {
			t.Fatal(err)
		}
		out = append(out, v...)
	}
	return out
}

// form reads a band into memory and checks that its pieces cover it once.
func form(t testing.TB, s store.Source, weight, band int, size uint64) []byte {
	t.Helper()
	out, seen := make([]byte, size), make([]bool, size)
	err := s.ReadBand(context.Background(), weight, band, func(off uint64, data []byte) error {
		if off%16 != 0 || len(data)%16 != 0 || len(data) > 8<<20 || off+uint64(len(data)) > size {
			return fmt.Errorf("have a piece of %d bytes at %d of %d", len(data), off, size)
		}
		for i := range data {
			if seen[off+uint64(i)] {
				return fmt.Errorf("have byte %d twice", off+uint64(i))
			}
			seen[off+uint64(i)] = true
		}
		copy(out[off:], data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.Index(seen, false); i >= 0 {
		t.Fatalf("weight %d band %d: byte %d of %d is missing", weight, band, i, size)
	}
	return out
}

// unpack gives the values of a placed weight whose bands have these forms.
func unpack(t testing.TB, p *program.Placed, bandOf func(int, *program.Band) []byte) []float64 {
	t.Helper()
	var out []float64
	for i, b := range p.Bands {
		packing, ok := ggml.Form(ggml.Type(b.Type))
		if !ok {
			t.Fatalf("band %v has no form", b)
		}
		v := make([]float64, b.Rows*p.Cols)
		if err := packing.Unpack(v, bandOf(i, b), b.Rows, p.Cols); err != nil {
			t.Fatal(err)
		}
		out = append(out, v...)
	}
	return out
}

// same compares values bit by bit; any NaN equals any other.
func same(have, want []float64) error {
	if len(have) != len(want) {
		return fmt.Errorf("have %d values, want %d", len(have), len(want))
	}
	for i, w := range want {
		if math.Float64bits(have[i]) != math.Float64bits(w) && !(math.IsNaN(have[i]) && math.IsNaN(w)) {
			return fmt.Errorf("value %d: have %v, want %v", i, have[i], w)
		}
	}
	return nil
}

// checkWeight compares a weight as the source gives it with its tensors.
func checkWeight(t testing.TB, o *opened, i int) {
	t.Helper()
	w, p := o.plan.Weights[i], o.weights[i]
	var have []float64
	if w.Use == program.Use_VECTOR {
		raw := form(t, o, i, 0, p.Bands[0].Bytes)
		for k := range p.Cols {
			have = append(have, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*k:]))))
		}
		if rest := raw[4*p.Cols:]; slices.ContainsFunc(rest, func(b byte) bool { return b != 0 }) {
			t.Errorf("weight %s: have padding %x", w.Name, rest)
		}
	} else {
		have = unpack(t, p, func(k int, b *program.Band) []byte { return form(t, o, i, k, b.Bytes) })
	}
	if err := same(have, values(t, o.file, w, 0, 0)); err != nil {
		t.Errorf("weight %s: %v", w.Name, err)
	}
}

// tensorSource is sdk/program's own reader of the file, which keeps all of it in
// memory and shares nothing with GGUF but the packers.
func tensorSource(o *opened) *program.TensorSource {
	data := map[string][]byte{}
	return &program.TensorSource{Header: store.Header(o.file), Plan: o.plan, Placed: o.weights, Records: o.records,
		Data: func(name string) ([]byte, error) {
			if data[name] == nil {
				t, _ := o.file.Tensor(name)
				data[name] = make([]byte, t.Size)
				if _, err := o.file.ReadAt(data[name], t.Offset); err != nil {
					return nil, err
				}
			}
			return data[name], nil
		}}
}

func (o *opened) reference() *store.Reference {
	return &store.Reference{Source: o, Plan: o.plan, Weights: o.weights, Records: o.records}
}

// readRecord reads a record into memory that held something else.
func readRecord(t testing.TB, s store.Source, r *program.PlacedRecord, expert int) []byte {
	t.Helper()
	dst := make([]byte, r.Stride)
	for i := range dst {
		dst[i] = 0xa5
	}
	if err := s.ReadRecord(context.Background(), int(r.Layer), expert, dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

// checkRecord compares an expert's record with its slices of the tensors.
func checkRecord(t testing.TB, o *opened, i, expert int) {
	t.Helper()
	r := o.records[i]
	dst := readRecord(t, o, r, expert)
	var end uint64
	for k, part := range r.Parts {
		have := unpack(t, part, func(_ int, b *program.Band) []byte {
			start := 16 * uint64(b.Planes[0])
			end = start + b.Bytes
			return dst[start:end]
		})
		if err := same(have, values(t, o.file, o.plan.Records[i].Parts[k], expert, int(o.plan.Model.Experts))); err != nil {
			t.Errorf("layer %d expert %d: part %s: %v", r.Layer, expert, part.Name, err)
		}
	}
	if slices.ContainsFunc(dst[end:], func(b byte) bool { return b != 0 }) {
		t.Errorf("layer %d expert %d: have padding %x", r.Layer, expert, dst[end:])
	}
}
