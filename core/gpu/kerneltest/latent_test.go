package kerneltest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

func TestLatent(t *testing.T) {
	r := random(t)
	sizes := [][2]uint32{{512, 64}, {64, 32}, {32, 8}, {96, 2}}
	for i, row := range pairs(r, len(sizes), len(widths)) {
		c := build(t, kernels.Spec{Name: "latent", Params: map[string]uint32{"RANK": sizes[row[0]][0], "ROT": sizes[row[0]][1], "W": widths[row[1]]}})
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for range 3 {
				check(t, "latent", latentCase(r, c))
			}
		})
	}
}

// latentCase has rows of q and kv with more behind, as where other weights are stacked on theirs.
func latentCase(r *rand.Rand, c kerneltest.Case) kerneltest.Case {
	c = fresh(c)
	rank, rot := int(c.Kernel.Params["RANK"]), int(c.Kernel.Params["ROT"])
	tokens, row0, pos0 := pick(r, 1, 5), pick(r, 0, 3), r.IntN(40)
	heads, nope := pick(r, 1, 3, 8), 32*(1+r.IntN(4))
	qRow, kvRow := heads*(nope+rot)+r.IntN(3), rank+rot+r.IntN(5)
	c.Step = program.StepUniform{T: uint32(tokens), Pos0: uint32(pos0), S: uint32(pos0 + tokens), Row0: uint32(row0), Chunk: uint32(tokens)}
	c.Constants = map[string]any{"heads": uint32(heads), "q_stride": uint32(qRow), "nope": uint32(nope), "kv_stride": uint32(kvRow), "eps": 1e-6}
	c.Memory["q"], c.Memory["kv"] = after(row0*qRow, normal(r, tokens*qRow)), after(row0*kvRow, normal(r, tokens*kvRow))
	c.Memory["norm"], c.Memory["rope"] = kerneltest.F32(normal(r, rank)), after(row0*rot, normal(r, tokens*rot))
	c.Memory["query"] = kerneltest.Output(program.Elem_F32, (row0+tokens)*heads*(rank+rot))
	c.Memory["cache"] = kerneltest.Output(program.Elem_F32, (pos0+tokens+2)*(rank+rot))
	c.Grid = [3]uint32{uint32(heads + 1), uint32(tokens), 1}
	c.Bounds["query"], c.Bounds["cache"] = fewBound, fewBound
	return c
}

func TestMatvecHeads(t *testing.T) {
	r := random(t)
	types := kerneltest.Types()
	axes := []int{len(types), len(fewSplits), 2}
	type form struct {
		typ ggml.Type
		split
		x string
	}
	var forms []form
	for _, row := range also(r, 2, pairs(r, axes...), axes...) {
		forms = append(forms, form{types[row[0]], fewSplits[row[1]], choice(row[2], "plain", "staged")})
	}
	for i, s := range splits { // the split and the type do not know of each other
		if !slices.Contains(fewSplits, s) {
			forms = append(forms, form{pick(r, types...), s, choice(i%2, "plain", "staged")})
		}
	}
	for i, f := range forms {
		typ, s := f.typ, f.split
		c := build(t, kernels.Spec{Name: "matvec_heads", Types: map[string]ggml.Type{"w": typ}, Params: s.params(), Choices: map[string]string{"x": f.x}})
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for j := range 2 {
				x := headsShape(r, s.w/s.l*s.r, typ)
				if j == 0 {
					x.row0, x.rows = 0, x.heads*x.headRows // all in one band
				}
				c := perHeadCase(r, c, x)
				c.Grid = [3]uint32{s.groups(x.headRows), x.touched(), uint32(x.tokens)}
				check(t, "matvec_heads", c)
			}
		})
	}
}

func TestMatmulHeads(t *testing.T) {
	r := random(t)
	for i, f := range tiledForms(r) {
		c := build(t, f.spec("matmul_heads", "w"))
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for j := range 3 {
				x := headsShape(r, f.tile.BR, f.typ)
				if j == 0 {
					x.row0, x.rows = 0, x.heads*x.headRows
				}
				x.tokens = pick(r, 2, f.tile.BT, f.tile.BT+1)
				check(t, "matmul_heads", matmulHeadsCase(r, c, f.tile, x))
			}
		})
	}
}

func matmulHeadsCase(r *rand.Rand, c kerneltest.Case, tile kernels.Tile, x headShape) kerneltest.Case {
	c = perHeadCase(r, c, x)
	g := tileGrid(tile, x.headRows, x.tokens)
	c.Grid = [3]uint32{g[0], g[1], x.touched()}
	return c
}

// headShape is heads matrices of headRows rows, of which the band has rows from row0 on.
type headShape struct{ heads, headRows, units, row0, rows, tokens int }

// headsShape draws a band that begins and ends anywhere; a group of the kernel has per rows.
func headsShape(r *rand.Rand, per int, typ ggml.Type) headShape {
	x := headShape{heads: 1 + r.IntN(5), headRows: min(70, pick(r, 1, per-1, per, per+1, 2*per)), units: 1 + r.IntN(9), tokens: 1 + r.IntN(3)}
	x.headRows = max(1, x.headRows)
	if typ.BlockSize() > 32 {
		x.units = 8 * (1 + r.IntN(2))
	}
	x.row0 = r.IntN(x.heads * x.headRows)
	x.rows = 1 + r.IntN(x.heads*x.headRows-x.row0)
	return x
}

// touched is how many heads the band has rows of.
func (x headShape) touched() uint32 {
	return uint32((x.row0+x.rows+x.headRows-1)/x.headRows - x.row0/x.headRows)
}

// perHeadCase has inputs and outputs with gaps between the heads.
func perHeadCase(r *rand.Rand, c kerneltest.Case, x headShape) kerneltest.Case {
	c = fresh(c)
	w := kerneltest.RandomMatrix(r, ggml.Type(c.Kernel.Types["w"]), x.rows, x.units*32)
	xStep, yStep := x.units*32+4*r.IntN(9), x.headRows+r.IntN(5)
	xRow, yRow := x.heads*xStep+4*r.IntN(3), x.heads*yStep+r.IntN(3)
	c.Step = program.StepUniform{T: uint32(x.tokens)}
	c.Memory["x"], c.Memory["w"] = kerneltest.F32(normal(r, x.tokens*xRow)), &program.Memory{Form: w.Form}
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, x.tokens*yRow)
	c.Constants = map[string]any{"planes": w.Planes}
	for k, v := range map[string]int{"rows": x.rows, "units": x.units, "row0": x.row0, "head_rows": x.headRows,
		"x_stride": xRow / 4, "x_step": xStep / 4, "y_stride": yRow, "y_step": yStep} {
		c.Constants[k] = uint32(v)
	}
	c.Bounds["y"] = sumBound(x.units * 32)
	return c
}

// countedLatent has cases whose first workgroup is full, for TestIterations.
func countedLatent(t *testing.T, r *rand.Rand) []kerneltest.Case {
	out := []kerneltest.Case{latentCase(r, build(t, kernels.Spec{Name: "latent", Params: map[string]uint32{"RANK": 96, "ROT": 40, "W": 16}}))}
	for _, s := range splits[:2] {
		x := headShape{heads: 2, headRows: 2 * s.w / s.l * s.r, units: 5, tokens: 1}
		x.rows = x.heads * x.headRows
		c := perHeadCase(r, build(t, kernels.Spec{Name: "matvec_heads", Types: map[string]ggml.Type{"w": ggml.Q4_0}, Params: s.params(), Choices: map[string]string{"x": "staged"}}), x)
		c.Grid = [3]uint32{s.groups(x.headRows), x.touched(), 1}
		out = append(out, c)
	}
	for _, tile := range []kernels.Tile{lowTile, thinTile} {
		x := headShape{heads: 2, headRows: 1 + r.IntN(2*tile.BR), units: 1 + r.IntN(9), tokens: tile.BT}
		x.rows = x.heads * x.headRows
		out = append(out, matmulHeadsCase(r, build(t, tiled{ggml.Q4_0, tile}.spec("matmul_heads", "w")), tile, x))
	}
	return out
}
