package layer

import (
	"maps"

	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// headMatrix asks for a tensor of the block [cols, rows, heads]: a matrix per head, one after the other.
func (l *Layer) headMatrix(cols, rows, heads int, name string) *headMatrix {
	name = l.prefix + name
	t := l.source.tensor(name)
	switch {
	case t == nil:
		l.fail("tensor %s is missing: want [%d, %d, %d]", name, cols, rows, heads)
		return nil
	case len(t.Dims) != 3 || t.Dims[0] != uint64(cols) || t.Dims[1] != uint64(rows) || t.Dims[2] != uint64(heads):
		l.fail("tensor %s: have shape %s, want [%d, %d, %d]", name, shapeOf(t), cols, rows, heads)
		return nil
	case !l.matrixType(t):
		return nil
	}
	i, placed, err := l.source.weight(&program.Weight{Name: name, Tensors: []string{name}, Use: program.Use_MATRIX})
	if err != nil {
		l.fail("%w", err)
		return nil
	}
	return &headMatrix{matrix: matrix{index: i, placed: placed, label: stackLabel([]string{name})}, cols: cols, rows: rows}
}

// headMatrix is a weight with a matrix of cols × rows for each head.
type headMatrix struct {
	matrix
	cols, rows int
}

// perHead writes each head's m · x to y: the head's part of x begins at a multiple of xStep, that of y at one of yStep.
func (l *Layer) perHead(m *headMatrix, x *Value, xStep int, y *Value, yStep int) {
	for i, b := range m.placed.GetBands() {
		first, behind := int(b.Row0)/m.rows, (int(b.Row0+b.Rows)+m.rows-1)/m.rows
		o := &op{consts: consts{}, binds: binds{"x": read(x), "w": at(m.band(i)), "y": write(y)}}
		l.perHeadForm(o, m, b.Type, behind-first)
		o.label = m.label
		o.spec.typed("w", b.Type)
		maps.Copy(o.consts, consts{"planes": planes(b), "rows": uint32(b.Rows), "units": uint32(m.cols / 32), "row0": uint32(b.Row0), "head_rows": uint32(m.rows),
			"x_stride": uint32(x.width / 4), "x_step": uint32(xStep / 4), "y_stride": uint32(y.width), "y_step": uint32(yStep)})
		l.emit(o)
	}
}

// perHeadForm picks the kernel for a band that touches heads heads.
func (l *Layer) perHeadForm(o *op, m *headMatrix, typ uint32, heads int) {
	if l.many() {
		t := kernels.MatmulTile(l.limits, m.rows*heads, m.cols/32)
		o.spec = spec("matmul_heads").tiled(t)
		o.grid = []*program.Term{groups(m.rows, t.BR), perRows(t.BT), one(heads)}
		return
	}
	s := l.split(m.rows, m.cols/32, typ)
	o.spec = spec("matvec_heads")
	l.apply(o.spec, s, m.cols/32)
	o.grid = []*program.Term{groups(m.rows, s.rows()), one(heads), perRow()}
}
