package store

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// run is a stretch of a tensor's data: whole chunks of a band's type.
type run struct {
	tensor string
	typ    ggml.Type
	off    int64  // in the file's address space; of expert 0 in a record
	next   int64  // bytes from one expert's run to the next
	chunks uint64 // of chunkValues
}

// matrix is a band of a weight or of a record's part: what its GPU form is made
// of. It is seen as chunks, the least number of values that is whole blocks and
// whole units: a form depends on the order of its units only, so a band of
// rows × cols values has the same form as one of as many rows of one chunk, and
// may be read from any chunk to any other, whatever its rows.
type matrix struct {
	form   ggml.Packing
	runs   []run
	chunks uint64 // of all runs
	base   uint64 // where the form starts in its record, bytes; 0 for a weight
	bytes  uint64 // of the form
}

// chunkValues is the number of values in a chunk of t.
func chunkValues(t ggml.Type) uint64 { return max(ggml.UnitSize, t.BlockSize()) }

// chunkBytes is the size of a chunk of t in the file.
func chunkBytes(t ggml.Type) int { return int(chunkValues(t) / t.BlockSize() * t.BlockBytes()) }

// copied reports whether a form of t is the file's bytes as they are.
func copied(t ggml.Type) bool { return t == ggml.F32 || t == ggml.F16 || t == ggml.BF16 }

// bandsOf is the bands of a MATRIX, each from byte 0 of a buffer of its own; or
// with experts > 0 those of a record's part, one after the other from base on.
func bandsOf(f *gguf.File, w *program.Weight, p *program.Placed, experts, base uint64) ([]matrix, error) {
	runs, err := matrixRuns(f, w, p.GetCols(), experts)
	if err != nil {
		return nil, err
	}
	bands, err := cut(runs, p)
	for i, b := range bands {
		if b.base != base {
			return nil, fmt.Errorf("band %d: have it at byte %d, want it at %d", i, b.base, base)
		}
		if experts > 0 {
			base += b.bytes
		}
	}
	return bands, err
}

// matrixRuns are the runs of a MATRIX's tensors, rows of cols values: whole, or
// with experts > 0 one expert's slice of each.
func matrixRuns(f *gguf.File, w *program.Weight, cols, experts uint64) ([]run, error) {
	var runs []run
	for _, name := range w.GetTensors() {
		t, ok := f.Tensor(name)
		if !ok {
			return nil, fmt.Errorf("tensor %.80q is not in the file", name)
		}
		if t.Dims[0] != cols {
			return nil, fmt.Errorf("tensor %s: have rows of %d values, want %d as they were placed", name, t.Dims[0], cols)
		}
		size, err := sliceSize(t, experts)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", name, err)
		}
		runs = append(runs, run{tensor: name, typ: t.Type, off: t.Offset, next: size, chunks: uint64(size) / uint64(chunkBytes(t.Type))})
	}
	return runs, nil
}

// sliceSize is the size in bytes of one expert's values of t, of all values
// where experts is 0.
func sliceSize(t gguf.Tensor, experts uint64) (int64, error) {
	if _, ok := ggml.Form(t.Type); !ok {
		return 0, fmt.Errorf("have type %v, want one of %s", t.Type, ggml.FormNames())
	}
	if experts == 0 {
		return t.Size, nil
	}
	if n := len(t.Dims); n != 3 || t.Dims[2] != experts || experts > math.MaxInt32 {
		return 0, fmt.Errorf("have shape %v, want 3 dims, the last of %d experts", t.Dims, experts)
	}
	return t.Size / int64(experts), nil
}

// cut divides runs, rows of cols values, into the bands of a placed weight. Each
// band must be as sdk/place lays it out.
func cut(runs []run, p *program.Placed) ([]matrix, error) {
	var out []matrix
	for i, b := range p.GetBands() {
		typ := ggml.Type(b.GetType())
		form, ok := ggml.Form(typ)
		if !ok {
			return nil, fmt.Errorf("band %d: have type %v, want one of %s", i, typ, ggml.FormNames())
		}
		m := matrix{form: form, bytes: b.GetBytes()}
		if err := m.checkPlanes(p.GetCols(), b); err != nil {
			return nil, fmt.Errorf("band %d: %w", i, err)
		}
		m.chunks = b.GetRows() * (p.GetCols() / chunkValues(typ))
		var err error
		if m.runs, runs, err = takeRuns(runs, typ, m.chunks); err != nil {
			return nil, fmt.Errorf("band %d: %w", i, err)
		}
		out = append(out, m)
	}
	if len(runs) > 0 {
		return nil, fmt.Errorf("have no band for the rest of tensor %s: the weights were placed for another file", runs[0].tensor)
	}
	return out, nil
}

// checkPlanes checks a band's planes against the form and finds its base.
func (m *matrix) checkPlanes(cols uint64, b *program.Band) error {
	offsets, total, err := m.form.Planes(b.GetRows(), cols)
	if err != nil {
		return err
	}
	if planes := b.GetPlanes(); len(planes) > 0 {
		m.base = uint64(planes[0]) * ggml.PlaneAlign
	}
	same := slices.EqualFunc(b.GetPlanes(), offsets, func(unit uint32, off uint64) bool {
		return uint64(unit)*ggml.PlaneAlign == m.base+off
	})
	if !same || total != b.GetBytes() {
		return fmt.Errorf("have %d bytes and planes %v, want them as sdk/place lays out %d x %d values of %v",
			b.GetBytes(), b.GetPlanes(), b.GetRows(), cols, m.form.Type())
	}
	return nil
}

// takeRuns splits n chunks of one type off the front of runs.
func takeRuns(runs []run, t ggml.Type, n uint64) (taken, rest []run, err error) {
	for n > 0 {
		if len(runs) == 0 || runs[0].typ != t {
			return nil, nil, fmt.Errorf("have %d values of %v too few: the weights were placed for another file", n*chunkValues(t), t)
		}
		r := runs[0]
		r.chunks = min(r.chunks, n)
		taken = append(taken, r)
		n -= r.chunks
		if r.chunks == runs[0].chunks {
			runs = runs[1:]
			continue
		}
		rest := append([]run(nil), runs...)
		rest[0].off += int64(r.chunks) * int64(chunkBytes(t))
		rest[0].chunks -= r.chunks
		runs = rest
	}
	return taken, runs, nil
}
