package layer

import (
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// expertTiles emits the experts of many tokens: per wave, tiles of (token, pick) pairs that
// share an expert, a row of dn per pair; then, once, each token's sum in pick order. So
// neither waves nor tiles change a result.
func (l *Layer) expertTiles(x *Value, f GatedFFN, rec *expertBands, act, pw, y *Value) {
	k := l.source.model().GetTopK()
	dn := l.scratch("dn", int(k)*y.width)
	l.emit(l.tilePair(x, f, rec, act))
	l.emit(l.tileDown(f, rec, act, dn, y.width))
	l.open(program.Kind_COMBINE, l.number)
	sum := l.expertSum(dn, pw, y)
	l.emit(sum)
	y.ops = []*op{sum}
}

// tile is one expert kernel by tiles t, without its operands.
func (l *Layer) tile(name, label string, t kernels.Tile, rows, units int, rec *expertBands, y *Value) *op {
	l.out.program.TileRows = uint32(t.BT)
	return &op{
		label:  l.prefix + label,
		spec:   spec(name).tiled(t),
		consts: consts{"rows": uint32(rows), "units": uint32(units), "stride": rec.stride},
		binds: binds{"bank": bank(), "pairs": table(program.Table_PAIRS), "tiles": table(program.Table_TILES),
			"residency": table(program.Table_RESIDENCY), "y": write(y)},
		grid: []*program.Term{groups(rows, t.BR), {N: program.Var_G}},
	}
}

func (l *Layer) tilePair(x *Value, f GatedFFN, rec *expertBands, act *Value) *op {
	o := l.tile("expert_matmul_pair", "experts.gate+up", kernels.ExpertTile(l.limits, x.width/32).Pair(), f.FF, x.width/32, rec, act)
	rec.glu(o, f)
	o.consts["top_k"] = l.source.model().GetTopK()
	o.binds["x"] = read(l.plain(x))
	return o
}

func (l *Layer) tileDown(f GatedFFN, rec *expertBands, act, dn *Value, width int) *op {
	o := l.tile("expert_matmul", "experts.down", kernels.ExpertTile(l.limits, f.FF/32), width, f.FF/32, rec, dn)
	o.spec.typed("down", rec.down.Type)
	o.consts["down"] = planes(rec.down)
	o.binds["act"] = read(act)
	return o
}
