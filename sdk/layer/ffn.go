package layer

import "github.com/sluicehost/sluice/sdk/program"

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
		s := l.split(int(b.Rows), x.width/32)
		o := &op{
			label: gate.label + "+up",
			spec:  spec("pair").typed("gate", b.Type).typed("up", b.Type).choose("act", string(f.Act)),
			consts: consts{"gate": planes(b), "up": planes(up.placed.Bands[i]), "rows": uint32(b.Rows), "units": uint32(x.width / 32),
				"y_stride": uint32(f.FF), "y_off": uint32(b.Row0), "limit": f.Limit},
			binds: binds{"gate": at(gate.band(i)), "up": at(up.band(i)), "y": write(y)},
			grid:  []*program.Term{groups(int(b.Rows), s.rows()), perRow()},
		}
		s.apply(o.spec)
		l.emit(o.input(x))
	}
	return l.Linear(y, x.width, f.Down)
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
