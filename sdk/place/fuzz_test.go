package place_test

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/place"
	"github.com/sluicehost/sluice/sdk/program"
)

// FuzzPlace lays out random stacks, sane ones and nonsense: whatever is not
// refused must fit the binding, cover all rows in order and not overlap.
func FuzzPlace(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(seed, uint64(1)<<(seed%40), seed%3 == 0)
	}
	f.Fuzz(func(t *testing.T, seed, maxBinding uint64, wild bool) {
		g := &generator{rand.New(rand.NewPCG(seed, 1)), wild}
		h, p := g.model()
		if placed, err := place.Weights(h, p, maxBinding); err == nil {
			for i, w := range placed {
				checkWeight(t, h, p.Weights[i], w, maxBinding)
			}
		}
		if placed, err := place.Records(h, p, maxBinding); err == nil {
			for i, r := range placed {
				checkRecord(t, h, p.Records[i], r, maxBinding)
			}
		}
	})
}

type generator struct {
	*rand.Rand
	wild bool
}

// number is one of 1 to n, or with wild anything.
func (g *generator) number(n uint64) uint64 {
	if g.wild && g.IntN(8) == 0 {
		return g.Uint64() >> g.IntN(65)
	}
	return 1 + g.Uint64N(n)
}

func (g *generator) model() (*program.Header, *program.Plan) {
	types := []ggml.Type{ggml.F32, ggml.BF16, ggml.Q4_0, ggml.Q5_1, ggml.Q8_0, ggml.Q3_K, ggml.Q4_K, ggml.Q6_K, ggml.MXFP4, ggml.IQ4_XS}
	h := &program.Header{}
	cols := 256 * g.number(4)
	if g.IntN(2) == 0 {
		cols = 32 * g.number(40)
	}
	experts := g.number(6)
	for i := range 12 {
		x := &program.Tensor{Name: fmt.Sprint(i), Type: uint32(types[g.IntN(len(types))]), Dims: []uint64{cols, g.number(60)}}
		if g.wild && g.IntN(10) == 0 {
			x.Type, x.Dims[0] = g.Uint32N(50), g.number(1<<20)
		}
		if i >= 6 {
			x.Dims = append(x.Dims, experts)
		}
		h.Tensors = append(h.Tensors, x)
	}
	p := &program.Plan{Model: &program.Model{Experts: uint32(experts), TopK: uint32(g.number(4))}}
	for range 4 {
		w := &program.Weight{Name: "w", Use: program.Use(g.IntN(4) / 3)}
		r := &program.Record{}
		for range g.IntN(4) {
			w.Tensors = append(w.Tensors, fmt.Sprint(g.IntN(13)))
			r.Parts = append(r.Parts, &program.Weight{Name: "part", Tensors: []string{fmt.Sprint(6 + g.IntN(6)), fmt.Sprint(6 + g.IntN(6))}[:1+g.IntN(2)]})
		}
		p.Weights = append(p.Weights, w)
		p.Records = append(p.Records, r)
	}
	return h, p
}

// span is a plane's bytes.
type span struct{ start, end uint64 }

func checkWeight(t *testing.T, h *program.Header, w *program.Weight, p *program.Placed, maxBinding uint64) {
	t.Helper()
	rows := rowsOf(h, w, 0)
	for i, b := range p.Bands {
		if b.Bytes == 0 || b.Bytes%16 != 0 || maxBinding > 0 && b.Bytes > maxBinding {
			t.Fatalf("band %d has %d bytes, binding %d: %v", i, b.Bytes, maxBinding, p)
		}
		if w.Use == program.Use_VECTOR {
			if len(p.Bands) != 1 || b.Rows != 1 || p.Rows != 1 || p.Cols*4 > b.Bytes {
				t.Fatalf("have vector %v", p)
			}
			return
		}
		apart(t, planes(t, p, b), b.Bytes)
	}
	checkRows(t, p, rows)
}

func checkRecord(t *testing.T, h *program.Header, r *program.Record, p *program.PlacedRecord, maxBinding uint64) {
	t.Helper()
	if p.Stride%256 != 0 || p.Stride == 0 || maxBinding > 0 && p.Stride > maxBinding {
		t.Fatalf("have stride %d, binding %d", p.Stride, maxBinding)
	}
	var all []span
	for i, part := range p.Parts {
		checkRows(t, part, rowsOf(h, r.Parts[i], 1))
		for _, b := range part.Bands {
			all = append(all, planes(t, part, b)...)
		}
	}
	apart(t, all, p.Stride)
}

// checkRows checks that the bands are the rows of the stack, each with its tensor's type.
func checkRows(t *testing.T, p *program.Placed, rows []typedRows) {
	t.Helper()
	var row uint64
	for _, b := range p.Bands {
		if b.Row0 != row || b.Rows == 0 {
			t.Fatalf("band starts at row %d, want %d: %v", b.Row0, row, p)
		}
		row += b.Rows
		for n := b.Rows; n > 0; {
			if len(rows) == 0 || uint32(rows[0].typ) != b.Type {
				t.Fatalf("band of %v, want %v: %v", b, rows, p)
			}
			took := min(n, rows[0].rows)
			n -= took
			if rows[0].rows -= took; rows[0].rows == 0 {
				rows = rows[1:]
			}
		}
	}
	if row != p.Rows || len(rows) > 0 {
		t.Fatalf("have %d rows in bands of %d, left %v", row, p.Rows, rows)
	}
}

type typedRows struct {
	typ  ggml.Type
	rows uint64
}

// rowsOf is the rows of each tensor of a weight, without its last drop dims.
func rowsOf(h *program.Header, w *program.Weight, drop int) []typedRows {
	var out []typedRows
	for _, name := range w.Tensors {
		for _, x := range h.Tensors {
			if x.Name == name {
				rows := uint64(1)
				for _, d := range x.Dims[1 : len(x.Dims)-drop] {
					rows *= d
				}
				out = append(out, typedRows{ggml.Type(x.Type), rows})
			}
		}
	}
	return out
}

func planes(t *testing.T, p *program.Placed, b *program.Band) []span {
	t.Helper()
	form, ok := ggml.Form(ggml.Type(b.Type))
	if !ok || form.PlaneCount() != len(b.Planes) {
		t.Fatalf("have planes %v of %v", b.Planes, ggml.Type(b.Type))
	}
	spans, err := form.Spans(b.Rows, p.Cols, 0, b.Rows)
	if err != nil {
		t.Fatal(err)
	}
	var out []span
	for i, s := range spans {
		start := uint64(b.Planes[i]) * 16
		out = append(out, span{start, start + s.Len})
	}
	return out
}

// apart checks that spans lie within size bytes and don't overlap.
func apart(t *testing.T, spans []span, size uint64) {
	t.Helper()
	sort.Slice(spans, func(i, j int) bool { return spans[i].start < spans[j].start })
	var end uint64
	for _, s := range spans {
		if s.start < end || s.end > size || s.end <= s.start {
			t.Fatalf("have spans %v in %d bytes", spans, size)
		}
		end = s.end
	}
}
