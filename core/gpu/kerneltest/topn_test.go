package kerneltest_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

func TestTopN(t *testing.T) {
	r := random(t)
	// The software device's split, and a GPU's, at small vocabularies with short chunks beside those at full size.
	limits := []*program.Limits{{Cpu: true, LoopLimit: 65535}, {}}
	for i, row := range pairs(r, 4, len(limits)) {
		n := []uint32{1, 5, 40, 64}[row[0]]
		top, err := kernels.NewTopN(limits[row[1]], 1, n)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(top.First.Name, i), func(t *testing.T) {
			for j, kind := range append(logitKinds, "nan", "inf") {
				top := *top
				top.Vocab = pick(r, 1, 2, n, n+1, 31, 32, 33, 1000, 2*top.Chunk, uint32(1+r.IntN(3000)))
				if j%2 == 0 {
					top.Chunk = uint32(1 + r.IntN(400))
				}
				for kernels.CheckLoops(top.Merge, program.StepUniform{}, top.Constants(), limits[0]) != nil {
					top.Chunk *= 2
				}
				topN(t, r, &top, kind, 1+r.IntN(3))
			}
		})
	}
	for _, vocab := range []uint32{65536, 262144, 262145} {
		top, err := kernels.NewTopN(pick(r, limits...), vocab, pick[uint32](r, 1, 64))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint("vocab ", vocab), func(t *testing.T) { topN(t, r, top, pick(r, logitKinds...), 2) })
	}
}

// topN runs both kernels and checks the second's result against the logits themselves.
func topN(t *testing.T, r *rand.Rand, top *kernels.TopN, kind string, rows int) {
	v, n := int(top.Vocab), int(top.N)
	values := make([]float64, 0, rows*v)
	for range rows {
		values = append(values, tokenLogits(r, kind, v)...)
	}
	logits, mask := kerneltest.F32(values), randomMask(r, v)
	a, b := topNCases(t, top, logits, mask, rows)
	check(t, "topn", a)
	check(t, "topn_merge", b)
	if t.Failed() {
		t.Logf("vocab %d, N %d, chunk %d, %s logits, %d rows", v, n, top.Chunk, kind, rows)
	}
	want := wholeTopN(logits.Values, mask, v, n, rows)
	for name, m := range kerneltest.Reference(t, b) {
		if _, err := kerneltest.Compare(m, want[name], kerneltest.Bound{NMSE: 1e-12, Max: 1e-6, Rms: 1}); err != nil {
			t.Errorf("vocab %d, N %d, chunk %d: the references joined give other %s than a plain search: %v", v, n, top.Chunk, name, err)
		}
	}
}

// topNCases are the two dispatches; the second works on the reference of the first.
func topNCases(t testing.TB, top *kernels.TopN, logits, mask *program.Memory, rows int) (first, merge kerneltest.Case) {
	size, n := top.Bytes(uint32(rows)), int(top.N)
	first = kerneltest.Case{Kernel: top.First, Ref: kernels.Ref("topn"), Constants: constantsOf(top),
		Memory: map[string]*program.Memory{"logits": logits, "mask": mask, "ids": kerneltest.Output(program.Elem_U32, int(size.Ids/4)),
			"sums": kerneltest.Output(program.Elem_F32, int(size.Sums/4))},
		Bounds: map[string]kerneltest.Bound{"sums": {NMSE: 4e-11, Max: 2e-5}}}
	merge = kerneltest.Case{Kernel: top.Merge, Ref: kernels.Ref("topn_merge"), Constants: constantsOf(top),
		Memory: map[string]*program.Memory{"logits": logits, "top_ids": kerneltest.Output(program.Elem_U32, n*rows),
			"top_logits": kerneltest.Output(program.Elem_F32, n*rows), "lse": kerneltest.Output(program.Elem_F32, rows)},
		Bounds: map[string]kerneltest.Bound{"lse": {NMSE: 1e-12, Max: 1e-5, Rms: 1}}}
	first.Grid, merge.Grid = top.Grids(uint32(rows))
	half := kerneltest.Reference(t, first)
	merge.Memory["ids"], merge.Memory["sums"] = half["ids"], kerneltest.F32(half["sums"].Values)
	return first, merge
}

// tokenLogits are as router logits, and with NaNs or infinities among them.
func tokenLogits(r *rand.Rand, kind string, n int) []float64 {
	v := logits(r, kind, n)
	for i := range v {
		switch {
		case kind == "normal":
			v[i] *= 7
		case kind == "nan" && r.IntN(3) > 0:
			v[i] = math.NaN()
		case kind == "inf" && r.IntN(50) == 0:
			v[i] = math.Inf(1)
		case v[i] == 0 && r.IntN(2) == 0:
			v[i] = math.Copysign(0, -1) // equal to 0
		}
	}
	return v
}

// randomMask suppresses no, some or all tokens.
func randomMask(r *rand.Rand, vocab int) *program.Memory {
	words := make([]uint32, (vocab+31)/32)
	switch r.IntN(8) {
	case 0:
		for i := range words {
			words[i] = math.MaxUint32
		}
	case 1, 2, 3:
		for i := range words {
			words[i] = r.Uint32() & r.Uint32()
		}
	}
	return kerneltest.U32(words...)
}

func constantsOf(top *kernels.TopN) map[string]any {
	c := top.Constants()
	return map[string]any{"vocab": binary.LittleEndian.Uint32(c), "chunk": binary.LittleEndian.Uint32(c[4:])}
}

// wholeTopN is what both kernels together should give, by n searches over the whole vocabulary.
func wholeTopN(logits []float64, mask *program.Memory, vocab, n, rows int) map[string]*program.Memory {
	out := map[string]*program.Memory{"top_ids": kerneltest.Output(program.Elem_U32, n*rows),
		"top_logits": kerneltest.Output(program.Elem_F32, n*rows), "lse": kerneltest.Output(program.Elem_F32, rows)}
	for row := range rows {
		l, open := logits[row*vocab:][:vocab], make([]bool, vocab)
		for id := range open {
			open[id] = uint32(mask.Values[id/32])>>(id%32)&1 == 0
		}
		out["lse"].Values[row] = logSumExp(l, open)
		for i := range n {
			id, v := bestOf(l, open), math.Inf(-1)
			if id >= 0 {
				v, open[id] = l[id], false
			}
			out["top_ids"].Values[row*n+i], out["top_logits"].Values[row*n+i] = float64(uint32(id)), v
		}
	}
	return out
}

// bestOf is the open token of the greatest logit, the lowest id among equals, NaN last; -1 where none is open.
func bestOf(l []float64, open []bool) int {
	best := -1
	for id, v := range l {
		if open[id] && (best < 0 || v > l[best] || math.IsNaN(l[best]) && !math.IsNaN(v)) {
			best = id
		}
	}
	return best
}

// logSumExp is log Σ exp(l) over the open tokens that are numbers.
func logSumExp(l []float64, open []bool) float64 {
	m, sum := math.Inf(-1), 0.0
	for id, v := range l {
		if open[id] && v > m {
			m = v
		}
	}
	if math.IsInf(m, 0) && m > 0 {
		return m
	}
	for id, v := range l {
		if open[id] && !math.IsNaN(v) && !math.IsInf(v, 0) {
			sum += math.Exp(v - m)
		}
	}
	return m + math.Log(sum)
}
