package place

import (
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

var (
	errNoTensors = errors.New("have no tensors, want at least one")
	errTooLarge  = errors.New("have a stack of 2^61 values or more: the plan is wrong")
)

// table finds a header's tensors by name.
type table map[string]*program.Tensor

func newTable(h *program.Header) table {
	t := make(table, len(h.GetTensors()))
	for _, x := range h.GetTensors() {
		t[x.GetName()] = x
	}
	return t
}

// shape is a tensor as rows of cols values each.
type shape struct {
	typ        ggml.Type
	cols, rows uint64
}

// find is the shape of a tensor, or with experts > 0 of one expert's slice of it.
func (t table) find(name string, experts uint64) (shape, error) {
	x, ok := t[name]
	if !ok {
		return shape{}, fmt.Errorf("tensor %.80q is not in the file", name)
	}
	dims := x.GetDims()
	n, ok := product(dims)
	if !ok || len(dims) == 0 || len(dims) > 4 {
		return shape{}, fmt.Errorf("tensor %s: have shape %v, want 1 to 4 dims of at least 1", name, dims)
	}
	if experts > 0 {
		if len(dims) != 3 || dims[2] != experts {
			return shape{}, fmt.Errorf("tensor %s: have shape %v, want 3 dims, the last of %d experts", name, dims, experts)
		}
		n /= experts
	}
	return shape{ggml.Type(x.GetType()), dims[0], n / dims[0]}, nil
}

// run is neighbouring tensors of one type.
type run struct {
	form   ggml.Packing
	rows   uint64
	tensor string // the first, for errors
}

// stack is tensors of equal row length, one below the other.
type stack struct {
	cols uint64
	runs []run
}

// stack merges the tensors of a weight, or of one expert's part, into runs.
func (t table) stack(w *program.Weight, experts uint64) (stack, error) {
	var s stack
	if len(w.GetTensors()) == 0 {
		return s, errNoTensors
	}
	var rows uint64
	for i, name := range w.GetTensors() {
		x, err := t.find(name, experts)
		if err != nil {
			return s, err
		}
		form, ok := ggml.Form(x.typ)
		if !ok {
			return s, fmt.Errorf("tensor %s: have type %v, want one of %s", name, x.typ, ggml.FormNames())
		}
		if i == 0 {
			s.cols = x.cols
		}
		if x.cols != s.cols {
			return s, fmt.Errorf("tensor %s: have rows of %d values, want %d as in the stack's first tensor", name, x.cols, s.cols)
		}
		if _, _, err := form.Planes(x.rows, x.cols); err != nil {
			return s, fmt.Errorf("tensor %s: %w", name, err)
		}
		if rows += x.rows; rows > maxRows {
			return s, errTooLarge
		}
		if n := len(s.runs); n > 0 && s.runs[n-1].form.Type() == x.typ {
			s.runs[n-1].rows += x.rows
		} else {
			s.runs = append(s.runs, run{form, x.rows, name})
		}
	}
	return s, nil
}
