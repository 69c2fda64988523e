package layer_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/layer"
	"github.com/sluicehost/sluice/sdk/place"
	"github.com/sluicehost/sluice/sdk/program"
)

// logits interprets a test model over data for a few tokens at once, with weights cut into bands of at most binding bytes.
func (m moeTest) logits(t *testing.T, data func(string) ([]byte, error), binding uint64, tokens ...uint32) [][]float64 {
	t.Helper()
	f := m.file()
	p := &program.Plan{Model: &program.Model{Architecture: "test", Layers: uint32(m.layers), Hidden: uint32(m.hidden), Vocab: vocab,
		Experts: uint32(m.experts), TopK: uint32(m.topK), Context: 128}}
	if err := layer.Plan(f.Header(), p, m.author().encode); err != nil {
		t.Fatal(err)
	}
	weights, err := place.Weights(f.Header(), p, binding)
	if err != nil {
		t.Fatal(err)
	}
	records, err := place.Records(f.Header(), p, 0)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := layer.Encode(&program.EncodeRequest{Header: f.Header(), Plan: p, Limits: &program.Limits{WorkgroupBytes: 32 << 10, MaxGroups: 65535},
		Weights: weights, Records: records}, m.author().encode)
	if err != nil {
		t.Fatal(err)
	}
	src := &program.TensorSource{Header: f.Header(), Plan: p, Placed: weights, Records: records, Data: data}
	in, err := program.NewInterpreter(p, weights, records, prog, src, kernels.Ref, program.Options{Chunk: 8, Outs: 8, Context: 32})
	if err != nil {
		t.Fatal(err)
	}
	var rows []uint32
	for i := range tokens {
		rows = append(rows, uint32(i))
	}
	out, err := in.NewSession().Step(tokens, rows)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// fuse is data with gate and up of each expert put together in gate_up.
func (m moeTest) fuse(data func(string) ([]byte, error)) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		at := strings.LastIndex(name, "gate_up")
		if at < 0 {
			return data(name)
		}
		gate, err := data(name[:at] + "gate")
		if err != nil {
			return nil, err
		}
		up, err := data(name[:at] + "up")
		n := len(gate)
		if !strings.Contains(name, "dense") {
			n /= m.experts
		}
		var out []byte
		for i := 0; i < len(gate); i += n {
			out = append(append(out, gate[i:i+n]...), up[i:i+n]...)
		}
		return out, err
	}
}

// Whether gate and up are one tensor or two, of one type or of two, and wherever bindings cut them, logits are the same to the bit.
func TestFusedAndBands(t *testing.T) {
	for _, types := range []func(int, int) ggml.Type{alike(ggml.Q5_0), func(_, i int) ggml.Type { return []ggml.Type{ggml.Q4_0, ggml.F32, ggml.Q8_0}[i%3] }} {
		m := moeTest{layers: 2, hidden: 64, ff: 96, experts: 8, topK: 2, router: grouped, act: layer.SiLU, limit: 0.1, types: types}
		data := m.file().Data(rand.Uint64())
		forms := []moeTest{m}
		if types(0, 0) == types(0, 1) {
			m.fused = true
			forms = append(forms, m)
		}
		for _, tokens := range [][]uint32{{5}, {5, 90, 33, 8, 8}} {
			want := forms[0].logits(t, data, 0, tokens...)
			for _, f := range forms {
				from := data
				if f.fused {
					from = f.fuse(data)
				}
				for _, binding := range []uint64{0, 1000, 3300} {
					if have := f.logits(t, from, binding, tokens...); fmt.Sprint(have) != fmt.Sprint(want) {
						t.Errorf("fused %v, %d tokens, bindings of %d bytes: other logits", f.fused, len(tokens), binding)
					}
				}
			}
		}
	}
}

// reference is the forward pass of a one-layer test model in F32 tensors, written down from the definitions.
type reference struct {
	moeTest
	tensor func(name string) []float64
}

func newReference(t *testing.T, m moeTest, data func(string) ([]byte, error)) reference {
	return reference{m, func(name string) []float64 {
		raw, err := data(name)
		if err != nil {
			t.Fatal(err)
		}
		v := make([]float64, len(raw)/4)
		if err := ggml.Dequantize(ggml.F32, v, raw); err != nil {
			t.Fatal(err)
		}
		return v
	}}
}

func times(w, x []float64) (y []float64) {
	for r := 0; r < len(w); r += len(x) {
		s := 0.0
		for i, v := range x {
			s += w[r+i] * v
		}
		y = append(y, s)
	}
	return y
}

func (r reference) norm(x []float64, weight string) []float64 {
	s, y := 0.0, slices.Clone(x)
	for _, v := range x {
		s += v * v / float64(len(x))
	}
	for i, w := range r.tensor(weight) {
		y[i] *= w / math.Sqrt(s+1e-5)
	}
	return y
}

// ffn is down(min(act(gate·x), limit) ⊙ clamp(up·x)) of expert e, or of the dense block.
func (r reference) ffn(x []float64, prefix string, e int) []float64 {
	part := func(name string) []float64 {
		w, n := r.tensor("blk.0."+prefix+name), r.hidden*r.ff
		return w[e*n : (e+1)*n]
	}
	g, u := times(part("gate"), x), times(part("up"), x)
	for i := range g {
		act := g[i] / (1 + math.Exp(-g[i]))
		if r.act == layer.GELU {
			act = 0.5 * g[i] * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g[i]+0.044715*math.Pow(g[i], 3))))
		}
		if r.limit > 0 {
			act, u[i] = min(act, r.limit), max(-r.limit, min(r.limit, u[i]))
		}
		g[i] = act * u[i]
	}
	return times(part("down"), g)
}

// weights are the experts' weights, 0 for those not picked.
func (r reference) weights(logits []float64) []float64 {
	p, rank := make([]float64, r.experts), make([]float64, r.experts)
	sum := 0.0
	for e, v := range logits {
		p[e] = math.Exp(v * cmp.Or(r.router.InputScale, 1))
		sum += p[e]
	}
	ids := make([]int, r.experts)
	for e := range p {
		ids[e] = e
		if p[e] /= sum; r.router.Sigmoid {
			p[e] = 1 / (1 + math.Exp(-logits[e]))
		}
		if rank[e] = p[e]; r.router.Bias != "" {
			rank[e] += r.tensor("blk.0.bias")[e]
		}
	}
	if n := r.router.Groups; n > 1 { // experts of a left-out group go to the end
		size, scores := r.experts/n, make([]float64, n)
		for g := range scores {
			of := slices.Sorted(slices.Values(rank[g*size : (g+1)*size]))
			scores[g] = of[size-1] + of[size-2]
		}
		least := slices.Sorted(slices.Values(scores))[n-r.router.GroupsUsed]
		for e := range rank {
			if scores[e/size] < least {
				rank[e] = math.Inf(-1)
			}
		}
	}
	slices.SortFunc(ids, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
	total, w := 0.0, make([]float64, r.experts)
	for _, e := range ids[:r.topK] {
		total += p[e]
	}
	for _, e := range ids[:r.topK] {
		if w[e] = p[e] / total * r.router.Scale; r.router.ExpertScale != "" {
			w[e] *= r.tensor("blk.0.scale")[e]
		}
	}
	return w
}

func (r reference) logits(token uint32) []float64 {
	x := r.tensor("embd")[int(token)*r.hidden:][:r.hidden]
	y := slices.Clone(x)
	for i, v := range r.ffn(r.norm(x, "blk.0.dense_norm"), "dense_", 0) {
		y[i] += v
	}
	for e, w := range r.weights(times(r.tensor("blk.0.router"), r.norm(x, "blk.0.router_norm"))) {
		for i, v := range r.ffn(r.norm(x, "blk.0.norm"), "", e) {
			y[i] += w * v
		}
	}
	return times(r.tensor("embd"), r.norm(y, "final"))
}

// TestMoEReference: a block with experts and a dense FFN computes what its definition says, one token or many.
func TestMoEReference(t *testing.T) {
	for name, m := range map[string]moeTest{
		"sigmoid in groups, clamped": {router: grouped, act: layer.SiLU, limit: 0.2},
		"softmax, scaled":            {router: scaled, act: layer.GELU},
		"clamped GELU":               {router: layer.Router{Normalize: true, Scale: 1}, act: layer.GELU, limit: 0.2},
		"plain sigmoid":              {router: layer.Router{Sigmoid: true, Bias: "bias", Normalize: true, Scale: 1}, act: layer.SiLU},
	} {
		t.Run(name, func(t *testing.T) {
			m.layers, m.hidden, m.ff, m.experts, m.topK, m.types = 1, 64, 32, 16, 3, alike(ggml.F32)
			seed := rand.Uint64()
			data := m.file().Data(seed)
			ref := newReference(t, m, data)
			tokens := []uint32{5, 90, 33, 8, 8, 61}
			have := m.logits(t, data, 0, tokens...)
			for i, token := range tokens {
				want, alone := ref.logits(token), m.logits(t, data, 0, token)[0]
				for j, w := range want {
					if math.Abs(have[i][j]-w) > 1e-6*(1+math.Abs(w)) || math.Abs(alone[j]-w) > 1e-6*(1+math.Abs(w)) {
						t.Fatalf("seed %d, token %d, logit %d: have %v, alone %v, want %v", seed, token, j, have[i][j], alone[j], w)
					}
				}
			}
		})
	}
}
