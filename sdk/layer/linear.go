package layer

import (
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// Linear is W · x for tensors of the block with x's width as row length, stacked to rows
// rows in all. x may be a norm.
func (l *Layer) Linear(x *Value, rows int, tensors ...string) *Value {
	full := make([]string, len(tensors))
	for i, t := range tensors {
		full[i] = l.prefix + t
	}
	y := l.scratch("linear", rows)
	m := l.matrix(x.width, rows, full...)
	if m == nil {
		return y
	}
	for i, b := range m.placed.GetBands() {
		o := l.product(m, i, x)
		o.spec.choose("out", "put")
		o.binds["y"] = write(y)
		o.consts["y_stride"], o.consts["y_off"] = uint32(rows), uint32(b.Row0)
		l.emit(o)
		y.ops = append(y.ops, o)
	}
	return y
}

// product is band · x for every token of the step, without its output.
func (e *Encoder) product(m *matrix, band int, x *Value) *op {
	rows := int(m.placed.Bands[band].Rows)
	if e.many() {
		return e.matmul(m, band, e.plain(x))
	}
	o := e.matvec(m, band, x, e.split(rows, x.width/32, m.placed.Bands[band].Type))
	o.spec.choose("rows", "all")
	o.grid = append(o.grid, perRow())
	return o
}

// matmul is product by tiles of rows and tokens.
func (e *Encoder) matmul(m *matrix, band int, x *Value) *op {
	b := m.placed.Bands[band]
	t := kernels.MatmulTile(e.limits, int(b.Rows), x.width/32)
	return &op{
		label:  m.label,
		spec:   spec("matmul").typed("w", b.Type).tiled(t),
		consts: consts{"planes": planes(b), "rows": uint32(b.Rows), "units": uint32(x.width / 32)},
		binds:  binds{"x": read(x), "w": at(m.band(band))},
		grid:   []*program.Term{groups(int(b.Rows), t.BR), perRows(t.BT)},
	}
}

// matvec is the operation for one band of a matrix, without its output.
func (e *Encoder) matvec(m *matrix, band int, x *Value, s split) *op {
	b := m.placed.Bands[band]
	o := &op{
		label:  m.label,
		spec:   spec("matvec").typed("w", b.Type),
		consts: consts{"planes": planes(b), "rows": uint32(b.Rows), "units": uint32(x.width / 32), "cap": 0.0},
		binds:  binds{"w": at(m.band(band))},
		grid:   []*program.Term{groups(int(b.Rows), s.rows())},
	}
	e.apply(o.spec, s, x.width/32)
	return e.input(o, x)
}

// planes are a band's plane starts as the kernels take them.
func planes(b *program.Band) (p [4]uint32) {
	copy(p[:], b.GetPlanes())
	return p
}

// Logits is the head: tensor · x for the rows whose logits are wanted. x is the residual
// stream or its norm.
func (e *Encoder) Logits(x *Value, tensor string) { e.CappedLogits(x, tensor, 0) }

// CappedLogits is Logits with a soft cap: limit · tanh(logit / limit). A limit of 0 is none.
func (e *Encoder) CappedLogits(x *Value, tensor string, limit float64) {
	vocab := int(e.source.model().GetVocab())
	e.hidden = x
	if x.norm != nil {
		e.hidden = x.norm.of
	}
	e.hidden.fixed = "hidden"
	e.openHead()
	m := e.matrix(x.width, vocab, tensor)
	if m == nil {
		return
	}
	rows := "outs"
	if x.norm != nil && !e.limits.GetCpu() {
		x, rows = e.normedOuts(x), "all"
	}
	for i, b := range m.placed.GetBands() {
		o := e.matvec(m, i, x, e.split(int(b.Rows), x.width/32, b.Type))
		o.spec.choose("rows", rows).choose("out", "put")
		if limit > 0 {
			o.spec.choose("out", "cap")
		}
		if o.binds["y"] = table(program.Table_LOGITS); rows == "outs" {
			o.binds["outs"] = table(program.Table_OUTS)
		}
		o.consts["y_stride"], o.consts["y_off"] = uint32(vocab), uint32(b.Row0)
		o.consts["cap"] = limit
		o.grid = append(o.grid, &program.Term{N: program.Var_O})
		e.emit(o)
	}
}

// normedOuts is a norm of the rows whose logits are wanted alone.
func (e *Encoder) normedOuts(x *Value) *Value {
	y := e.scratchShape("norm", x.width, &program.Buffer{PerOut: uint64(x.width)})
	o := x.norm.op(x.width, y, e.width(256))
	o.spec.choose("rows", "outs")
	o.binds["outs"] = table(program.Table_OUTS)
	o.grid = []*program.Term{{N: program.Var_O}}
	e.emit(o)
	return y
}
