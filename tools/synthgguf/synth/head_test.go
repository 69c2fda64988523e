package synth

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// all are a tensor's values.
func (m *Model) all(t *testing.T, name string) []float64 {
	t.Helper()
	i := slices.IndexFunc(m.Tensors, func(x Tensor) bool { return x.Name == name })
	if i < 0 {
		t.Fatalf("no tensor %s", name)
	}
	data := make([]byte, m.Tensors[i].Size())
	m.Tensors[i].Fill(data, 0)
	return dequantized(t, m.Tensors[i].Type, data)
}

// After any token the likely ones belong to its topic, or to either topic of a bridge (one of 20 may stray), and the token
// itself is not among them: with the tensors' own bytes, and noise in place of what layers write.
func TestHeadKeepsTheTopic(t *testing.T) {
	for _, s := range shapes {
		if s.Name != "tiny" {
			continue
		}
		for _, r := range recipes {
			t.Run(fmt.Sprint(s.Arch, " ", r.name), func(t *testing.T) {
				m, err := New(Options{Arch: s.Arch, Shape: s.Name, Type: r.name, Seed: freshSeed(t), Locality: DefaultLocality, Dwell: DefaultDwell})
				if err != nil {
					t.Fatal(err)
				}
				checkHead(t, m)
			})
		}
	}
}

func checkHead(t *testing.T, m *Model) {
	norm := "output_norm.weight"
	if m.Shape.Arch == "lfm2moe" {
		norm = "token_embd_norm.weight"
	}
	weights, head, table := m.all(t, norm), m.all(t, m.arch.head), m.all(t, "token_embd.weight")
	h := m.Shape.Hidden
	r := stream{freshSeed(t)}
	for range 16 {
		id := int(r.next() % uint64(m.Shape.Vocab))
		topic, other := m.topics.of(id)
		if topic < 0 {
			continue
		}
		logits := headLogits(m, &r, table[id*h:(id+1)*h], weights, head)
		first := best(logits, 20)
		strays := 0
		for i, next := range first {
			a, b := m.topics.of(int(next))
			if a < 0 || a != topic && a != other && b != topic && (b < 0 || b != other) {
				if strays++; i == 0 || strays > 1 {
					t.Fatalf("after token %d of topics %d, %d: token %d of topics %d, %d is number %d", id, topic, other, next, a, b, i)
				}
			}
		}
		if slices.Contains(first, int32(id)) {
			t.Errorf("token %d is likely to follow itself", id)
		}
		if most := logits[first[0]]; most < 5 || most > 40 {
			t.Errorf("have a largest logit of %g, want 5 to 40", most)
		}
	}
}

// headLogits are the logits after a token of the given embedding row.
func headLogits(m *Model, r *stream, row, weights, head []float64) []float64 {
	h := len(row)
	x := make([]float64, h)
	var sum float64
	for i := range x {
		x[i] = row[i] * m.arch.embedScale(h)
		for l := range m.Shape.Layers {
			x[i] += m.residual.mixer(l).writes(i)*r.gauss() + m.residual.ffn(l).writes(i)*r.gauss()
		}
		sum += x[i] * x[i]
	}
	norm := 1 / math.Sqrt(sum/float64(h))
	logits := make([]float64, m.Shape.Vocab)
	for v := range logits {
		for i, w := range head[v*h : (v+1)*h] {
			logits[v] += w * x[i] * norm * weights[i]
		}
	}
	return logits
}

// Tables of one seed have the same codes, in whatever type.
func TestTablesAgree(t *testing.T) {
	tt := tinyTopics(t, 4096, 60)
	a := tt.rows("a", ggml.Q4_K, 1024, 1)
	b := tt.rows("b", ggml.Q6_K, 1024, 1)
	for id := uint64(0); id < 4096; id += 37 {
		x, y := make([]byte, 4*144), make([]byte, 4*210)
		a(x, id)
		b(y, id)
		p, q := dequantized(t, ggml.Q4_K, x), dequantized(t, ggml.Q6_K, y)
		for i := range restAt {
			if math.Abs(p[i]-q[i]) > 0.01 {
				t.Fatalf("token %d, channel %d: have %g and %g, want the same", id, i, p[i], q[i])
			}
		}
	}
}
