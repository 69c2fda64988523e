package kernels

import (
	"testing"

	"github.com/sluicehost/sluice/sdk/program"
)

// chunkDispatches are the largest dispatches of the many-token kernels for a model on a device.
func chunkDispatches(m realShape, l *program.Limits) []dispatched {
	wide := MatmulTile(l, 8192, int(m.widest/32))
	pair, down := ExpertTile(l, int(m.hidden/32)).Pair(), ExpertTile(l, int(m.expertFF/32))
	consts := func(rows, units uint32) map[string]uint32 {
		return map[string]uint32{"rows": rows, "units": units, "top_k": m.topK}
	}
	return []dispatched{
		{"matmul", wide.Params, consts(m.hidden, m.widest/32), wide.Choice},
		{"matmul_pair", wide.Params, consts(m.widest, m.hidden/32), wide.Choice},
		{"expert_matmul_pair", pair.Params, consts(m.expertFF, m.hidden/32), pair.Choice},
		{"expert_matmul", down.Params, consts(m.hidden, m.expertFF/32), down.Choice},
		{"moe_sum", nil, consts(0, 0), ""},
	}
}

// TestTileRows: fewer rows where rows are so long that the loops would be ended, and fewer slots where memory is short.
func TestTileRows(t *testing.T) {
	cpu := &program.Limits{Cpu: true, LoopLimit: 65535}
	for _, c := range []struct {
		limits        *program.Limits
		rows, units   int
		br, bt        int
		pair, experts bool
	}{
		{cpu, 100, 64, 32, 32, false, false},
		{cpu, 100, 64, 16, 32, true, false},
		{cpu, 100, 1900, 32, 32, false, false},
		{cpu, 100, 2000, 16, 32, false, false},
		{cpu, 100, 5000, 8, 32, false, true},
		{&program.Limits{WorkgroupBytes: 48 << 10}, 8192, 64, 64, 128, false, false},
		{&program.Limits{WorkgroupBytes: 16 << 10}, 8192, 64, 64, 32, false, false},
		{&program.Limits{WorkgroupBytes: 16 << 10}, 8192, 64, 32, 32, true, true},
	} {
		tile := MatmulTile(c.limits, c.rows, c.units)
		if c.experts {
			tile = ExpertTile(c.limits, c.units)
		}
		if c.pair {
			tile = tile.Pair()
		}
		if tile.BR != c.br || tile.BT != c.bt {
			t.Errorf("%+v: have a tile of %d x %d", c, tile.BR, tile.BT)
		}
	}
}
