// Package place decides where each weight of a plan lies on the GPU: how a
// stack of tensors is cut into bands that fit a binding, and how the parts of
// an expert's record follow each other in a slot. It is arithmetic over the
// header: it reads no file, allocates nothing on a GPU and knows no model.
//
// Start at [Weights] and [Records]. Both take a plan that program.ValidatePlan
// has passed, but trust nothing of it: a plan that fits its file badly gives an
// error here too.
package place

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

const (
	// StrideAlign is the multiple of which a record's stride is, in bytes: the
	// largest offset alignment that WebGPU lets a device ask for.
	StrideAlign = 256
	// maxRows bounds the rows of a stack and the bytes of a record, so that no
	// sum of two overflows.
	maxRows = 1 << 61
	// maxBands bounds the bands of all weights, which a program's validator does
	// not accept more of.
	maxBands = 1 << 18
)

// Weights places the resident weights of a plan, in the plan's order. h is the
// file's header and maxBinding the bytes of the largest storage binding, 0 for
// any.
//
// A MATRIX becomes bands: neighbouring tensors of one ggml type are one run of
// rows in that type's GPU form (ggml.Form), cut by rows, inside a tensor if need
// be, where a band would exceed maxBinding. The band's planes count from the
// band's start, and its bytes are the size of the whole form, a multiple of 16.
// Placed.Rows counts a tensor's values per row of Dims[0]. A VECTOR becomes one
// band of one F32 row, 4 bytes a value, rounded up to 16 bytes.
//
// It fails where a tensor is missing, has no GPU form or another row length than
// its stack, and where one row alone exceeds maxBinding; the error names the
// weight and the tensor.
func Weights(h *program.Header, p *program.Plan, maxBinding uint64) ([]*program.Placed, error) {
	t := newTable(h)
	limit := limitOf(maxBinding)
	placed := make([]*program.Placed, 0, len(p.GetWeights()))
	bands := 0
	for _, w := range p.GetWeights() {
		var out *program.Placed
		var err error
		if w.GetUse() == program.Use_VECTOR {
			out, err = t.vector(w, limit)
		} else {
			out, err = t.matrix(w, limit, maxBands-bands)
		}
		if err != nil {
			return nil, fmt.Errorf("place: weight %.80q: %w", w.GetName(), err)
		}
		bands += len(out.Bands)
		placed = append(placed, out)
	}
	return placed, nil
}

// matrix cuts a stack into bands, at most that many.
func (t table) matrix(w *program.Weight, limit uint64, most int) (*program.Placed, error) {
	s, err := t.stack(w, 0)
	if err != nil {
		return nil, err
	}
	out := &program.Placed{Name: w.GetName(), Cols: s.cols}
	for _, r := range s.runs {
		full, err := fit(r, s.cols, limit)
		if err != nil {
			return nil, err
		}
		for left := r.rows; left > 0; {
			n := min(full, left)
			if len(out.Bands) == most {
				return nil, fmt.Errorf("have more bands of at most %d bytes than the %d of a program: want a device with larger bindings", limit, maxBands)
			}
			b, err := band(r, out.Rows, n, s.cols, 0)
			if err != nil {
				return nil, err
			}
			out.Bands = append(out.Bands, b)
			out.Rows += n
			left -= n
		}
	}
	return out, nil
}

// vector lays all values of a stack out as one row of F32.
func (t table) vector(w *program.Weight, limit uint64) (*program.Placed, error) {
	if len(w.GetTensors()) == 0 {
		return nil, errNoTensors
	}
	var n uint64
	for _, name := range w.GetTensors() {
		x, err := t.find(name, 0)
		if err != nil {
			return nil, err
		}
		if x.typ != ggml.F32 && x.typ != ggml.F16 && x.typ != ggml.BF16 {
			return nil, fmt.Errorf("tensor %s: have a VECTOR of %v, want F32, F16 or BF16", name, x.typ)
		}
		if n += x.cols * x.rows; n > maxRows {
			return nil, errTooLarge
		}
	}
	bytes := roundUp(4*n, ggml.PlaneAlign)
	if bytes > limit {
		return nil, fmt.Errorf("have a VECTOR of %d bytes, want at most %d, the largest storage binding: this device can't hold it", bytes, limit)
	}
	return &program.Placed{Name: w.GetName(), Rows: 1, Cols: n, Bands: []*program.Band{
		{Type: uint32(ggml.F32), Rows: 1, Bytes: bytes, Planes: []uint32{0}},
	}}, nil
}

// fit is the number of a run's rows, from 1 to all, whose form is no larger than
// limit.
func fit(r run, cols, limit uint64) (uint64, error) {
	fits := func(rows uint64) bool {
		_, total, err := r.form.Planes(rows, cols)
		return err == nil && total <= limit
	}
	if fits(r.rows) {
		return r.rows, nil
	}
	if !fits(1) {
		_, total, err := r.form.Planes(1, cols)
		if err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("tensor %s: have rows of %d bytes on the GPU, want at most %d, the largest storage binding: this device can't hold it",
			r.tensor, total, limit)
	}
	least, most := uint64(1), r.rows // fits(least), not fits(most)
	for most-least > 1 {
		if mid := least + (most-least)/2; fits(mid) {
			least = mid
		} else {
			most = mid
		}
	}
	return least, nil
}

// band is the form of rows [row0, row0+rows) of a run, its planes counted from
// base bytes before it.
func band(r run, row0, rows, cols, base uint64) (*program.Band, error) {
	offsets, total, err := r.form.Planes(rows, cols)
	if err != nil {
		return nil, err
	}
	b := &program.Band{Type: uint32(r.form.Type()), Row0: row0, Rows: rows, Bytes: total}
	for _, off := range offsets {
		unit := (base + off) / ggml.PlaneAlign
		if unit > math.MaxUint32 {
			return nil, fmt.Errorf("tensor %s: have a plane at byte %d, want at most 64 GiB: such a weight can't be addressed", r.tensor, base+off)
		}
		b.Planes = append(b.Planes, uint32(unit))
	}
	return b, nil
}

// limitOf makes 0 no limit.
func limitOf(n uint64) uint64 {
	if n == 0 {
		return math.MaxUint64
	}
	return n
}

// roundUp is n as a multiple of align, a power of two; n is far from overflow.
func roundUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// product multiplies dims; false where the result is 0 or over maxRows.
func product(dims []uint64) (uint64, bool) {
	n := uint64(1)
	for _, d := range dims {
		high, low := bits.Mul64(n, d)
		if high != 0 || low == 0 || low > maxRows {
			return 0, false
		}
		n = low
	}
	return n, true
}
