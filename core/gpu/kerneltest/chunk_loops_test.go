package kerneltest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
)

// countedChunk has cases of every many-token kernel whose first workgroup is full, for TestIterations.
func countedChunk(t *testing.T, r *rand.Rand) []kerneltest.Case {
	out := []kerneltest.Case{
		moeSumCase(r, build(t, kernels.Spec{Name: "moe_sum", Choices: map[string]string{"out": "put", "value": "one"}}), 70, 2),
	}
	for _, x := range []kernels.Tile{lowTile, thinTile} {
		pair := func(name string) kerneltest.Case {
			s := tiled{ggml.Q4_0, x}.spec(name, "gate", "act", "silu")
			s.Types["up"] = ggml.Q4_0
			return build(t, s)
		}
		full := 1 + 5*r.IntN(4) // of chunkShape: more rows than a tile's
		to := route(r, 3, x.BT, 3)
		out = append(out,
			matmulCase(r, build(t, tiled{ggml.Q4_0, x}.spec("matmul", "w", "out", "put")), x, 1+r.IntN(2*x.BR), 1+r.IntN(9), x.BT),
			matmulPairCase(r, pair("matmul_pair"), x.Pair(), full),
			expertMatmulCase(r, build(t, tiled{ggml.Q4_0, x}.spec("expert_matmul", "down")), x, full, to),
			expertMatmulPairCase(r, pair("expert_matmul_pair"), x.Pair(), full, to))
	}
	for _, l := range chunkForms {
		a, c := attnChunk(t, l, 4, 1, 24, 16, 64, "f32")
		out = append(out, attnChunkCase(r, c, a, "f32", 1, 1, 20)) // at position 300: full runs
	}
	return out
}
