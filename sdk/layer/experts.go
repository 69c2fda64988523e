package layer

import "github.com/sluicehost/sluice/sdk/program"

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
	if l.many() || !l.limits.GetCpu() {
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
	sum := l.expertDown(f, rec, act, pw, y)
	l.emit(sum)
	y.ops = []*op{sum}
	l.open(program.Kind_COMBINE, l.number)
	return y
}

// expertBands are the matrices of one expert within its record; gate and up may be one, gate rows first.
type expertBands struct {
	gate, up, down *program.Band
	upRow0         uint32 // the first row of up
	stride         uint32 // of a record, in 16 bytes
}

// expertRecord declares gate, up and down of one expert as the layer's record.
func (l *Layer) expertRecord(width int, f GatedFFN) *expertBands {
	if !l.checkFFN(f) {
		return nil
	}
	var parts []*program.Weight
	if l.fused(f) {
		parts = append(parts, l.expertPart(width, 2*f.FF, l.prefix+f.GateUp))
	} else {
		parts = append(parts, l.expertPart(width, f.FF, l.prefix+f.Gate), l.expertPart(width, f.FF, l.prefix+f.Up))
	}
	parts = append(parts, l.expertPart(f.FF, width, l.prefix+f.Down))
	for _, p := range parts {
		if p == nil {
			return nil
		}
	}
	rec, err := l.source.record(&program.Record{Layer: uint32(l.number), Parts: parts})
	if err != nil {
		l.fail("%w", err)
		return nil
	}
	b := &expertBands{gate: rec.Parts[0].Bands[0], up: rec.Parts[len(parts)-2].Bands[0], down: rec.Parts[len(parts)-1].Bands[0],
		stride: uint32(rec.Stride / 16)}
	if l.fused(f) {
		b.upRow0 = uint32(f.FF)
	}
	return b
}

// glu gives a kernel over a bank the experts' gate and up.
func (b *expertBands) glu(o *op, f GatedFFN) {
	o.spec.typed("gate", b.gate.Type).typed("up", b.up.Type).choose("act", string(f.Act))
	o.consts["gate"], o.consts["gate_row0"] = planes(b.gate), uint32(0)
	o.consts["up"], o.consts["up_row0"] = planes(b.up), b.upRow0
	o.consts["limit"] = f.Limit
}

func (l *Layer) expertPair(x *Value, f GatedFFN, rec *expertBands, act *Value) *op {
	k, s := l.source.model().GetTopK(), l.expertSplit(f.FF, x.width/32, rec.gate.Type, rec.up.Type)
	o := &op{
		label:  l.prefix + "experts.gate+up",
		spec:   spec("expert_pair"),
		consts: consts{"rows": uint32(f.FF), "units": uint32(x.width / 32), "stride": rec.stride, "top_k": k},
		binds:  binds{"bank": bank(), "picks": table(program.Table_PICKS), "residency": table(program.Table_RESIDENCY), "y": write(act)},
		grid:   []*program.Term{groups(f.FF, s.rows()), perRow(), one(int(k))},
	}
	rec.glu(o, f)
	l.apply(o.spec, s, x.width/32)
	return l.input(o, x)
}

// expertDown is the experts' second half. A GPU computes all picks at once and adds them up then: the last operation is returned,
// to be emitted.
func (l *Layer) expertDown(f GatedFFN, rec *expertBands, act, pw, y *Value) *op {
	if !l.limits.GetCpu() {
		dn := l.scratch("dn", int(l.source.model().GetTopK())*y.width)
		l.emit(l.expertMatvec(f, rec, act, dn, y.width))
		return l.expertSum(dn, pw, y)
	}
	s := l.split(y.width, f.FF/32)
	o := &op{
		label: l.prefix + "experts.down",
		spec:  spec("expert_down").typed("down", rec.down.Type).choose("out", "put"),
		consts: consts{"down": planes(rec.down), "rows": uint32(y.width), "units": uint32(f.FF / 32), "stride": rec.stride,
			"top_k": l.source.model().GetTopK()},
		binds: binds{"act": read(act), "bank": bank(), "picks": table(program.Table_PICKS), "residency": table(program.Table_RESIDENCY),
			"pw": read(pw), "y": write(y)},
		grid: []*program.Term{groups(y.width, s.rows()), perRow()},
	}
	s.apply(o.spec)
	return o
}

func (l *Layer) expertMatvec(f GatedFFN, rec *expertBands, act, dn *Value, width int) *op {
	k := l.source.model().GetTopK()
	s := l.expertDownSplit(f.FF/32, rec.down.Type)
	o := &op{
		label:  l.prefix + "experts.down",
		spec:   spec("expert_matvec").typed("down", rec.down.Type),
		consts: consts{"down": planes(rec.down), "rows": uint32(width), "units": uint32(f.FF / 32), "stride": rec.stride, "top_k": k},
		binds: binds{"x": read(act), "bank": bank(), "picks": table(program.Table_PICKS), "residency": table(program.Table_RESIDENCY),
			"y": write(dn)},
		grid: []*program.Term{groups(width, s.rows()), perRow(), one(int(k))},
	}
	l.apply(o.spec, s, f.FF/32)
	return o
}

// expertSum is a token's sum over its picks, in their order.
func (l *Layer) expertSum(dn, pw, y *Value) *op {
	w := l.width(64)
	kernel, per := spec("moe_sum").choose("out", "put").with("W", w).valued(y.width)
	return &op{
		label:  l.prefix + "experts.sum",
		spec:   kernel,
		consts: consts{"n": uint32(y.width), "top_k": l.source.model().GetTopK()},
		binds:  binds{"dn": read(dn), "pw": read(pw), "y": write(y)},
		grid:   []*program.Term{groups(y.width/per, int(w)), perRow()},
	}
}
