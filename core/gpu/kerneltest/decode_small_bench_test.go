package kerneltest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// The small kernels of one token, at the shapes of gemma4 26b-a4b and qwen35moe 35b-a3b, over the workgroup sizes that sdk/layer
// could give them. To choose those: go test -run '^$' -bench Decode -benchtime 5x ./core/gpu/kerneltest

// BenchmarkDecodeNorm is the norms of the residual stream.
func BenchmarkDecodeNorm(b *testing.B) {
	for _, n := range []int{2816, 2048} {
		for _, form := range [][2]string{{"put", "none"}, {"scaled", "none"}, {"put", "two"}} {
			out, more := form[0], form[1]
			for _, w := range []uint32{128, 256, 512, 1024} {
				b.Run(fmt.Sprintf("n=%d/%s.%s/W=%d", n, out, more, w), func(b *testing.B) {
					r := rand.New(rand.NewPCG(1, 1))
					c := rmsNormCase(r, build(b, kernels.Spec{Name: "rmsnorm", Choices: map[string]string{"value": "four", "rows": "all", "out": out, "more": more},
						Params: map[string]uint32{"W": w}}), n, 1)
					c.Grid[0] = 1
					bench(b, c)
				})
			}
		}
	}
}

// BenchmarkDecodeTopK is the routing of gemma4, qwen35moe, and of a router with groups.
func BenchmarkDecodeTopK(b *testing.B) {
	for _, m := range []struct {
		score, weight string
		params        map[string]uint32
	}{
		{"softmax", "scaled", map[string]uint32{"E": 128, "K": 8, "NORM": 1}},
		{"softmax", "plain", map[string]uint32{"E": 256, "K": 8, "NORM": 1}},
		{"sigmoid", "plain", map[string]uint32{"E": 512, "K": 8, "NORM": 1, "GROUPS": 8, "USED": 4}},
	} {
		for _, w := range []uint32{64, 128, 256, 512} {
			b.Run(fmt.Sprintf("%s/E=%d/W=%d", m.score, m.params["E"], w), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				p := maps.Clone(m.params)
				p["W"] = w
				c := topKCase(r, build(b, kernels.Spec{Name: "topk", Choices: map[string]string{"score": m.score, "weight": m.weight}, Params: p}), "normal")
				c.Grid[0] = 1
				bench(b, c)
			})
		}
	}
}

// BenchmarkDecodeSmall is the other small kernels.
func BenchmarkDecodeSmall(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	f32 := func(n int) *program.Memory { return kerneltest.F32(normal(r, n)) }
	out := func(n int) *program.Memory { return kerneltest.Output(program.Elem_F32, n) }
	run := func(name, kernel string, choices map[string]string, params map[string]uint32, widths []uint32, set func(c *kerneltest.Case, w int)) {
		for _, w := range widths {
			b.Run(fmt.Sprintf("%s/W=%d", name, w), func(b *testing.B) {
				p := map[string]uint32{"W": w}
				maps.Copy(p, params)
				c := build(b, kernels.Spec{Name: kernel, Choices: choices, Params: p})
				c.Step = program.StepUniform{T: 1, S: 1, Chunk: 1}
				c.Grid[1] = 1
				set(&c, int(w))
				bench(b, c)
			})
		}
	}
	for _, n := range []int{2816, 2048} {
		run(fmt.Sprintf("moe_sum/n=%d", n), "moe_sum", map[string]string{"value": "four", "out": "put"}, nil, []uint32{32, 64, 128, 256}, func(c *kerneltest.Case, w int) {
			c.Constants["n"], c.Constants["top_k"] = uint32(n), uint32(8)
			c.Memory["dn"], c.Memory["pw"], c.Memory["y"] = f32(8*n), f32(8), out(n)
			c.Grid[0] = uint32((n/4 + w - 1) / w)
		})
	}
	for _, h := range []struct {
		name               string
		heads, kv, hd, rot int
	}{{"gemma4 sliding", 16, 8, 256, 256}, {"gemma4 full", 16, 2, 512, 512}, {"qwen35moe", 16, 2, 256, 64}} {
		run("heads/"+h.name, "heads", map[string]string{"kv": "f16"}, map[string]uint32{"HD": uint32(h.hd), "ROT": uint32(h.rot), "VNORM": 1},
			[]uint32{64, 128, 256}, func(c *kerneltest.Case, w int) {
				row := (h.heads + 2*h.kv) * h.hd
				for name, v := range map[string]int{"stride": row, "q_off": 0, "q_step": h.hd, "k_off": h.heads * h.hd, "v_off": (h.heads + h.kv) * h.hd,
					"heads": h.heads, "kv_heads": h.kv, "window": 0} {
					c.Constants[name] = uint32(v)
				}
				c.Constants["eps"] = 1e-6
				c.Memory["qkv"], c.Memory["rope"], c.Memory["q_norm"], c.Memory["k_norm"] = f32(row), f32(h.rot), f32(h.hd), f32(h.hd)
				c.Memory["q"] = out(h.heads * h.hd)
				c.Memory["kc"], c.Memory["vc"] = kerneltest.Output(program.Elem_F16, h.kv*h.hd), kerneltest.Output(program.Elem_F16, h.kv*h.hd)
				c.Grid[0] = uint32(h.heads + 2*h.kv)
			})
	}
	run("gated_norm", "gated_norm", nil, nil, []uint32{64, 128}, func(c *kerneltest.Case, w int) {
		c.Constants["d"], c.Constants["heads"], c.Constants["stride"], c.Constants["off"], c.Constants["eps"] = uint32(128), uint32(32), uint32(4096), uint32(0), 1e-6
		c.Memory["x"], c.Memory["nw"], c.Memory["gate"], c.Memory["y"] = f32(4096), f32(128), f32(4096), out(4096)
		c.Grid[0] = 32
	})
	run("conv", "conv", nil, map[string]uint32{"TAPS": 4}, []uint32{32, 64, 128}, func(c *kerneltest.Case, w int) {
		c.Constants["n"], c.Constants["stride"], c.Constants["off"] = uint32(8192), uint32(12352), uint32(0)
		c.Memory["x"], c.Memory["kernel"], c.Memory["state"], c.Memory["y"] = f32(12352), f32(4*8192), f32(3*8192), out(8192)
		c.Grid[0] = uint32(8192 / w)
	})
	run("add/n=2816", "add", nil, nil, []uint32{32, 64, 128, 256}, func(c *kerneltest.Case, w int) {
		c.Constants["n"] = uint32(2816)
		c.Memory["a"], c.Memory["b"], c.Memory["y"] = f32(2816), f32(2816), out(2816)
		c.Grid[0] = uint32((2816 + w - 1) / w)
	})
	run("gate/each", "gate", map[string]string{"out": "put"}, map[string]uint32{"EACH": 1}, []uint32{32, 64, 128, 256}, func(c *kerneltest.Case, w int) {
		for name, v := range map[string]int{"n": 4096, "width": 256, "g_row": 9216, "g_off": 256, "g_step": 512} {
			c.Constants[name] = uint32(v)
		}
		c.Memory["x"], c.Memory["g"], c.Memory["y"] = f32(4096), f32(9216), out(4096)
		c.Grid[0] = uint32(4096 / w)
	})
}
