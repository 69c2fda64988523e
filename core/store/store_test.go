package store_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// Each tensor of the real files, as band, vector or expert's part, has the
// values that it has in the file.
func TestRealFiles(t *testing.T) {
	types := map[ggml.Type]bool{}
	for _, path := range goldenFiles(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			o := open(t, path, 1<<20-16, everything)
			for i := range o.plan.Weights {
				checkWeight(t, o, i)
			}
			if len(o.records) == 0 {
				t.Error("have no expert records")
			}
			for i := range o.records {
				for e := range int(o.plan.Model.Experts) {
					checkRecord(t, o, i, e)
				}
			}
			for _, x := range o.file.Tensors {
				types[x.Type] = true
			}
		})
	}
	t.Logf("types: %d", len(types))
}

// What the interpreter reads through a source is what it reads from the tensors.
func TestReference(t *testing.T) {
	for _, path := range goldenFiles(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			o := open(t, path, 1<<20-16, everything)
			for i, w := range o.weights {
				for k := range w.Bands {
					if o.plan.Weights[i].Use == program.Use_VECTOR {
						compare(t, o, w.Name, func(s program.Source) ([]float64, error) { return s.Vector(i, k) })
					} else {
						compare(t, o, w.Name, func(s program.Source) ([]byte, error) { return s.Band(i, k) })
					}
				}
			}
			for i, r := range o.records {
				e := int(o.plan.Model.Experts) - 1
				compare(t, o, fmt.Sprint("layer ", r.Layer), func(s program.Source) ([]byte, error) { return s.Expert(i, e) })
			}
			for _, token := range []uint32{0, 1, 999} {
				compare(t, o, fmt.Sprint("token ", token), func(s program.Source) ([]float64, error) { return s.Embedding(token) })
			}
			if len(o.plan.Ropes) > 1 {
				compare(t, o, "divisor", func(s program.Source) ([]float64, error) { return s.Divisor(1) })
			}
		})
	}
}

// compare reads through the source and from the tensors.
func compare[T byte | float64](t *testing.T, o *opened, what string, read func(program.Source) ([]T, error)) {
	t.Helper()
	have, err := read(o.reference())
	want, err2 := read(o.tensors)
	if err != nil || err2 != nil || len(have) == 0 || !slices.Equal(have, want) {
		t.Errorf("%s: have %d values (%v) other than %d (%v)", what, len(have), err, len(want), err2)
	}
}

// allTypes are the types that have a form.
func allTypes() []ggml.Type {
	var out []ggml.Type
	for typ := ggml.Type(0); typ < 64; typ++ {
		if _, ok := ggml.Form(typ); ok {
			out = append(out, typ)
		}
	}
	return out
}

// Every type, stacked with others and by itself, cut at odd sizes: in whatever
// bands, the values stay.
func TestBands(t *testing.T) {
	r := random(t)
	types := allTypes()
	for trial := range 60 {
		cols := uint64(256 << r.IntN(2))
		var tensors []gguftest.Tensor
		p := &program.Plan{Model: &program.Model{}, Embed: &program.Embed{Tensor: "0"}}
		w := &program.Weight{Name: "w"}
		typ := types[trial%len(types)]
		for i := range 1 + r.IntN(5) {
			x := noise(r, fmt.Sprint(i), typ, cols, 1+r.Uint64N(70))
			tensors = append(tensors, x)
			w.Tensors = append(w.Tensors, x.Name)
			if r.IntN(2) == 0 {
				typ = types[r.IntN(len(types))]
			}
		}
		p.Weights = append(p.Weights, w)
		o := open(t, write(t, tensors...), 2048+r.Uint64N(40000), func(*gguf.File) *program.Plan { return p })
		checkWeight(t, o, 0)
		if t.Failed() {
			t.Fatalf("trial %d: %v", trial, o.weights[0])
		}
	}
}

// Rows of one unit leave planes of any size, and several pieces must meet at
// multiples of 16 bytes all the same.
func TestNarrowRows(t *testing.T) {
	r := random(t)
	for _, typ := range allTypes() {
		if typ.BlockSize() > 32 {
			continue
		}
		o := open(t, write(t, noise(r, "x", typ, 32, 13), noise(r, "y", typ, 32, 1), noise(r, "z", typ, 32, 2, 3)), 0, everything)
		for i := range o.plan.Weights {
			checkWeight(t, o, i)
		}
	}
}

// A band of more than 8 MiB comes in several pieces; one tensor ends in mid-piece.
func TestLargeBand(t *testing.T) {
	r := random(t)
	for _, typ := range []ggml.Type{ggml.F16, ggml.Q4_0, ggml.Q6_K, ggml.MXFP4} {
		t.Run(typ.String(), func(t *testing.T) {
			rows := 9<<20/(typ.BlockBytes()*512/typ.BlockSize()) + 1
			p := &program.Plan{Model: &program.Model{}, Embed: &program.Embed{Tensor: "a"},
				Weights: []*program.Weight{{Name: "w", Tensors: []string{"a", "b"}}}}
			a, b := noise(r, "a", typ, 512, rows), noise(r, "b", typ, 512, rows)
			o := open(t, write(t, a, b), 0, func(*gguf.File) *program.Plan { return p })
			band := o.weights[0].Bands[0]
			packing, _ := ggml.Form(typ)
			want := make([]byte, band.Bytes)
			if err := packing.Pack(want, slices.Concat(a.Data, b.Data), 2*rows, 512); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(form(t, o, 0, 0, band.Bytes), want) {
				t.Error("have other bytes than the form of both tensors")
			}
			if have, want := o.BytesRead(), int64(len(a.Data)+len(b.Data)); have != want {
				t.Errorf("have %d bytes read, want %d", have, want)
			}
		})
	}
}

// Vectors of unlike types follow each other, small ones and more than a piece of them.
func TestVectors(t *testing.T) {
	r := random(t)
	tensors := []gguftest.Tensor{
		noise(r, "a", ggml.F32, 3), noise(r, "b", ggml.F16, 1, 5), noise(r, "c", ggml.BF16, 2, 2, 2),
		noise(r, "d", ggml.F16, 1500, 1001), noise(r, "e", ggml.F32, 1000001), noise(r, "row", ggml.F32, 32, 2),
	}
	p := &program.Plan{Model: &program.Model{}, Embed: &program.Embed{Tensor: "row"}}
	for _, names := range [][]string{{"a"}, {"b"}, {"c"}, {"a", "b", "c"}, {"d", "a", "e", "c"}, {"a", "e"}} {
		p.Weights = append(p.Weights, &program.Weight{Name: fmt.Sprint(names), Tensors: names, Use: program.Use_VECTOR})
	}
	o := open(t, write(t, tensors...), 0, func(*gguf.File) *program.Plan { return p })
	for i := range p.Weights {
		checkWeight(t, o, i)
	}
}

// experts is a file of one layer of all types, its parts stacks of unlike ones.
func experts(t *testing.T, n uint64) ([]gguftest.Tensor, *program.Plan) {
	r := random(t)
	types := allTypes()
	p := &program.Plan{Model: &program.Model{Experts: uint32(n), TopK: 1}, Embed: &program.Embed{Tensor: "row"},
		Records: []*program.Record{{Layer: 7}}}
	tensors := []gguftest.Tensor{noise(r, "row", ggml.Q8_0, 64, 40)}
	for len(types) > 0 {
		k := min(1+r.IntN(3), len(types))
		w := &program.Weight{Name: fmt.Sprint(types[:k])}
		cols := 256 * (1 + r.Uint64N(3))
		for _, typ := range types[:k] {
			x := noise(r, fmt.Sprint(w.Name, typ), typ, cols, 1+r.Uint64N(30), n)
			tensors = append(tensors, x)
			w.Tensors = append(w.Tensors, x.Name)
		}
		p.Records[0].Parts = append(p.Records[0].Parts, w)
		types = types[k:]
	}
	return tensors, p
}

func TestRecords(t *testing.T) {
	tensors, p := experts(t, 5)
	o := open(t, write(t, tensors...), 0, func(*gguf.File) *program.Plan { return p })
	var want int64
	for e := range 5 {
		checkRecord(t, o, 0, e)
	}
	before := o.BytesRead()
	readRecord(t, o, o.records[0], 3)
	for _, x := range o.file.Tensors[1:] {
		want += x.Size / 5
	}
	if have := o.BytesRead() - before; have != want {
		t.Errorf("have %d bytes read, want %d", have, want)
	}
}

// A part of more than a piece is read in several.
func TestLargeRecord(t *testing.T) {
	r := random(t)
	p := &program.Plan{Model: &program.Model{Experts: 2}, Embed: &program.Embed{Tensor: "row"}, Records: []*program.Record{{Parts: []*program.Weight{
		{Name: "gu", Tensors: []string{"gate", "up"}}, {Name: "d", Tensors: []string{"down"}},
	}}}}
	o := open(t, write(t, noise(r, "row", ggml.F32, 32, 1), noise(r, "gate", ggml.Q4_K, 2048, 1000, 2), noise(r, "up", ggml.Q4_K, 2048, 1100, 2),
		noise(r, "down", ggml.F16, 1696, 999, 2)), 0, func(*gguf.File) *program.Plan { return p })
	for e := range 2 {
		want, err := o.tensors.Expert(0, e)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(readRecord(t, o, o.records[0], e), want) {
			t.Errorf("expert %d: have other bytes than its tensors make", e)
		}
	}
}

// A model in parts gives the same bytes as the whole.
func TestSplitFile(t *testing.T) {
	tensors, p := experts(t, 3)
	m := &gguftest.Model{Metadata: gguftest.Pairs("general.architecture", "test"), Tensors: tensors}
	n := len(tensors)
	paths, err := gguftest.WriteParts(t.TempDir(), "m", m.Split(1, n/2, n-n/2-1))
	if err != nil {
		t.Fatal(err)
	}
	planOf := func(*gguf.File) *program.Plan { return p }
	whole, parts := open(t, write(t, tensors...), 0, planOf), open(t, paths[1], 0, planOf)
	for e := range 3 {
		checkRecord(t, parts, 0, e)
		if !slices.Equal(readRecord(t, whole, whole.records[0], e), readRecord(t, parts, parts.records[0], e)) {
			t.Errorf("expert %d: have other bytes than from one file", e)
		}
	}
}
