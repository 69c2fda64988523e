package kerneltest_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

var allTiles = flag.Bool("tiles", false, "benchmark every tile shape, not only the one that is chosen")

// benchTiles are the tiles to measure on a device, the first being what sdk/kernels chooses.
func benchTiles(d *gpu.Device, chosen func(*program.Limits) kernels.Tile) []kernels.Tile {
	out := []kernels.Tile{chosen(deviceLimits(d))}
	if d.Limits().CPU || !*allTiles {
		return out
	}
	for _, x := range [][2]int{{128, 2}, {64, 1}, {64, 2}, {32, 1}, {32, 2}, {16, 1}} {
		bt, q := uint32(x[0]), uint32(x[1])
		w := 4 * bt / q
		out = append(out, kernels.Tile{BR: 64, BT: x[0], Choice: "shared",
			Params: map[string]uint32{"TR": 64, "BT": bt, "Q": q, "W": w, "TN": w / 16, "XS": bt/4 + 1}})
	}
	return out
}

func deviceLimits(d *gpu.Device) *program.Limits {
	l := d.Limits()
	return &program.Limits{Cpu: l.CPU, LoopLimit: uint32(l.LoopLimit), WorkgroupBytes: l.MaxWorkgroupStorage}
}

// best runs a case again and again and reports flops over the least time.
func best(b *testing.B, flops float64, x kerneltest.Case) {
	d := gputest.Open(b)
	var c gpu.Commands
	defer kerneltest.Record(b, x, &c)()
	lists := []*gpu.Commands{&c}
	if !d.Limits().CPU {
		lists = slices.Repeat(lists, 16)
	}
	least := time.Hour
	for b.Loop() {
		start := time.Now()
		if err := d.Submit(lists...); err != nil {
			b.Fatal(err)
		}
		if err := d.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
		least = min(least, time.Since(start)/time.Duration(len(lists)))
	}
	b.ReportMetric(flops/least.Seconds()/1e9, "best-GFLOP/s")
	b.ReportMetric(float64(least.Microseconds()), "best-us")
}

// benchShapes are T, rows, units: a middling layer, and those of small and large models.
var benchShapes = [][3]int{{256, 2048, 64}, {256, 256, 8}, {256, 4096, 128}, {256, 1024, 64}, {1024, 4096, 128}}

func BenchmarkMatmul(b *testing.B) {
	d := gputest.Open(b)
	r := rand.New(rand.NewPCG(1, 1))
	for i, s := range benchShapes {
		if d.Limits().CPU && i > 1 {
			return
		}
		for j, typ := range []ggml.Type{ggml.Q4_0, ggml.Q8_0, ggml.Q4_K, ggml.Q6_K, ggml.F16, ggml.F32} {
			if i > 1 && j > 1 {
				continue
			}
			list := benchTiles(d, func(l *program.Limits) kernels.Tile { return kernels.MatmulTile(l, s[1], s[2]) })
			if j > 0 {
				list = list[:1]
			}
			c := matmulCase(r, build(b, tiled{typ, list[0]}.spec("matmul", "w", "out", "put")), list[0], s[1], s[2], s[0])
			for k, x := range list {
				b.Run(fmt.Sprintf("%dx%dx%d/%v/%s", s[0], s[1], s[2]*32, typ, tileName(k, x)), func(b *testing.B) {
					c.Kernel, c.Grid = build(b, tiled{typ, x}.spec("matmul", "w", "out", "put")).Kernel, tileGrid(x, s[1], s[0])
					best(b, float64(s[0])*float64(s[1])*float64(s[2])*64, c)
				})
			}
		}
	}
}

func tileName(i int, x kernels.Tile) string {
	return fmt.Sprintf("%d_%s_%dx%d_q%d", i, x.Choice, x.BR, x.BT, x.Params["Q"])
}

// BenchmarkMatvecs is what matmul replaces: the tokens one by one.
func BenchmarkMatvecs(b *testing.B) {
	d := gputest.Open(b)
	r := rand.New(rand.NewPCG(1, 1))
	x := split{128, 32, 2, 3}
	if d.Limits().CPU {
		x = splits[0]
	}
	const tokens = 8
	for _, s := range benchShapes[:2] {
		for _, typ := range []ggml.Type{ggml.Q4_0, ggml.Q8_0, ggml.Q4_K, ggml.Q6_K, ggml.F16, ggml.F32} {
			b.Run(fmt.Sprintf("%dx%d/%v", s[1], s[2]*32, typ), func(b *testing.B) {
				c := build(b, kernels.Spec{Name: "matvec", Types: map[string]ggml.Type{"w": typ}, Params: x.params(),
					Choices: map[string]string{"rows": "all", "x": "plain", "out": "put"}})
				c = matmulCase(r, c, kernels.Tile{BR: 1, BT: 1}, s[1], s[2], tokens)
				c.Constants["eps"], c.Constants["cap"] = 0.0, 0.0
				c.Grid = [3]uint32{x.groups(s[1]), tokens, 1}
				best(b, tokens*float64(s[1])*float64(s[2])*64, c)
			})
		}
	}
}

// BenchmarkExpertMatmul has 32 experts with 16, 32 or 64 pairs each: 256 tokens of a model with few experts, or more of one with many.
func BenchmarkExpertMatmul(b *testing.B) {
	d := gputest.Open(b)
	r := rand.New(rand.NewPCG(1, 1))
	rows, units, experts := 1408, 88, 32
	if d.Limits().CPU {
		rows, units, experts = 256, 8, 8
	}
	bank := kerneltest.RandomBank(r, experts, kerneltest.Part{Type: ggml.Q4_0, Rows: rows, Cols: units * 32})
	for _, each := range []int{16, 32, 64} {
		to := routing{experts: experts, tokens: experts * each, topK: 1, of: make([][]uint32, experts)}
		for p := range experts * each {
			to.of[p%experts] = append(to.of[p%experts], uint32(p))
		}
		for j, x := range benchTiles(d, func(l *program.Limits) kernels.Tile { return kernels.ExpertTile(l, units) }) {
			b.Run(fmt.Sprintf("%d/%s", each, tileName(j, x)), func(b *testing.B) {
				c := build(b, tiled{ggml.Q4_0, x}.spec("expert_matmul", "down"))
				best(b, float64(experts*each)*float64(rows)*float64(units)*64, expertBench(c, bank, x, rows, units, to))
			})
		}
	}
}

func expertBench(c kerneltest.Case, bank kerneltest.Bank, x kernels.Tile, rows, units int, to routing) kerneltest.Case {
	var pairs []uint32
	var tiles [][4]uint32
	for e, list := range to.of {
		for ; len(list) > 0; list = list[min(len(list), x.BT):] {
			n := min(len(list), x.BT)
			tiles = append(tiles, [4]uint32{uint32(e), uint32(len(pairs)), uint32(n), 0})
			pairs = append(pairs, list[:n]...)
		}
	}
	bindTiles(c, pairs, tiles, bank.Residency)
	c.Memory["bank"] = &program.Memory{Form: bank.Form}
	c.Memory["act"] = kerneltest.F32(make([]float64, to.tokens*units*32))
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, to.tokens*rows)
	c.Constants = map[string]any{"down": bank.Planes[0], "rows": uint32(rows), "units": uint32(units), "stride": bank.Stride}
	c.Grid = [3]uint32{uint32((rows + x.BR - 1) / x.BR), uint32(len(tiles)), 1}
	return c
}

// BenchmarkAttnChunk is a chunk of 256 tokens at the start of a session and further on.
func BenchmarkAttnChunk(b *testing.B) {
	d := gputest.Open(b)
	r := rand.New(rand.NewPCG(1, 1))
	for _, x := range []struct{ heads, kvHeads, hd, pos0, tokens int }{
		{32, 8, 64, 0, 256}, {32, 8, 64, 3840, 256}, {16, 2, 256, 3840, 256}, {16, 2, 512, 3840, 256}} {
		if d.Limits().CPU {
			x.heads, x.kvHeads, x.pos0, x.tokens = 4, 1, x.pos0/8, 64
		}
		a, err := kernels.NewAttnChunk(deviceLimits(d), x.heads, x.kvHeads, x.hd)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%dof%dx%d/%d+%d", x.heads, x.kvHeads, x.hd, x.pos0, x.tokens), func(b *testing.B) {
			c := build(b, kernels.Spec{Name: "attn_chunk", Choices: map[string]string{"kv": "f16", "chunk": a.Choice}, Params: a.Params})
			keys := float64(x.pos0) + float64(x.tokens+1)/2
			best(b, 4*float64(x.tokens*x.heads*x.hd)*keys, attnChunkAt(r, c, a, "f16", x.kvHeads, 0, place{x.pos0, 0, x.tokens}, x.tokens))
		})
		b.Run(fmt.Sprintf("%dof%dx%d/%d+%d/split", x.heads, x.kvHeads, x.hd, x.pos0, x.tokens), func(b *testing.B) {
			g, w := uint32(x.heads/x.kvHeads), uint32(128)
			if d.Limits().CPU {
				w = 16
			}
			c := build(b, kernels.Spec{Name: "attn_split", Choices: map[string]string{"kv": "f16", "split": "keys"}, Params: map[string]uint32{
				"HD": uint32(x.hd), "VD": uint32(x.hd), "VROW": uint32(x.hd), "G": g, "KEYS": 128, "W": w, "GHD": g * uint32(x.hd), "GKEYS": g * 128}})
			a := a
			a.Run = 128
			c = attnChunkAt(r, c, a, "f16", x.kvHeads, 0, place{x.pos0, 0, x.tokens}, x.tokens)
			c.Grid = [3]uint32{uint32(x.kvHeads), c.Grid[2], uint32(x.tokens)}
			keys := float64(x.pos0) + float64(x.tokens+1)/2
			best(b, 4*float64(x.tokens*x.heads*x.hd)*keys, c)
		})
	}
}
