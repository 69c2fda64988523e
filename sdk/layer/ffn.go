package layer

import (
	"maps"
	"math"

	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// Activation of a gated FFN.
type Activation string

// The activations that the kernels have: lib/act_*.wgsl.
const (
	SiLU Activation = "silu"
	GELU Activation = "gelu" // tanh form
)

// GatedFFN is a feed-forward block: down(act(gate·x) ⊙ up·x). Gate and Up are tensors of the
// block of shape [width, FF]; GateUp, used where the block has it, is both in one, [width, 2·FF],
// gate rows first. Down is [FF, width]. Routed experts have a third dim each. Types may differ.
type GatedFFN struct {
	Gate, Up string
	GateUp   string
	Down     string
	FF       int
	Act      Activation
	Limit    float64 // min(act, Limit) ⊙ clamp(up, ±Limit); 0 is none
}

// fused reports whether the block has gate and up in one tensor. Where it has no form of them, so it is too: the
// error then names that tensor.
func (l *Layer) fused(f GatedFFN) bool {
	return f.GateUp != "" && (l.Has(f.GateUp) || !l.Has(f.Gate) && !l.Has(f.Up))
}

// checkFFN refuses what is no feed-forward block.
func (l *Layer) checkFFN(f GatedFFN) bool {
	switch {
	case f.FF < 1 || f.FF > math.MaxInt32/2:
		l.fail("blk.%d: feed-forward: have a width of %d, want 1 to %d", l.number, f.FF, math.MaxInt32/2)
	case !(f.Limit >= 0) || math.IsInf(f.Limit, 0):
		l.fail("blk.%d: feed-forward: have a clamp at %v, want one above 0, or 0 for none", l.number, f.Limit)
	case f.GateUp != "" && f.Gate != "" && !l.Has(f.GateUp) && !l.Has(f.Gate):
		l.fail("tensor %s%s is missing, and so is %s%s: want one of them", l.prefix, f.Gate, l.prefix, f.GateUp)
	default:
		return true
	}
	return false
}

// FFN is the dense block f on x, which may be a norm.
func (l *Layer) FFN(x *Value, f GatedFFN) *Value {
	y := l.scratch("ffn", f.FF)
	if !l.checkFFN(f) {
		return l.scratch("ffn", x.width)
	}
	for _, p := range l.pairs(x.width, f) {
		o := l.pair(p, x)
		o.label = p.label
		o.spec.typed("gate", p.gate.Type).typed("up", p.up.Type).choose("act", string(f.Act))
		o.binds["gate"], o.binds["up"], o.binds["y"] = at(p.gate.binding), at(p.up.binding), write(y)
		maps.Copy(o.consts, consts{"gate": planes(p.gate.Band), "gate_row0": uint32(p.gate.row0), "up": planes(p.up.Band), "up_row0": uint32(p.up.row0),
			"rows": uint32(p.rows), "units": uint32(x.width / 32), "y_stride": uint32(f.FF), "y_off": uint32(p.row), "limit": f.Limit})
		l.emit(o)
	}
	return l.Linear(y, x.width, f.Down)
}

// pair is the first half of a gated FFN for some rows of its two weights, without them.
func (e *Encoder) pair(p pairRows, x *Value) *op {
	rows, units := p.rows, x.width/32
	if e.many() {
		x = e.plain(x)
		t := kernels.MatmulTile(e.limits, 2*rows, units).Pair()
		return &op{spec: spec("matmul_pair").tiled(t), consts: consts{}, binds: binds{"x": read(x)},
			grid: []*program.Term{groups(rows, t.BR), perRows(t.BT)}}
	}
	s := e.split(rows, units, p.gate.Type, p.up.Type)
	o := &op{spec: spec("pair"), consts: consts{}, binds: binds{}, grid: []*program.Term{groups(rows, s.rows()), perRow()}}
	e.apply(o.spec, s, units)
	return e.input(o, x)
}

// bandRows are rows of a band, from row0 of it on.
type bandRows struct {
	*program.Band
	binding *program.Binding
	row0    int
}

// pairRows are rows of a gated FFN whose gate rows lie in one band, and their up rows too.
type pairRows struct {
	label     string
	row, rows int // of the result
	gate, up  bandRows
}

// pairs cuts a gated FFN where a band of its gate or of its up ends. The bands depend on types and on the device's
// bindings, and in a fused tensor one may hold the last gate rows and the first up rows.
func (l *Layer) pairs(width int, f GatedFFN) (out []pairRows) {
	var gate, up *matrix
	upRow0, both := 0, ""
	if l.fused(f) {
		gate = l.matrix(width, 2*f.FF, l.prefix+f.GateUp)
		up, upRow0 = gate, f.FF
	} else {
		gate, up = l.matrix(width, f.FF, l.prefix+f.Gate), l.matrix(width, f.FF, l.prefix+f.Up)
		both = "+up"
	}
	if gate == nil || up == nil {
		return nil
	}
	for row := 0; row < f.FF; {
		g, gateLeft := gate.from(row)
		u, upLeft := up.from(upRow0 + row)
		n := min(gateLeft, upLeft, f.FF-row)
		out = append(out, pairRows{label: gate.label + both, row: row, rows: n, gate: g, up: u})
		row += n
	}
	return out
}

// from finds a row of the matrix, and how many of its band there are from it on.
func (m *matrix) from(row int) (b bandRows, left int) {
	for i, band := range m.placed.GetBands() {
		if at := row - int(band.Row0); at >= 0 && at < int(band.Rows) {
			return bandRows{Band: band, binding: m.band(i), row0: at}, int(band.Rows) - at
		}
	}
	panic("BUG: a weight's bands don't hold all of its rows")
}
