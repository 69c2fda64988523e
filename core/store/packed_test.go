package store_test

import (
	"bytes"
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/store"
)

// ingest makes a store of an opened file's plan.
func ingest(t testing.TB, o *opened, dir string, opt store.IngestOptions) store.Ingested {
	t.Helper()
	in, err := store.NewIngest(o.file, o.plan)
	if err != nil {
		t.Fatal(err)
	}
	done, err := in.Run(context.Background(), dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// source opens a store as the source of an opened file's plan.
func source(t testing.TB, o *opened, dir string) *store.Packed {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Source(o.plan, o.weights, o.records)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// checkSame compares all that two sources give.
func checkSame(t *testing.T, o *opened, have, want store.Source) {
	t.Helper()
	for i, w := range o.weights {
		for k, b := range w.Bands {
			if !bytes.Equal(form(t, have, i, k, b.Bytes), form(t, want, i, k, b.Bytes)) {
				t.Errorf("weight %s band %d: have other bytes", w.Name, k)
			}
		}
	}
	for _, r := range o.records {
		for e := range int(o.plan.Model.Experts) {
			if !bytes.Equal(readRecord(t, have, r, e), readRecord(t, want, r, e)) {
				t.Errorf("layer %d expert %d: have other bytes", r.Layer, e)
			}
		}
	}
	x, _ := o.file.Tensor(o.plan.Embed.Tensor)
	ids := []int32{0, 3, 1, int32(x.Dims[1] - 1), 3}
	a, b := make([]float32, len(ids)*int(x.Dims[0])), make([]float32, len(ids)*int(x.Dims[0]))
	bits := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
	if err, err2 := have.EmbedRows(ids, a), want.EmbedRows(ids, b); err != nil || err2 != nil || !slices.EqualFunc(a, b, bits) {
		t.Errorf("embedding: %v, %v, or other values", err, err2)
	}
	for i := range o.plan.Ropes {
		a, err := have.RopeDivisor(i)
		b, err2 := want.RopeDivisor(i)
		if err != nil || err2 != nil || len(a) != len(b) || same(a, b) != nil {
			t.Errorf("rope %d: have %v, %v, want %v, %v", i, a, err, b, err2)
		}
	}
}

// A store gives the bytes that its GGUF gives, whatever the placement, and tells
// the same of the file.
func TestPackedRealFiles(t *testing.T) {
	for _, path := range goldenFiles(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s")
			ingest(t, open(t, path, 0, everything), dir, store.IngestOptions{})
			for _, maxBinding := range []uint64{1<<20 - 16, 0} {
				o := open(t, path, maxBinding, everything)
				p := source(t, o, dir)
				checkSame(t, o, p, o)
				checkHeaders(t, o.file, dir)
				if p.BytesRead() < o.BytesRead()/2 {
					t.Errorf("have %d bytes counted, want about the %d of the GGUF", p.BytesRead(), o.BytesRead())
				}
			}
			if faults, err := store.Verify(context.Background(), dir, nil); err != nil || len(faults) > 0 {
				t.Errorf("verify: %q, %v", faults, err)
			}
		})
	}
}

// checkHeaders compares the headers that a store shows with the file's.
func checkHeaders(t *testing.T, f *gguf.File, dir string) {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, p := range f.Parts {
		have, want := make([]byte, p.HeaderSize), make([]byte, p.HeaderSize)
		_, err := s.File.ReadAt(have, s.File.Parts[i].Offset)
		_, err2 := f.ReadAt(want, p.Offset)
		if err != nil || err2 != nil || !bytes.Equal(have, want) {
			t.Errorf("part %d: have another header: %v, %v", i, err, err2)
		}
	}
}
