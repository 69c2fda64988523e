package layer

import "github.com/sluicehost/sluice/sdk/program"

// The most that the routing kernel holds in shared memory.
const (
	maxExperts = 512
	maxTopK    = 32
)

// Router picks a token's experts from the logits Weight · x. Sigmoid routers rank by
// sigmoid + Bias, softmax routers by softmax; weights are the probabilities, divided by their
// sum where Normalize is set, times Scale.
type Router struct {
	Weight    string // tensor of the block, [width, experts], F32
	Sigmoid   bool
	Bias      string // tensor of the block, [experts]; sigmoid routers only
	Normalize bool
	Scale     float64
}

// Experts routes x to its top experts and sums what they make of it, in pick order, each
// times its weight. It ends the trunk of this layer. The expert tensors become the layer's
// record: they stream from disk.
func (l *Layer) Experts(x *Value, r Router, f GatedFFN) *Value {
	y := l.scratch("experts", x.width)
	pw := l.route(x, r)
	rec := l.expertRecord(x.width, f)
	if pw == nil || rec == nil {
		return y
	}
	if l.many() {
		x = l.plain(x) // computed in the trunk, once, not in every wave
	}
	l.section.layer = l.number
	l.open(program.Kind_EXPERTS, l.number)
	act := l.scratch("act", int(l.source.model().GetTopK())*f.FF)
	if l.many() {
		l.expertTiles(x, f, rec, act, pw, y)
		return y
	}
	l.emit(l.expertPair(x, f, rec, act))
	down := l.expertDown(f, rec, act, pw, y)
	l.emit(down)
	y.ops = []*op{down}
	l.open(program.Kind_COMBINE, l.number)
	return y
}

// route emits the router: logits, then picks and their weights.
func (l *Layer) route(x *Value, r Router) *Value {
	e, k := int(l.source.model().GetExperts()), int(l.source.model().GetTopK())
	if e < 1 || e > maxExperts || k < 1 || k > min(e, maxTopK) {
		l.fail("have %d experts with %d used, want at most %d and %d", e, k, maxExperts, maxTopK)
		return nil
	}
	logits, pw := l.Linear(x, e, r.Weight), l.scratch("pw", k)
	o := &op{
		label:  l.prefix + "topk",
		spec:   spec("topk").choose("score", "softmax").with("E", uint32(e)).with("K", uint32(k)).with("NORM", 0).with("W", l.width(64)),
		consts: consts{"scale": r.Scale},
		binds:  binds{"r": read(logits), "picks": table(program.Table_PICKS), "pw": write(pw)},
		grid:   []*program.Term{perRow()},
	}
	if r.Sigmoid {
		o.spec.choose("score", "sigmoid")
		o.binds["bias"] = at(l.vector(e, l.prefix+r.Bias))
	}
	if r.Normalize {
		o.spec.with("NORM", 1)
	}
	l.emit(o)
	return pw
}

// expertRecord declares gate, up and down of one expert as the layer's record.
func (l *Layer) expertRecord(width int, f GatedFFN) *program.PlacedRecord {
	gate := l.expertPart(width, f.FF, l.prefix+f.Gate)
	up := l.expertPart(width, f.FF, l.prefix+f.Up)
	down := l.expertPart(f.FF, width, l.prefix+f.Down)
	if gate == nil || up == nil || down == nil {
		return nil
	}
	rec, err := l.source.record(&program.Record{Layer: uint32(l.number), Parts: []*program.Weight{gate, up, down}})
	if err != nil {
		l.fail("%w", err)
		return nil
	}
	return rec
}

func (l *Layer) expertPair(x *Value, f GatedFFN, rec *program.PlacedRecord, act *Value) *op {
	gate, up := rec.Parts[0].Bands[0], rec.Parts[1].Bands[0]
	k, s := l.source.model().GetTopK(), l.expertSplit(f.FF, x.width/32)
	o := &op{
		label: l.prefix + "experts.gate+up",
		spec:  spec("expert_pair").typed("gate", gate.Type).typed("up", up.Type).choose("act", string(f.Act)),
		consts: consts{"gate": planes(gate), "up": planes(up), "rows": uint32(f.FF), "units": uint32(x.width / 32),
			"stride": uint32(rec.Stride / 16), "gate_row0": uint32(0), "up_row0": uint32(0), "top_k": k, "limit": f.Limit},
		binds: binds{"bank": bank(), "picks": table(program.Table_PICKS), "residency": table(program.Table_RESIDENCY), "y": write(act)},
		grid:  []*program.Term{groups(f.FF, s.rows()), perRow(), one(int(k))},
	}
	s.apply(o.spec)
	return o.input(x)
}

func (l *Layer) expertDown(f GatedFFN, rec *program.PlacedRecord, act, pw, y *Value) *op {
	down := rec.Parts[2].Bands[0]
	s := l.expertSplit(y.width, f.FF/32)
	o := &op{
		label:  l.prefix + "experts.down",
		spec:   spec("expert_down").typed("down", down.Type).choose("out", "put"),
		consts: consts{"down": planes(down), "rows": uint32(y.width), "units": uint32(f.FF / 32), "stride": uint32(rec.Stride / 16), "top_k": l.source.model().GetTopK()},
		binds: binds{"act": read(act), "bank": bank(), "picks": table(program.Table_PICKS), "residency": table(program.Table_RESIDENCY),
			"pw": read(pw), "y": write(y)},
		grid: []*program.Term{groups(y.width, s.rows()), perRow()},
	}
	s.apply(o.spec)
	return o
}
