package main

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/plugintest"
	"github.com/sluicehost/sluice/sdk/program"
)

// TestLowRankQueries: queries through a low rank are attn_q_b · rms(attn_q_a · h; attn_q_a_norm). With attn_q_a four times the
// identity and attn_norm ones, the norm gives h again, for h has an rms of 1 already; so the model is the one whose attn_q is
// attn_q_b · diag(attn_q_a_norm). Without the norm, or without its weight, it is not.
func TestLowRankQueries(t *testing.T) {
	s := small
	s.latent, s.mtp, s.hidden, s.heads, s.experts, s.groups, s.groupsUsed = []int{1}, 0, 64, 2, 4, 1, 1
	s.lead, s.vocab = 0, 64
	values := weights{}
	plain := logits(t, s, func(name string, n int) []float64 {
		if name != "blk.0.attn_q.weight" {
			return values.of(name, n)
		}
		q, w := values.of("blk.0.attn_q_b.weight", n), values.of("blk.0.attn_q_a_norm.weight", s.hidden)
		for i := range q {
			q[i] = float64(float32(q[i] * w[i%s.hidden]))
		}
		return q
	})
	s.qRank = s.hidden
	lowRank := func(change func(name string, v []float64)) [][]float64 {
		return logits(t, s, func(name string, n int) []float64 {
			v := values.of(name, n)
			if name == "blk.0.attn_q_a.weight" {
				for i := range v {
					v[i] = 0
				}
				for i := range s.hidden {
					v[i*s.hidden+i] = 4
				}
			}
			change(name, v)
			return v
		})
	}
	if d := apart(plain, lowRank(func(string, []float64) {})); !(d < 1e-4) {
		t.Errorf("have logits %g apart from those of the same queries without a low rank", d)
	}
	if d := apart(plain, lowRank(func(name string, v []float64) {
		if name == "blk.0.attn_q_a_norm.weight" {
			v[0] += 1
		}
	})); !(d > 1e-3) {
		t.Errorf("another norm's weight: have logits %g apart, want more", d)
	}
}

// weights are random values of a tensor, the same each time.
type weights struct{}

func (w weights) of(name string, n int) []float64 {
	h := fnv.New64()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(7, h.Sum64()))
	v := make([]float64, n)
	for i := range v {
		if v[i] = float64(float32(r.NormFloat64())); strings.HasSuffix(name, ".attn_norm.weight") {
			v[i] = 1
		}
	}
	return v
}

// logits interprets a file of F32 tensors for a few tokens.
func logits(t *testing.T, s shape, values func(name string, n int) []float64) [][]float64 {
	t.Helper()
	f := plain32(s.file())
	plan, placed, records, prog := plugintest.Encode(t, architecture{}, f, gpu, true)
	h := f.Header()
	src := &program.TensorSource{Header: h, Plan: plan, Placed: placed, Records: records, Data: func(name string) ([]byte, error) {
		for _, x := range h.Tensors {
			if x.Name == name {
				n := 1
				for _, d := range x.Dims {
					n *= int(d)
				}
				var raw []byte
				for _, v := range values(name, n) {
					raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
				}
				return raw, nil
			}
		}
		panic("BUG: no tensor " + name)
	}}
	const tokens = 5
	in, err := program.NewInterpreter(plan, placed, records, prog, src, kernels.Ref, program.Options{Chunk: tokens, Outs: tokens, Context: tokens})
	if err != nil {
		t.Fatal(err)
	}
	out, err := in.NewSession().Step([]uint32{3, 1, 4, 15, 9}, []uint32{0, 1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// plain32 is f with every tensor in F32.
func plain32(f *plugintest.File) *plugintest.File {
	for _, x := range f.Header().Tensors {
		var dims []int
		for _, d := range x.Dims {
			dims = append(dims, int(d))
		}
		f.Drop(x.Name).Add(x.Name, ggml.F32, dims...)
	}
	return f
}

// apart is the greatest difference of two lists of logits, over the greatest logit.
func apart(a, b [][]float64) float64 {
	var diff, size float64
	for i := range a {
		for j := range a[i] {
			diff, size = max(diff, math.Abs(a[i][j]-b[i][j])), max(size, math.Abs(a[i][j]))
		}
	}
	return diff / size
}
