package engine_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk"
	"github.com/sluicehost/sluice/sdk/layer"
	"github.com/sluicehost/sluice/sdk/program"
)

// slider is the toy's attention layer and its experts alone, with a window: its caches are rings.
type slider struct {
	toy
	window int
}

func (s slider) Configure(*sdk.Metadata) (sdk.Model, error) { return s, nil }

func (s slider) Facts() sdk.Facts {
	f := s.toy.Facts()
	f.Layers = 1
	return f
}

func (s slider) Encode(e *layer.Encoder) {
	x := e.Embed("embd", 1)
	l := e.Layer(0)
	qkv := l.Linear(l.RMSNorm(x, "norm", 1e-5), 4*16+2*2*16, "q", "k", "v")
	y := l.Attention(qkv, layer.Attention{Heads: 4, KVHeads: 2, HeadDim: 16, QNorm: "qn", KNorm: "kn", Eps: 1e-5,
		Rope: e.RopeTable("rope", 16, 10000, ""), Scale: 1, Window: s.window})
	x = l.Add(x, l.Linear(y, toyHidden, "o"))
	router := layer.Router{Weight: "router", Sigmoid: true, Bias: "bias", Normalize: true, Scale: 1}
	ffn := layer.GatedFFN{Gate: "gate", Up: "up", Down: "down", FF: toyFF, Act: layer.SiLU}
	x = l.Result(l.Add(x, l.Experts(l.RMSNorm(x, "norm2", 1e-5), router, ffn)))
	e.Logits(e.FinalNorm(x, 1e-5, "final"), "embd")
}

// sliderPlanner is a slider as the engine asks it.
type sliderPlanner struct{ s slider }

func (p sliderPlanner) Plan(_ context.Context, h *program.Header) (*program.Plan, error) {
	return sdk.Plan(p.s, h)
}

func (p sliderPlanner) Encode(_ context.Context, r *program.EncodeRequest) (*program.Program, error) {
	return sdk.Encode(p.s, r)
}

func loadSlider(t *testing.T, dev *gpu.Device, f *gguf.File, window int, o engine.Options) *engine.Model {
	t.Helper()
	o.KVF32 = true
	m, err := engine.Load(context.Background(), dev, store.Header(f), sliderPlanner{slider{window: window}}, opener(f), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// A window is one however a prompt is cut: chunks shorter and longer than it, whose borders fall everywhere around its
// edge, give the logits of float64 arithmetic token by token. A ring has window + chunk rows, whatever the context.
func TestRings(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 48)
	for _, window := range []int{1, 6} {
		one := loadSlider(t, dev, f, window, engine.Options{Chunk: 1})
		want := interpret(t, one, openerSource(t, one, opener(f)), tokens)
		for _, chunk := range []int{1, 5, 6, 7, 20} {
			t.Run(fmt.Sprintf("window %d chunk %d", window, chunk), func(t *testing.T) {
				m := loadSlider(t, dev, f, window, engine.Options{Chunk: chunk})
				s := session(t, m)
				if worst := worstDifference(feed(t, s, tokens), want); worst > 2e-4 {
					t.Errorf("logits differ by up to %g from the float64 reference, want 2e-4", worst)
				}
				row := uint64(4 * 2 * 16)
				if want := 2 * gpu.Reserved(row*uint64(window+chunk)); m.Budget.KV != want {
					t.Errorf("have %d bytes of caches, want %d", m.Budget.KV, want)
				}
			})
		}
	}
}

// A session with rings goes back by a chunk at most from where it was, and says the same as one that never was further.
func TestRingsRewind(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 40)
	const window, chunk = 6, 8
	m := loadSlider(t, dev, f, window, engine.Options{Chunk: chunk})
	for _, back := range []int{1, window - 1, window, window + 1, chunk, chunk + 1, 20} {
		for _, more := range []int{1, 3, 9} {
			s := session(t, m)
			feed(t, s, tokens[:30])
			kept := 30 - back
			next := append(slices.Clone(tokens[:kept]), tokensOf(seed+1, more)...)
			if next[kept] == tokens[kept] {
				next[kept] = (next[kept] + 1) % toyVocab
			}
			got, have := continueWith(t, s, next)
			want := kept
			if back > chunk {
				want = 0
			}
			if have != want {
				t.Errorf("%d back: kept %d tokens, want %d", back, have, want)
			}
			fresh, _ := continueWith(t, session(t, m), next)
			for i := range got {
				if d := math.Abs(float64(got[i] - fresh[i])); !(d <= 1e-4) {
					t.Fatalf("%d back and %d on: logit %d is off by %g", back, more, i, d)
				}
			}
		}
	}
}
