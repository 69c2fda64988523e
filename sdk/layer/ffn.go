package layer

import (
	"maps"

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

// GatedFFN is a feed-forward block: down(act(gate·x) ⊙ up·x). The three names are tensors of
// the block, [width, FF] twice and [FF, width]; of routed experts, with a third dim.
type GatedFFN struct {
	Gate, Up, Down string
	FF             int
	Act            Activation
	Limit          float64 // clamp of the activation and of up; 0 is none
}

// FFN is the dense block f on x, which may be a norm.
func (l *Layer) FFN(x *Value, f GatedFFN) *Value {
	gate, up := l.matrix(x.width, f.FF, l.prefix+f.Gate), l.matrix(x.width, f.FF, l.prefix+f.Up)
	y := l.scratch("ffn", f.FF)
	if gate == nil || up == nil {
		return l.Linear(y, x.width, f.Down)
	}
	if !sameBands(gate.placed, up.placed) {
		l.fail("tensors %s and %s: have unlike types, want one type: no kernel reads such a pair yet", gate.label, up.label)
	}
	for i, b := range gate.placed.GetBands() {
		o := l.pair(gate.placed.Bands[i], x)
		o.label = gate.label + "+up"
		o.spec.typed("gate", b.Type).typed("up", b.Type).choose("act", string(f.Act))
		o.binds["gate"], o.binds["up"], o.binds["y"] = at(gate.band(i)), at(up.band(i)), write(y)
		maps.Copy(o.consts, consts{"gate": planes(b), "up": planes(up.placed.Bands[i]), "rows": uint32(b.Rows), "units": uint32(x.width / 32),
			"y_stride": uint32(f.FF), "y_off": uint32(b.Row0), "limit": f.Limit})
		l.emit(o)
	}
	return l.Linear(y, x.width, f.Down)
}

// pair is the first half of a gated FFN for one band of its two weights, without them.
func (e *Encoder) pair(b *program.Band, x *Value) *op {
	rows, units := int(b.Rows), x.width/32
	if e.many() {
		x = e.plain(x)
		t := kernels.MatmulTile(e.limits, 2*rows, units).Pair()
		return &op{spec: spec("matmul_pair").tiled(t), consts: consts{}, binds: binds{"x": read(x)},
			grid: []*program.Term{groups(rows, t.BR), perRows(t.BT)}}
	}
	s := e.split(rows, units)
	o := &op{spec: spec("pair"), consts: consts{}, binds: binds{}, grid: []*program.Term{groups(rows, s.rows()), perRow()}}
	s.apply(o.spec)
	return o.input(x)
}

// sameBands reports whether two weights are cut and typed alike.
func sameBands(a, b *program.Placed) bool {
	if len(a.GetBands()) != len(b.GetBands()) {
		return false
	}
	for i, x := range a.GetBands() {
		y := b.GetBands()[i]
		if x.Type != y.Type || x.Row0 != y.Row0 || x.Rows != y.Rows {
			return false
		}
	}
	return true
}
