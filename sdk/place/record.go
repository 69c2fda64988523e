package place

import (
	"fmt"

	"github.com/sluicehost/sluice/sdk/program"
)

// Records places the parts of one expert's record for each MoE layer of a plan,
// in the plan's order. maxBinding is the bytes of the largest storage binding, 0
// for any: a bank of slots is one binding, and must hold the experts of a token.
//
// Parts follow each other without gaps, each as one band for every run of one
// ggml type, whose planes count from the record's start. The stride is the
// record's size rounded up to StrideAlign.
//
// It fails where a tensor is missing, is no stack of the model's experts, has no
// GPU form or another row length than its part, and where top_k records exceed
// maxBinding; the error names the layer, and the part or the numbers.
func Records(h *program.Header, p *program.Plan, maxBinding uint64) ([]*program.PlacedRecord, error) {
	t := newTable(h)
	limit := limitOf(maxBinding)
	placed := make([]*program.PlacedRecord, 0, len(p.GetRecords()))
	for _, r := range p.GetRecords() {
		out, err := t.record(r, uint64(p.GetModel().GetExperts()))
		if err != nil {
			return nil, fmt.Errorf("place: record of layer %d: %w", r.GetLayer(), err)
		}
		if k := uint64(max(1, p.GetModel().GetTopK())); out.Stride > limit/k {
			return nil, fmt.Errorf("place: record of layer %d: have %d bytes an expert and %d experts a token, want both within %d bytes, the largest storage binding: this device can't run the model",
				r.GetLayer(), out.Stride, k, limit)
		}
		placed = append(placed, out)
	}
	return placed, nil
}

func (t table) record(r *program.Record, experts uint64) (*program.PlacedRecord, error) {
	switch {
	case experts == 0:
		return nil, fmt.Errorf("have 0 experts in the model, want at least 1")
	case len(r.GetParts()) == 0:
		return nil, fmt.Errorf("have no parts, want at least one")
	}
	out := &program.PlacedRecord{Layer: r.GetLayer()}
	var size uint64
	for _, w := range r.GetParts() {
		part, end, err := t.part(w, experts, size)
		if err != nil {
			return nil, fmt.Errorf("part %.80q: %w", w.GetName(), err)
		}
		out.Parts = append(out.Parts, part)
		size = end
	}
	out.Stride = roundUp(size, StrideAlign)
	return out, nil
}

// part lays a part out from byte base of its record and returns its end.
func (t table) part(w *program.Weight, experts, base uint64) (_ *program.Placed, end uint64, err error) {
	if w.GetUse() != program.Use_MATRIX {
		return nil, 0, fmt.Errorf("have use %v, want MATRIX", w.GetUse())
	}
	s, err := t.stack(w, experts)
	if err != nil {
		return nil, 0, err
	}
	out := &program.Placed{Name: w.GetName(), Cols: s.cols}
	for _, r := range s.runs {
		b, err := band(r, out.Rows, r.rows, s.cols, base)
		if err != nil {
			return nil, 0, err
		}
		if base += b.Bytes; base > maxRows {
			return nil, 0, errTooLarge
		}
		out.Bands = append(out.Bands, b)
		out.Rows += r.rows
	}
	return out, base, nil
}
