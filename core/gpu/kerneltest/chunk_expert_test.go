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

// expertForms are the tiles that run over experts, and every type in one that compiles fast.
func expertForms(r *rand.Rand) []tiled {
	out := []tiled{{ggml.Q4_0, laneTile}, {pick(r, kerneltest.Types()...), smallTile}}
	for _, t := range kerneltest.Types() {
		out = append(out, tiled{t, lowTile})
	}
	return out
}

// routing is who goes to which expert: pairs (token · topK + pick) sorted by expert.
type routing struct {
	experts, tokens, topK int
	of                    [][]uint32 // the pairs of each expert
}

// route draws picks of topK different experts a token; the first experts are picked more often.
func route(r *rand.Rand, experts, tokens, topK int) routing {
	out := routing{experts, tokens, topK, make([][]uint32, experts)}
	for t := range tokens {
		picks := r.Perm(experts)
		if r.IntN(2) == 0 {
			slices.Sort(picks)
		}
		for k, e := range picks[:topK] {
			out.of[e] = append(out.of[e], uint32(t*topK+k))
		}
	}
	return out
}

// cut makes tiles of at most size pairs each, in any order, with the pair table for them.
func (x routing) cut(r *rand.Rand, size int) (pairs []uint32, tiles [][4]uint32) {
	for e, list := range x.of {
		list = slices.Clone(list)
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for len(list) > 0 {
			n := min(len(list), size)
			if r.IntN(2) == 0 {
				n = 1 + r.IntN(n)
			}
			tiles = append(tiles, [4]uint32{uint32(e), uint32(len(pairs)), uint32(n), 0})
			pairs, list = append(pairs, list[:n]...), list[n:]
		}
	}
	r.Shuffle(len(tiles), func(i, j int) { tiles[i], tiles[j] = tiles[j], tiles[i] })
	return pairs, tiles
}

// bindTiles binds a wave.
func bindTiles(c kerneltest.Case, pairs []uint32, tiles [][4]uint32, residency []uint32) {
	c.Memory["pairs"] = kerneltest.U32(pairs...)
	c.Memory["tiles"] = kerneltest.U32(slices.Concat(flat(tiles)...)...)
	c.Memory["residency"] = kerneltest.U32(append(slices.Clone(residency), 0xFFFFFFFF)...)
}

func flat(tiles [][4]uint32) (out [][]uint32) {
	for _, t := range tiles {
		out = append(out, t[:])
	}
	return out
}

// routed draws a routing of a few tokens more than a tile holds.
func routed(r *rand.Rand, x kernels.Tile) routing {
	topK := 1 + r.IntN(4)
	return route(r, topK+r.IntN(4), 1+r.IntN(x.BT+20), topK)
}

func TestExpertMatmul(t *testing.T) {
	r := random(t)
	for i, f := range expertForms(r) {
		c := build(t, f.spec("expert_matmul", "down"))
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for range 2 {
				check(t, "expert_matmul", expertMatmulCase(r, c, f.tile, r.IntN(80), routed(r, f.tile)))
			}
		})
	}
}

// expertMatmulCase runs some of a routing's tiles: the pairs of the others stay.
func expertMatmulCase(r *rand.Rand, c kerneltest.Case, x kernels.Tile, i int, to routing) kerneltest.Case {
	typ := ggml.Type(c.Kernel.Types["down"])
	rows, units, _ := chunkShape(r, i, x, typ)
	c = fresh(c)
	// The first part is another's: planes of the second don't start at 0.
	bank := kerneltest.RandomBank(r, to.experts, kerneltest.Part{Type: ggml.F16, Rows: 1, Cols: 32}, kerneltest.Part{Type: typ, Rows: rows, Cols: units * 32})
	pairs, tiles := to.cut(r, x.BT)
	tiles = tiles[:1+r.IntN(len(tiles))]
	bindTiles(c, pairs, tiles, bank.Residency)
	c.Memory["bank"] = &program.Memory{Form: bank.Form}
	c.Memory["act"] = kerneltest.F32(normal(r, to.tokens*to.topK*units*32))
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, to.tokens*to.topK*rows)
	c.Constants = map[string]any{"down": bank.Planes[1], "rows": uint32(rows), "units": uint32(units), "stride": bank.Stride}
	c.Grid = [3]uint32{uint32((rows + x.BR - 1) / x.BR), uint32(len(tiles)), 1}
	c.Bounds["y"] = sumBound(units * 32)
	return c
}

func TestExpertMatmulPair(t *testing.T) {
	r := random(t)
	for i, f := range gluForms(r, smallTile) {
		s := f.spec("expert_matmul_pair", "gate", "act", choice(i%2, "silu", "gelu"))
		s.Types["up"] = f.up
		c := build(t, s)
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for range 2 {
				check(t, "expert_matmul_pair", expertMatmulPairCase(r, c, f.tile.Pair(), r.IntN(80), routed(r, f.tile)))
			}
		})
	}
}

func expertMatmulPairCase(r *rand.Rand, c kerneltest.Case, x kernels.Tile, i int, to routing) kerneltest.Case {
	gate, up := ggml.Type(c.Kernel.Types["gate"]), ggml.Type(c.Kernel.Types["up"])
	rows, units, _ := chunkShape(r, i, x, gate, up)
	c = fresh(c)
	parts := []kerneltest.Part{{Type: gate, Rows: rows, Cols: units * 32}, {Type: up, Rows: rows, Cols: units * 32}}
	if gate == up && i%3 == 0 { // one tensor of gate rows and up rows
		parts = []kerneltest.Part{{Type: gate, Rows: 2 * rows, Cols: units * 32}}
	}
	bank := kerneltest.RandomBank(r, to.experts, parts...)
	pairs, tiles := to.cut(r, x.BT)
	tiles = tiles[:1+r.IntN(len(tiles))]
	bindTiles(c, pairs, tiles, bank.Residency)
	c.Memory["bank"] = &program.Memory{Form: bank.Form}
	c.Memory["x"] = kerneltest.F32(normal(r, to.tokens*units*32))
	quiet(c, units)
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, to.tokens*to.topK*rows)
	c.Constants = map[string]any{"gate": bank.Planes[0], "up": bank.Planes[len(parts)-1], "rows": uint32(rows), "units": uint32(units),
		"stride": bank.Stride, "gate_row0": uint32(0), "up_row0": uint32((2 - len(parts)) * rows), "top_k": uint32(to.topK),
		"limit": pick(r, 0, 0, 0.5, 7.0)}
	c.Grid = [3]uint32{uint32((rows + x.BR - 1) / x.BR), uint32(len(tiles)), 1}
	c.Bounds["y"] = pairBound(units)
	return c
}

// TestExpertWaves: however the pairs are cut into tiles and the tiles into waves, every pair gets the same bits.
func TestExpertWaves(t *testing.T) {
	r := random(t)
	for _, x := range []kernels.Tile{laneTile, smallTile} {
		pair := tiled{ggml.Q4_0, x}.spec("expert_matmul_pair", "gate", "act", "silu")
		pair.Types["up"] = ggml.Q4_0
		to := route(r, 5, 3*x.BT, 3)
		for _, c := range []kerneltest.Case{
			expertMatmulCase(r, build(t, tiled{ggml.Q4_0, x}.spec("expert_matmul", "down")), x, 3, to),
			expertMatmulPairCase(r, build(t, pair), x.Pair(), 3, to),
		} {
			want := allPairs(t, r, c, to, x.BT, 1)
			for range 3 {
				have := allPairs(t, r, c, to, 1+r.IntN(x.BT), 1+r.IntN(4))
				if i := differ(have, want); i >= 0 {
					t.Fatalf("%s: value %d: have %v, want %v", c.Kernel.Name, i, have[i], want[i])
				}
			}
		}
	}
}

// allPairs runs all of a routing's pairs in tiles of at most size, in waves.
func allPairs(t *testing.T, r *rand.Rand, c kerneltest.Case, to routing, size, waves int) []float64 {
	pairs, tiles := to.cut(r, size)
	residency := c.Memory["residency"].Values
	for wave := range waves {
		some := tiles[len(tiles)*wave/waves : len(tiles)*(wave+1)/waves]
		if len(some) == 0 {
			continue
		}
		bindTiles(c, pairs, some, nil)
		c.Memory["residency"] = &program.Memory{Elem: program.Elem_U32, Values: residency}
		c.Grid[1] = uint32(len(some))
		c.Memory["y"] = kerneltest.Dispatch(t, c)["y"]
	}
	return c.Memory["y"].Values
}

// differ is the first place where two results have other bits, or poison; -1 where there is none.
func differ(a, b []float64) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func TestMoESum(t *testing.T) {
	r := random(t)
	for i := range 24 {
		w := pick(r, 8, 64)
		c := moeSumCase(r, build(t, kernels.Spec{Name: "moe_sum", Params: map[string]uint32{"W": uint32(w)},
			Choices: map[string]string{"out": choice(i%2, "put", "add"), "value": choice(i/2%2, "one", "four")}}), 1+r.IntN(150), 1+r.IntN(40))
		check(t, "moe_sum", c)
	}
}

func moeSumCase(r *rand.Rand, c kerneltest.Case, n, tokens int) kerneltest.Case {
	c = fresh(c)
	topK, w, values := 1+r.IntN(22), int(c.Kernel.Params["W"]), int(c.Kernel.Params["VALUES"]) // eights, a four, and the rest
	n *= values
	c.Memory["dn"], c.Memory["pw"] = kerneltest.F32(normal(r, tokens*topK*n)), kerneltest.F32(normal(r, tokens*topK))
	if slots(c)["res"] {
		c.Memory["res"] = kerneltest.F32(normal(r, tokens*n))
	}
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, tokens*n)
	c.Constants = map[string]any{"n": uint32(n), "top_k": uint32(topK)}
	c.Grid = [3]uint32{uint32((n/values + w - 1) / w), uint32(tokens), 1}
	c.Bounds["y"] = sumBound(32)
	return c
}
