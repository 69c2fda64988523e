package program

import (
	"fmt"
	"sort"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// placedWeights checks that the host's layout of the weights is the plan's,
// since dispatches refer to both by one index.
func (c *checker) placedWeights() {
	weights := c.plan.GetWeights()
	if len(c.placed) != len(weights) {
		c.addf("placed weights: have %d, want %d as in the plan", len(c.placed), len(weights))
		return
	}
	for i, w := range c.placed {
		what := "placed weight " + clip(w.GetName())
		if w.GetName() != weights[i].GetName() {
			c.addf("%s: want %s, as weight %d of the plan", what, clip(weights[i].GetName()), i)
			continue
		}
		c.bands(what, w)
		for j, b := range w.GetBands() {
			what := fmt.Sprintf("%s: band %d", what, j)
			c.band(what, w, b, weights[i].GetUse())
			if b.GetBytes() > limit(c.b.Limits.GetMaxBinding()) {
				c.addf("%s: have %d bytes, want at most %d, the largest binding", what, b.GetBytes(), c.b.Limits.GetMaxBinding())
			}
		}
	}
}

// bands checks that the bands of w are its rows, in order and without gaps.
func (c *checker) bands(what string, w *Placed) {
	var row uint64
	for i, b := range w.GetBands() {
		if b.GetRow0() != row || b.GetRows() == 0 || b.GetRows() > w.GetRows()-row {
			c.addf("%s: band %d: have %d rows from %d, want some from %d within %d", what, i, b.GetRows(), b.GetRow0(), row, w.GetRows())
			return
		}
		row += b.GetRows()
	}
	if row != w.GetRows() || row == 0 || w.GetCols() == 0 {
		c.addf("%s: have bands over %d rows, want all of %d rows x %d cols", what, row, w.GetRows(), w.GetCols())
	}
}

// band checks that a band's values lie within its bytes.
func (c *checker) band(what string, w *Placed, b *Band, use Use) {
	if use == Use_VECTOR {
		if b.GetRows() > maxForm || w.GetCols() > maxForm || b.GetRows()*w.GetCols()*4 > b.GetBytes() {
			c.addf("%s: have %d bytes, want at least %d x %d f32", what, b.GetBytes(), b.GetRows(), w.GetCols())
		}
		return
	}
	for _, p := range c.planes(what, w, b) {
		if p.end > b.GetBytes() {
			c.addf("%s: plane ends at byte %d, want at most %d", what, p.end, b.GetBytes())
		}
	}
}

// maxForm bounds the rows and cols of a VECTOR so that its bytes fit 64 bits.
const maxForm = 1 << 30

// span is a range of bytes of a named thing.
type span struct {
	what       string
	start, end uint64
}

// planes is where the planes of a MATRIX band lie.
func (c *checker) planes(what string, w *Placed, b *Band) []span {
	typ := ggml.Type(b.GetType())
	form, ok := ggml.Form(typ)
	if !ok {
		c.addf("%s: have type %v, want one with a GPU form", what, typ)
		return nil
	}
	parts, err := form.Spans(b.GetRows(), w.GetCols(), 0, b.GetRows())
	if err != nil {
		c.addf("%s: %w", what, err)
		return nil
	}
	if len(b.GetPlanes()) != len(parts) {
		c.addf("%s: have %d planes, want %d as the form of %v", what, len(b.GetPlanes()), len(parts), typ)
		return nil
	}
	spans := make([]span, len(parts))
	for i, p := range parts {
		start := uint64(b.GetPlanes()[i]) * ggml.PlaneAlign
		spans[i] = span{what, start, start + p.Len}
	}
	return spans
}

// placedRecords checks the layout of the expert records.
func (c *checker) placedRecords() {
	records := c.plan.GetRecords()
	if len(c.records) != len(records) {
		c.addf("placed records: have %d, want %d as in the plan", len(c.records), len(records))
		return
	}
	for i, r := range c.records {
		what := fmt.Sprintf("placed record of layer %d", r.GetLayer())
		if r.GetLayer() != records[i].GetLayer() || len(r.GetParts()) != len(records[i].GetParts()) {
			c.addf("%s: have %d parts, want layer %d with %d parts, as in the plan", what, len(r.GetParts()),
				records[i].GetLayer(), len(records[i].GetParts()))
			continue
		}
		c.stride(what, r)
		c.parts(what, r, records[i])
	}
}

// stride checks that slots of the record can be bound, and enough of them for a token.
func (c *checker) stride(what string, r *PlacedRecord) {
	align := max(256, uint64(c.b.StorageAlign))
	if r.GetStride() == 0 || r.GetStride()%align != 0 {
		c.addf("%s: have stride %d, want a multiple of %d", what, r.GetStride(), align)
	}
	most := limit(c.b.Limits.GetMaxBinding())
	if k := uint64(max(1, c.plan.GetModel().GetTopK())); r.GetStride() > most/k {
		c.addf("%s: have %d experts of %d bytes a token, want a bank of them within %d bytes, the largest binding", what, k, r.GetStride(), most)
	}
}

// parts checks that the planes of a record lie inside its stride and apart from each other.
func (c *checker) parts(what string, r *PlacedRecord, plan *Record) {
	var spans []span
	for i, part := range r.GetParts() {
		what := what + ": part " + clip(part.GetName())
		if part.GetName() != plan.GetParts()[i].GetName() {
			c.addf("%s: want %s, as in the plan", what, clip(plan.GetParts()[i].GetName()))
		}
		c.bands(what, part)
		for _, b := range part.GetBands() {
			spans = append(spans, c.planes(what, part, b)...)
		}
	}
	sort.SliceStable(spans, func(i, j int) bool { return spans[i].start < spans[j].start })
	for i, s := range spans {
		if s.end > r.GetStride() {
			c.addf("%s: plane ends at byte %d, want within the stride of %d", s.what, s.end, r.GetStride())
		}
		if i > 0 && s.start < spans[i-1].end {
			c.addf("%s: plane starts at byte %d, inside one of %s that ends at %d", s.what, s.start, spans[i-1].what, spans[i-1].end)
		}
	}
}
