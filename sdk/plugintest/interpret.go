package plugintest

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/sdk"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// interpret runs the program in float64 over random weights, with the kernels' references: token by
// token, and in chunks with few expert slots, must give the same logits, and a reset session too.
func interpret(t *testing.T, a sdk.Architecture, f *File) {
	p, weights, records, prog := Encode(t, a, f, devices[0].limits, true)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	src := &program.TensorSource{Header: f.Header(), Plan: p, Placed: weights, Records: records, Data: f.Data(seed)}
	const tokens = 7
	run := func(chunk, slots int) [][]float64 {
		in, err := program.NewInterpreter(p, weights, records, prog, src, kernels.Ref, program.Options{Chunk: uint32(chunk), Outs: tokens, Context: 32, Slots: slots})
		if err != nil {
			t.Fatal(err)
		}
		s := in.NewSession()
		feed(t, s, p.Model.Vocab, chunk, 3) // what an earlier conversation leaves must not show
		s.Reset()
		return feed(t, s, p.Model.Vocab, chunk, tokens)
	}
	want := run(1, 0)
	for _, row := range want {
		if slices.ContainsFunc(row, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
			t.Fatal("the logits are not finite: a value is read that nothing wrote, or a kernel divides by zero")
		}
	}
	if boundsFor(devices[0].limits, prog).Chunk == 1 {
		return
	}
	for _, chunk := range []int{2, 5, tokens} {
		got := run(chunk, int(p.Model.TopK))
		for i := range want {
			for j, v := range got[i] {
				if math.Abs(v-want[i][j]) > 1e-6*(1+math.Abs(want[i][j])) {
					t.Fatalf("chunks of %d: logit %d after token %d: have %g, want %g as token by token: a prompt must not depend on how it is cut", chunk, j, i, v, want[i][j])
				}
			}
		}
	}
}

// feed gives the logits after each of n tokens.
func feed(t *testing.T, s *program.Session, vocab uint32, chunk, n int) [][]float64 {
	t.Helper()
	var out [][]float64
	for at := 0; at < n; at += chunk {
		var ids, rows []uint32
		for i := at; i < min(at+chunk, n); i++ {
			ids, rows = append(ids, uint32(i*31+7)%vocab), append(rows, uint32(i-at))
		}
		logits, err := s.Step(ids, rows)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range logits {
			out = append(out, slices.Clone(row))
		}
	}
	return out
}

// Data makes the bytes of every tensor: random values around 0.3 in size, the same for a seed and name. The caller must not change them.
func (f *File) Data(seed uint64) func(name string) ([]byte, error) {
	made := map[string][]byte{}
	return func(name string) ([]byte, error) {
		if made[name] == nil {
			made[name] = f.random(seed, name)
		}
		return made[name], nil
	}
}

func (f *File) random(seed uint64, name string) []byte {
	h := fnv.New64()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	i := slices.IndexFunc(f.tensors, func(x *program.Tensor) bool { return x.Name == name })
	typ, blocks := ggml.Type(f.tensors[i].Type), uint64(1)
	for _, d := range f.tensors[i].Dims {
		blocks *= d
	}
	blocks /= typ.BlockSize()
	out := make([]byte, blocks*typ.BlockBytes())
	for at := 0; at < len(out); at += int(typ.BlockBytes()) {
		randomBlock(r, typ, out[at:at+int(typ.BlockBytes())])
	}
	return out
}

// randomBlock fills one block until its values are finite and small.
func randomBlock(r *rand.Rand, typ ggml.Type, block []byte) {
	if typ == ggml.F32 {
		binary.LittleEndian.PutUint32(block, math.Float32bits(float32(0.3*r.NormFloat64())))
		return
	}
	values := make([]float64, typ.BlockSize())
	for range 10000 {
		for i := range block {
			block[i] = byte(r.Uint32())
		}
		small := ggml.Dequantize(typ, values, block) == nil
		for _, v := range values {
			small = small && math.Abs(v) < 1
		}
		if small {
			return
		}
	}
	clear(block)
}
