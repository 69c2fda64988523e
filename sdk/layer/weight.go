package layer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// matrix is a weight that a kernel multiplies by: its bands, and how to bind them.
type matrix struct {
	index  int
	placed *program.Placed
	label  string
}

// band binds band i of the matrix.
func (m *matrix) band(i int) *program.Binding {
	return &program.Binding{At: &program.Binding_Weight{Weight: &program.WeightBand{Weight: uint32(m.index), Band: uint32(i)}}}
}

// matrix asks for tensors of cols values a row, rows in all, stacked; one of one dim is a row.
func (e *Encoder) matrix(cols, rows int, names ...string) *matrix {
	want := fmt.Sprintf("[%d, %d]", cols, rows)
	if len(names) > 1 {
		want = fmt.Sprintf("[%d, …]", cols)
	}
	have, shapes := uint64(0), make([]string, len(names))
	for i, name := range names {
		t := e.source.tensor(name)
		switch {
		case t == nil:
			e.fail("tensor %s is missing: want %s", name, want)
			return nil
		case len(t.Dims) < 1 || len(t.Dims) > 2 || t.Dims[0] != uint64(cols):
			e.fail("tensor %s: have shape %s, want %s", name, shapeOf(t), want)
			return nil
		case !e.matrixType(t):
			return nil
		}
		have, shapes[i] = have+rowsOf(t), shapeOf(t)
	}
	switch {
	case have == uint64(rows):
	case len(names) == 1:
		e.fail("tensor %s: have shape %s, want %s", names[0], shapes[0], want)
		return nil
	default: // any of them may be the wrong one
		e.fail("tensors %s: have shapes %s, want %d rows in all", strings.Join(names, ", "), strings.Join(shapes, ", "), rows)
		return nil
	}
	i, placed, err := e.source.weight(&program.Weight{Name: stackName(names), Tensors: names, Use: program.Use_MATRIX})
	if err != nil {
		e.fail("%w", err)
		return nil
	}
	return &matrix{index: i, placed: placed, label: stackLabel(names)}
}

// rowsOf is how many rows a matrix has: a tensor of one dim is one row.
func rowsOf(t *program.Tensor) uint64 {
	if len(t.Dims) < 2 {
		return 1
	}
	return t.Dims[1]
}

// matrixType checks that kernels can read a tensor as a matrix.
func (e *Encoder) matrixType(t *program.Tensor) bool { return e.rowsOf(t, ggml.UnitSize) }

// rowsOf checks that a tensor's type can be read, and that its rows are whole blocks and a multiple of unit values.
func (e *Encoder) rowsOf(t *program.Tensor, unit uint64) bool {
	if _, ok := ggml.Form(typeOf(t)); !ok {
		e.fail("tensor %s: have type %v, want one that kernels read (%s)", t.Name, typeOf(t), ggml.FormNames())
		return false
	}
	if unit = max(unit, typeOf(t).BlockSize()); t.Dims[0]%unit != 0 {
		e.fail("tensor %s: have rows of %d values, want a multiple of %d for type %v: quantize it to another type", t.Name, t.Dims[0], unit, typeOf(t))
		return false
	}
	return true
}

// vector binds tensors of n values in all, one after the other, as f32.
func (e *Encoder) vector(n int, names ...string) *program.Binding {
	have, shape := uint64(0), ""
	for _, name := range names {
		t := e.source.tensor(name)
		if t == nil {
			e.fail("tensor %s is missing: want %d values", name, n)
			return nil
		}
		if !slices.Contains([]ggml.Type{ggml.F32, ggml.F16, ggml.BF16}, typeOf(t)) {
			e.fail("tensor %s: have type %v, want F32, F16 or BF16", name, typeOf(t))
			return nil
		}
		values := uint64(1)
		for _, d := range t.Dims {
			values *= d
		}
		have, shape = have+values, shapeOf(t)
	}
	switch {
	case have == uint64(n):
	case len(names) == 1:
		e.fail("tensor %s: have shape %s, want %d values", names[0], shape, n)
		return nil
	default: // any of them may be the wrong one
		e.fail("tensors %s: have %d values in all, want %d", strings.Join(names, ", "), have, n)
		return nil
	}
	i, _, err := e.source.weight(&program.Weight{Name: stackName(names), Tensors: names, Use: program.Use_VECTOR})
	if err != nil {
		e.fail("%w", err)
		return nil
	}
	return &program.Binding{At: &program.Binding_Weight{Weight: &program.WeightBand{Weight: uint32(i)}}}
}

// expertPart checks a 3-D tensor [cols, rows, experts] and makes it a record's part.
func (l *Layer) expertPart(cols, rows int, name string) *program.Weight {
	t, experts := l.source.tensor(name), uint64(l.source.model().GetExperts())
	switch {
	case t == nil:
		l.fail("tensor %s is missing: want [%d, %d, %d]", name, cols, rows, experts)
	case len(t.Dims) != 3 || t.Dims[0] != uint64(cols) || t.Dims[1] != uint64(rows) || t.Dims[2] != experts:
		l.fail("tensor %s: have shape %s, want [%d, %d, %d]", name, shapeOf(t), cols, rows, experts)
	case l.matrixType(t):
		return &program.Weight{Name: name, Tensors: []string{name}, Use: program.Use_MATRIX}
	}
	return nil
}

// stackName names a weight of several tensors: its first tensor and the distinct rest of the others.
func stackName(names []string) string { return strings.Join(names, "+") }

// stackLabel is stackName for people: blk.3.attn_q+attn_k+attn_v.
func stackLabel(names []string) string {
	label := strings.TrimSuffix(names[0], ".weight")
	cut := strings.LastIndex(label, ".") + 1
	for _, n := range names[1:] {
		label += "+" + strings.TrimSuffix(strings.TrimPrefix(n, label[:cut]), ".weight")
	}
	return label
}
