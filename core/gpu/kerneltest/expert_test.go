package kerneltest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// fewSplits stands for splits where a kernel shares matvec's code: the ends of each range.
var fewSplits = []split{splits[0], {64, 64, 1, 2}, {128, 32, 2, 1}, {128, 8, 4, 1}}

// A product of two sums, each with sumBound's error, and exp or tanh of one of them. quiet makes each sum about
// sqrt(32/units)/4.
func pairBound(units int) kerneltest.Bound {
	return kerneltest.Bound{NMSE: 1e-11, Max: 5e-5, Rms: 0.2 / float64(units)}
}

func choice(i int, of ...string) string { return of[i] }

func TestPair(t *testing.T) {
	r := random(t)
	types := kerneltest.Types()
	axes := []int{len(types), len(fewSplits), len(ways), 2}
	for i, row := range also(r, 2, pairs(r, axes...), axes...) {
		gate, up, s := types[row[0]], types[row[0]], fewSplits[row[1]]
		if i%4 == 3 {
			up = types[i%len(types)] // a file's tensors may differ in type
		}
		c := build(t, kernels.Spec{Name: "pair", Types: map[string]ggml.Type{"gate": gate, "up": up}, Params: s.pairParams(),
			Choices: map[string]string{"x": ways[row[2]], "act": choice(row[3], "silu", "gelu")}})
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for j := range 2 {
				check(t, "pair", pairCase(r, c, s, 2*i+j))
			}
		})
	}
}

func pairCase(r *rand.Rand, c kerneltest.Case, s split, i int) kerneltest.Case {
	rows, units, tokens := s.shape(r, i%60, ggml.Type(c.Kernel.Types["gate"]), ggml.Type(c.Kernel.Types["up"]))
	x := normed(slots(c))
	c = fresh(c)
	input(r, c, x, tokens, units)
	quiet(c, units)
	bindGLU(r, c, rows, units, tokens)
	c.Grid = [3]uint32{s.groups(rows), uint32(tokens), 1}
	c.Bounds["y"] = pairBound(units)
	return c
}

// bindGLU binds gate and up: bands with rows before and after, or now and then one tensor; and the output, with values around.
func bindGLU(r *rand.Rand, c kerneltest.Case, rows, units, tokens int) {
	gate, up := ggml.Type(c.Kernel.Types["gate"]), ggml.Type(c.Kernel.Types["up"])
	for _, slot := range []string{"gate", "up"} {
		row0 := r.IntN(4)
		m := kerneltest.RandomMatrix(r, ggml.Type(c.Kernel.Types[slot]), row0+rows+r.IntN(3), units*32)
		c.Memory[slot], c.Constants[slot], c.Constants[slot+"_row0"] = &program.Memory{Form: m.Form}, m.Planes, uint32(row0)
	}
	if gate == up && r.IntN(3) == 0 {
		m := kerneltest.RandomMatrix(r, gate, 2*rows, units*32)
		c.Memory["gate"], c.Constants["gate"], c.Constants["gate_row0"] = &program.Memory{Form: m.Form}, m.Planes, uint32(0)
		c.Memory["up"], c.Constants["up"], c.Constants["up_row0"] = c.Memory["gate"], m.Planes, uint32(rows)
	}
	off := r.IntN(4)
	stride := off + rows + r.IntN(3)
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, tokens*stride)
	c.Constants["rows"], c.Constants["y_stride"], c.Constants["y_off"] = uint32(rows), uint32(stride), uint32(off)
	c.Constants["limit"] = pick(r, 0, 0, 0.5, 7.0)
}

// quiet scales the activations so that row sums are a few units: an activation is not linear only there.
func quiet(c kerneltest.Case, units int) {
	m := c.Memory["x"]
	if w := c.Memory["nw"]; w != nil {
		m = w
	}
	for i, v := range m.Values {
		m.Values[i] = float64(float32(v / float64(4*units)))
	}
}

func TestExpertPair(t *testing.T) {
	r := random(t)
	types := kerneltest.Types()
	axes := []int{len(types), len(fewSplits), len(ways), 2}
	for i, row := range also(r, 2, pairs(r, axes...), axes...) {
		gate, up, s := types[row[0]], types[row[0]], fewSplits[row[1]]
		if i%8 == 7 {
			up = types[i%len(types)] // a record's parts may differ in type
		}
		c := build(t, kernels.Spec{Name: "expert_pair", Types: map[string]ggml.Type{"gate": gate, "up": up}, Params: s.pairParams(),
			Choices: map[string]string{"x": ways[row[2]], "act": choice(row[3], "silu", "gelu")}})
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for j := range 2 {
				check(t, "expert_pair", expertPairCase(r, c, s, 2*i+j))
			}
		})
	}
}

func expertPairCase(r *rand.Rand, c kerneltest.Case, s split, i int) kerneltest.Case {
	gate, up := ggml.Type(c.Kernel.Types["gate"]), ggml.Type(c.Kernel.Types["up"])
	rows, units, tokens := s.shape(r, i%60, gate, up)
	x := normed(slots(c))
	topK := 1 + i%8
	experts := topK + r.IntN(4)
	c = fresh(c)
	input(r, c, x, tokens, units)
	quiet(c, units)
	parts := []kerneltest.Part{{Type: gate, Rows: rows, Cols: units * 32}, {Type: up, Rows: rows, Cols: units * 32}}
	if gate == up && i%3 == 0 { // one tensor of gate rows and up rows
		parts = []kerneltest.Part{{Type: gate, Rows: 2 * rows, Cols: units * 32}}
	}
	bank := kerneltest.RandomBank(r, experts, parts...)
	c.Constants["gate"], c.Constants["gate_row0"] = bank.Planes[0], uint32(0)
	c.Constants["up"], c.Constants["up_row0"] = bank.Planes[len(parts)-1], uint32((2-len(parts))*rows)
	bindExperts(r, c, bank, tokens, topK)
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, tokens*topK*rows)
	c.Constants["rows"], c.Constants["limit"] = uint32(rows), pick(r, 0, 0, 0.5, 7.0)
	c.Grid = [3]uint32{s.groups(rows), uint32(tokens), uint32(topK)}
	c.Bounds["y"] = pairBound(units)
	return c
}

// bindExperts binds a bank and picks of topK different experts for each token.
func bindExperts(r *rand.Rand, c kerneltest.Case, b kerneltest.Bank, tokens, topK int) {
	experts := len(b.Residency)
	residency := make([]uint32, experts+2)
	copy(residency, b.Residency)
	residency[experts], residency[experts+1] = 0xFFFFFFFF, 0xFFFFFFFF // not resident: nobody picks them
	var picks []uint32
	for range tokens {
		for _, e := range r.Perm(experts)[:topK] {
			picks = append(picks, uint32(e))
		}
	}
	c.Memory["bank"] = &program.Memory{Form: b.Form}
	c.Memory["picks"], c.Memory["residency"] = kerneltest.U32(picks...), kerneltest.U32(residency...)
	c.Constants["stride"], c.Constants["top_k"] = b.Stride, uint32(topK)
}

func TestExpertDown(t *testing.T) {
	r := random(t)
	types := kerneltest.Types()
	axes := []int{len(types), len(fewSplits), 2}
	for i, row := range also(r, 2, pairs(r, axes...), axes...) {
		typ, s := types[row[0]], fewSplits[row[1]]
		c := build(t, kernels.Spec{Name: "expert_down", Types: map[string]ggml.Type{"down": typ}, Params: s.params(),
			Choices: map[string]string{"out": choice(row[2], "put", "add")}})
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) {
			for j := range 2 {
				check(t, "expert_down", expertDownCase(r, c, s, 2*i+j))
			}
		})
	}
}

func TestExpertMatvec(t *testing.T) {
	r := random(t)
	types := kerneltest.Types()
	axes := []int{len(types), len(fewSplits), 2}
	for i, row := range pairs(r, axes...) {
		typ, s := types[row[0]], fewSplits[row[1]]
		c := build(t, kernels.Spec{Name: "expert_matvec", Types: map[string]ggml.Type{"down": typ}, Params: s.params(),
			Choices: map[string]string{"x": choice(row[2], "plain", "staged")}})
		t.Run(fmt.Sprint(i, c.Kernel.Name), func(t *testing.T) { check(t, "expert_matvec", expertMatvecCase(r, c, s, i)) })
	}
}

// expertMatvecCase is expertDownCase without weights and sum.
func expertMatvecCase(r *rand.Rand, c kerneltest.Case, s split, i int) kerneltest.Case {
	c = expertDownCase(r, c, s, i)
	rows, topK := int(c.Constants["rows"].(uint32)), int(c.Constants["top_k"].(uint32))
	c.Memory["x"] = c.Memory["act"]
	delete(c.Memory, "act")
	delete(c.Memory, "pw")
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, int(c.Grid[1])*topK*rows)
	c.Grid[2] = uint32(topK)
	c.Bounds["y"] = sumBound(32 * int(c.Constants["units"].(uint32)))
	return c
}

func expertDownCase(r *rand.Rand, c kerneltest.Case, s split, i int) kerneltest.Case {
	typ := ggml.Type(c.Kernel.Types["down"])
	rows, units, tokens := s.shape(r, i%60, typ)
	topK := 1 + i%8
	has := slots(c)
	c = fresh(c)
	// The first part is another's: planes of the second don't start at 0.
	bank := kerneltest.RandomBank(r, topK+r.IntN(4), kerneltest.Part{Type: ggml.F16, Rows: 1, Cols: 32},
		kerneltest.Part{Type: typ, Rows: rows, Cols: units * 32})
	bindExperts(r, c, bank, tokens, topK)
	c.Constants["down"], c.Constants["rows"], c.Constants["units"] = bank.Planes[1], uint32(rows), uint32(units)
	c.Memory["act"] = kerneltest.F32(normal(r, tokens*topK*units*32))
	c.Memory["pw"] = kerneltest.F32(normal(r, tokens*topK))
	if has["res"] {
		c.Memory["res"] = kerneltest.F32(normal(r, tokens*rows))
	}
	c.Memory["y"] = kerneltest.Output(program.Elem_F32, tokens*rows)
	c.Grid = [3]uint32{s.groups(rows), uint32(tokens), 1}
	c.Bounds["y"] = sumBound(units * 32 * topK)
	return c
}
