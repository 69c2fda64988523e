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

// The tiles that sdk/kernels gives devices, and of each kind one that compiles sooner on lavapipe, for the many types.
var (
	laneTile  = kernels.MatmulTile(&program.Limits{Cpu: true, LoopLimit: 65535}, 1000, 47)
	lowTile   = kernels.MatmulTile(&program.Limits{Cpu: true, LoopLimit: 50}, 1000, 8)
	wideTile  = kernels.MatmulTile(&program.Limits{WorkgroupBytes: 48 << 10}, 4096, 47)
	gpuTile   = kernels.MatmulTile(&program.Limits{WorkgroupBytes: 48 << 10}, 2048, 47)
	thinTile  = kernels.MatmulTile(&program.Limits{WorkgroupBytes: 48 << 10}, 64, 47)
	smallTile = kernels.ExpertTile(&program.Limits{WorkgroupBytes: 48 << 10}, 47)
	tiles     = []kernels.Tile{laneTile, lowTile, wideTile, gpuTile, thinTile, smallTile}
)

func TestTiles(t *testing.T) {
	var have []string
	for _, x := range tiles {
		have = append(have, fmt.Sprint(x.Choice, x.BR, "x", x.BT))
	}
	if want := []string{"lanes32x32", "lanes4x32", "shared64x128", "shared64x64", "shared64x32", "shared64x32"}; !slices.Equal(have, want) {
		t.Errorf("have %v, want %v", have, want)
	}
}

// tiled is a type and a tile, for the kernels with one weight.
type tiled struct {
	typ  ggml.Type
	tile kernels.Tile
}

// tiledForms is every type in a tile that compiles fast, and every tile with a type or two.
func tiledForms(r *rand.Rand) []tiled {
	var out []tiled
	for _, t := range kerneltest.Types() {
		out = append(out, tiled{t, lowTile})
	}
	for _, x := range []kernels.Tile{laneTile, wideTile, gpuTile, thinTile} {
		out = append(out, tiled{ggml.Q4_0, x})
	}
	return append(out, tiled{pick(r, kerneltest.Types()...), smallTile})
}

func (f tiled) spec(name, slot string, choices ...string) kernels.Spec {
	s := kernels.Spec{Name: name, Params: f.tile.Params, Choices: map[string]string{"tile": f.tile.Choice}, Types: map[string]ggml.Type{slot: f.typ}}
	for i := 0; i < len(choices); i += 2 {
		s.Choices[choices[i]] = choices[i+1]
	}
	return s
}

// chunkShape draws rows, units and T: i counts through the corners.
func chunkShape(r *rand.Rand, i int, x kernels.Tile, types ...ggml.Type) (rows, units, tokens int) {
	rows = []int{1, x.BR + 1, 3, 2*x.BR - 1, x.BR}[i%5]
	units = []int{1, 47, 3}[i%3]
	tokens = []int{x.BT + 1, 2, 33, x.BT}[i%4]
	if i >= 60 {
		rows, units, tokens = 1+r.IntN(3*x.BR), 1+r.IntN(20), 1+r.IntN(2*x.BT)
	}
	for _, t := range types {
		if t.BlockSize() > 32 {
			units = (units + 7) / 8 * 8
		}
	}
	return rows, units, tokens
}

// tileGrid is the grid of a kernel over the tokens of a chunk.
func tileGrid(x kernels.Tile, rows, tokens int) [3]uint32 {
	return [3]uint32{uint32((rows + x.BR - 1) / x.BR), uint32((tokens + x.BT - 1) / x.BT), 1}
}

func TestMatmul(t *testing.T) {
	r := random(t)
	for i, f := range tiledForms(r) {
		c := build(t, f.spec("matmul", "w", "out", choice(i%2, "put", "add")))
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for range 3 {
				rows, units, tokens := chunkShape(r, r.IntN(80), f.tile, f.typ)
				check(t, "matmul", matmulCase(r, c, f.tile, rows, units, tokens))
			}
		})
	}
}

// TestMatmulChunk runs a whole chunk of the default length.
func TestMatmulChunk(t *testing.T) {
	r := random(t)
	c := build(t, tiled{ggml.Q4_0, laneTile}.spec("matmul", "w", "out", "add"))
	check(t, "matmul", matmulCase(r, c, laneTile, 97, 3, 256))
}

// matmulCase is a band of a wider output, whose other elements stay.
func matmulCase(r *rand.Rand, c kerneltest.Case, x kernels.Tile, rows, units, tokens int) kerneltest.Case {
	c = fresh(c)
	off := r.IntN(4)
	stride := off + rows + r.IntN(3)
	w := kerneltest.RandomMatrix(r, ggml.Type(c.Kernel.Types["w"]), rows, units*32)
	c.Step = program.StepUniform{T: uint32(tokens)}
	c.Memory["x"] = kerneltest.F32(normal(r, tokens*units*32))
	c.Memory["w"] = &program.Memory{Form: w.Form}
	if slices.ContainsFunc(c.Kernel.Slots, func(s *program.Slot) bool { return s.Name == "res" }) {
		c.Memory["res"] = kerneltest.F32(normal(r, tokens*stride))
	}
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, tokens*stride)
	c.Constants = map[string]any{"planes": w.Planes, "rows": uint32(rows), "units": uint32(units), "y_stride": uint32(stride), "y_off": uint32(off)}
	c.Grid = tileGrid(x, rows, tokens)
	c.Bounds["y"] = sumBound(units * 32)
	return c
}

// TestMatmulTokenAlone: what a token gets does not depend on T or on its place in a tile.
func TestMatmulTokenAlone(t *testing.T) {
	r := random(t)
	for _, x := range []kernels.Tile{laneTile, wideTile} {
		c := build(t, tiled{ggml.Q4_0, x}.spec("matmul", "w", "out", "put"))
		const rows, units, tokens = 41, 9, 140
		all := matmulCase(r, c, x, rows, units, tokens)
		want := kerneltest.Dispatch(t, all)["y"].Values
		order := r.Perm(tokens)[:1+r.IntN(tokens)]
		some := all
		some.Memory = map[string]*program.Memory{"w": all.Memory["w"], "x": {}, "y": kerneltest.Output(program.Elem_F32, len(want))}
		for _, i := range order {
			some.Memory["x"].Values = append(some.Memory["x"].Values, all.Memory["x"].Values[i*units*32:(i+1)*units*32]...)
		}
		some.Step.T, some.Grid = uint32(len(order)), tileGrid(x, rows, len(order))
		have := kerneltest.Dispatch(t, some)["y"].Values
		stride := int(all.Constants["y_stride"].(uint32))
		for at, i := range order {
			for j := range stride {
				if h, w := have[at*stride+j], want[i*stride+j]; h != w && !kerneltest.IsPoison(w) {
					t.Fatalf("%s: token %d, value %d: have %v at place %d of %d, want %v", c.Kernel.Name, i, j, h, at, len(order), w)
				}
			}
		}
	}
}

// gluForm is a tile, and the types of a gate and an up.
type gluForm struct {
	tiled
	up ggml.Type
}

// gluForms is every type as a gate and as an up, mostly beside another, in a tile that compiles fast, and the tiles of devices.
func gluForms(r *rand.Rand, gpu kernels.Tile) (out []gluForm) {
	types := kerneltest.Types()
	next := r.IntN(len(types))
	for i, t := range types {
		out = append(out, gluForm{tiled{t, lowTile}, types[(i+next)%len(types)]})
	}
	return append(out, gluForm{tiled{ggml.Q4_0, laneTile}, ggml.Q4_0}, gluForm{tiled{ggml.Q4_0, gpu}, ggml.Q4_0})
}

func TestMatmulPair(t *testing.T) {
	r := random(t)
	for i, f := range gluForms(r, gpuTile) {
		s := f.spec("matmul_pair", "gate", "act", choice(i%2, "silu", "gelu"))
		s.Types["up"] = f.up
		c := build(t, s)
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for range 3 {
				check(t, "matmul_pair", matmulPairCase(r, c, f.tile.Pair(), r.IntN(80)))
			}
		})
	}
}

func matmulPairCase(r *rand.Rand, c kerneltest.Case, x kernels.Tile, i int) kerneltest.Case {
	gateType, upType := ggml.Type(c.Kernel.Types["gate"]), ggml.Type(c.Kernel.Types["up"])
	rows, units, tokens := chunkShape(r, i, x, gateType, upType)
	c = fresh(c)
	c.Step = program.StepUniform{T: uint32(tokens)}
	c.Memory["x"] = kerneltest.F32(normal(r, tokens*units*32))
	c.Constants["units"] = uint32(units)
	quiet(c, units)
	bindGLU(r, c, rows, units, tokens)
	c.Grid = tileGrid(x, rows, tokens)
	c.Bounds["y"] = pairBound(units)
	return c
}
