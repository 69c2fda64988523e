package layer

import "github.com/sluicehost/sluice/sdk/program"

// Gate says where the gates of a value lie in another's rows. The value's rows fall into groups
// of Width values; group j's gate is value Offset + j · Stride of the other's row, or, with Each,
// its Width values from there on, one gate per value.
type Gate struct {
	Width  int // values of a group: a head's, or all where a token has one gate
	Stride int // from one group's gates to the next group's; 0 is as close as they fit
	Offset int
	Each   bool
}

// gates is how many gates a group has.
func (s Gate) gates() int {
	if s.Each {
		return s.Width
	}
	return 1
}

// Gate is x ⊙ sigmoid(g), with the gates where s says.
func (l *Layer) Gate(x, g *Value, s Gate) *Value {
	y := l.scratch("gated", x.width)
	if s.Stride == 0 {
		s.Stride = s.gates()
	}
	if s.Width < 1 || x.width%s.Width != 0 || s.Offset < 0 || s.Stride < 0 || s.Offset+(x.width/s.Width-1)*s.Stride+s.gates() > g.width {
		l.fail("blk.%d: gate: have %d values in groups of %d, gates from %d on every %d: want whole groups, and gates within %d values",
			l.number, x.width, s.Width, s.Offset, s.Stride, g.width)
		return y
	}
	each, w := uint32(0), l.width(64)
	if s.Each {
		each = 1
	}
	o := &op{
		label: l.prefix + "gate",
		spec:  spec("gate").choose("out", "put").with("EACH", each).with("W", w),
		consts: consts{"n": uint32(x.width), "width": uint32(s.Width), "g_row": uint32(g.width),
			"g_off": uint32(s.Offset), "g_step": uint32(s.Stride)},
		binds: binds{"x": read(l.plain(x)), "g": read(l.plain(g)), "y": write(y)},
		grid:  []*program.Term{groups(x.width, int(w)), perRow()},
	}
	l.emit(o)
	y.ops = []*op{o}
	return y
}
