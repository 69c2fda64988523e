package kernels

import (
	"math"

	"github.com/sluicehost/sluice/sdk/program"
)

// Tile is the shape of what one workgroup of a many-token kernel (matmul, matmul_pair, expert_matmul, expert_matmul_pair)
// computes: BR rows of the result for BT tokens or pairs. The kernels' grids are ceil(rows / BR), ceil(T / BT) and, for experts,
// ceil(rows / BR), one tile each.
type Tile struct {
	BR, BT int
	Choice string            // the kernel's choice "tile": lib/tile_<Choice>.wgsl
	Params map[string]uint32 // the kernel's override constants
}

// MatmulTile is the tile for a weight of rows × 32·units on a device with limits l.
func MatmulTile(l *program.Limits, rows, units int) Tile {
	if l.GetCpu() {
		return lanesTile(l, units)
	}
	// Wide tiles are fastest where they leave groups enough for every core of the GPU: measured with 256 tokens on an H200
	// (132 cores), 31 TFLOP/s with 4096 rows, 23 with 2048, 17 with 1024.
	switch {
	case rows >= 4096:
		return sharedTile(l, 128, 2)
	case rows >= 2048:
		return sharedTile(l, 64, 2)
	}
	return sharedTile(l, 32, 1)
}

// ExpertTile is the tile for the experts' weights. Its BT depends on the device alone: the tiles are cut once per layer, for
// all kernels that run over them (Program.tile_rows).
func ExpertTile(l *program.Limits, units int) Tile {
	if l.GetCpu() {
		return lanesTile(l, units)
	}
	return sharedTile(l, 32, 2) // 12 TFLOP/s with 16 pairs an expert on an H200, 24 with 32, 28 with 64
}

// Pair is t for a gated pair of weights: half of the tile's rows are the gate's.
func (t Tile) Pair() Tile {
	t.BR /= 2
	return t
}

// lanesTile is lib/tile_lanes.wgsl for rows of 32·units columns. 32 rows are the best of compile time (it grows with their
// square) and speed; fewer where the device would end the loops.
func lanesTile(l *program.Limits, units int) Tile {
	const lanes = 8
	rows := 32
	for rows > 4 && l.GetLoopLimit() > 0 && laneLoops(float64(rows), float64(units)) > float64(l.GetLoopLimit()) {
		rows /= 2
	}
	return Tile{BR: rows, BT: 4 * lanes, Choice: "lanes", Params: map[string]uint32{"W": lanes, "TR": uint32(rows), "BT": 4 * lanes}}
}

// laneLoops is how often the loops of lib/tile_lanes.wgsl run.
func laneLoops(rows, units float64) float64 {
	return loop(units, loop(rows, 0)) + loop(math.Ceil(rows/4), 0)
}

// tileLoops is that of a many-token kernel whose tiles have rows rows per row of the result.
func tileLoops(rows float64) func(l *loops) float64 {
	return func(l *loops) float64 { return tilePasses(l, rows*l.c("rows")) }
}

// tilePasses is that of tiles over rows rows.
func tilePasses(l *loops, rows float64) float64 {
	if _, shared := l.kernel.GetParams()["Q"]; shared {
		return loop(l.c("units"), 0)
	}
	return laneLoops(min(l.p("TR"), rows), l.c("units"))
}

// sharedTile is lib/tile_shared.wgsl for slots columns of results, or fewer where its arrays would not fit.
func sharedTile(l *program.Limits, slots, q int) Tile {
	const rows = 64
	for slots > 32 && uint32(sharedBytes(slots)) > l.GetWorkgroupBytes() {
		slots /= 2
	}
	w := 4 * slots / q
	return Tile{BR: rows, BT: slots, Choice: "shared", Params: map[string]uint32{"TR": rows, "BT": uint32(slots), "Q": uint32(q),
		"W": uint32(w), "TN": uint32(w / 16), "XS": uint32(slots/4 + 1)}}
}

// sharedBytes is the workgroup memory of lib/tile_shared.wgsl: 32 columns of 17 and slots/4 + 1 vec4s.
func sharedBytes(slots int) int { return 32 * 16 * (17 + slots/4 + 1) }
