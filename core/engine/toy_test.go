package engine_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/layer"
	"github.com/sluicehost/sluice/sdk/program"
)

// toy is an architecture for tests: an attention layer, a convolution layer and a dense
// layer, the first two with routed experts, all smaller than any real model's.
type toy struct{}

const (
	toyHidden  = 64
	toyVocab   = 101
	toyExperts = 6
	toyTopK    = 2
	toyFF      = 32
	toyContext = 300
)

func (toy) Describe() sdk.Description                  { return sdk.Description{Name: "toy", Version: "0.0.1"} }
func (toy) Configure(*sdk.Metadata) (sdk.Model, error) { return toy{}, nil }

func (toy) Facts() sdk.Facts {
	return sdk.Facts{Layers: 3, Hidden: toyHidden, Vocab: toyVocab, Experts: toyExperts, TopK: toyTopK, Context: toyContext}
}

func (toy) Encode(e *layer.Encoder) {
	ffn := layer.GatedFFN{Gate: "gate", Up: "up", Down: "down", FF: toyFF, Act: layer.SiLU}
	router := layer.Router{Weight: "router", Sigmoid: true, Bias: "bias", Normalize: true, Scale: 1}
	rope := e.RopeTable("rope", 16, 10000, "")
	x := e.Embed("embd", 1)
	l := e.Layer(0)
	qkv := l.Linear(l.RMSNorm(x, "norm", 1e-5), 4*16+2*2*16, "q", "k", "v")
	y := l.Attention(qkv, layer.Attention{Heads: 4, KVHeads: 2, HeadDim: 16, QNorm: "qn", KNorm: "kn", Eps: 1e-5, Rope: rope, Scale: 0.25})
	x = l.Add(x, l.Linear(y, toyHidden, "o"))
	x = l.Result(l.Add(x, l.Experts(l.RMSNorm(x, "norm2", 1e-5), router, ffn)))
	l = e.Layer(1)
	bcx := l.Linear(l.RMSNorm(x, "norm", 1e-5), 3*toyHidden, "in")
	x = l.Add(x, l.Linear(l.ShortConv(bcx, "conv", 3), toyHidden, "out"))
	x = l.Result(l.Add(x, l.Experts(l.RMSNorm(x, "norm2", 1e-5), router, ffn)))
	l = e.Layer(2)
	x = l.Result(l.Add(x, l.FFN(l.RMSNorm(x, "norm2", 1e-5), ffn)))
	e.Logits(e.FinalNorm(x, 1e-5, "final"), "embd")
}

// planner is toy as the engine asks it.
type planner struct{}

func (planner) Plan(_ context.Context, h *program.Header) (*program.Plan, error) {
	return sdk.Plan(toy{}, h)
}

func (planner) Encode(_ context.Context, r *program.EncodeRequest) (*program.Program, error) {
	return sdk.Encode(toy{}, r)
}

// toyFile writes a file of random weights and opens it. The records of its two MoE layers are unlike.
func toyFile(t testing.TB, seed uint64) *gguf.File {
	t.Helper()
	return toyFileOf(t, seed, ggml.Q4_0, ggml.Q8_0)
}

// toyFileOf is toyFile with types for the down projections of the two MoE layers' experts.
func toyFileOf(t testing.TB, seed uint64, down ...ggml.Type) *gguf.File {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	m := &gguftest.Model{Metadata: gguftest.Pairs("general.architecture", "toy")}
	add := func(name string, typ ggml.Type, dims ...uint64) {
		x := gguftest.Zeros(name, typ, dims...)
		randomBlocks(r, typ, x.Data)
		m.Tensors = append(m.Tensors, x)
	}
	add("embd", ggml.Q8_0, toyHidden, toyVocab)
	add("final", ggml.F32, toyHidden)
	for i, kinds := range [][]string{{"attn", "moe"}, {"conv", "moe"}, {"dense"}} {
		p := fmt.Sprintf("blk.%d.", i)
		add(p+"norm", ggml.F32, toyHidden)
		add(p+"norm2", ggml.F32, toyHidden)
		for _, k := range kinds {
			switch k {
			case "attn":
				add(p+"q", ggml.Q4_0, toyHidden, 64)
				add(p+"k", ggml.Q4_0, toyHidden, 32)
				add(p+"v", ggml.Q8_0, toyHidden, 32)
				add(p+"qn", ggml.F32, 16)
				add(p+"kn", ggml.F32, 16)
				add(p+"o", ggml.Q4_0, 64, toyHidden)
			case "conv":
				add(p+"in", ggml.Q4_0, toyHidden, 3*toyHidden)
				add(p+"conv", ggml.F32, 3, toyHidden)
				add(p+"out", ggml.F16, toyHidden, toyHidden)
			case "moe":
				add(p+"router", ggml.F32, toyHidden, toyExperts)
				add(p+"bias", ggml.F32, toyExperts)
				clear(m.Tensor(p + "bias").Data[4:]) // a large bias would pick the same experts for every token
				add(p+"gate", ggml.Q4_0, toyHidden, toyFF, toyExperts)
				add(p+"up", ggml.Q4_0, toyHidden, toyFF, toyExperts)
				add(p+"down", down[i], toyFF, toyHidden, toyExperts)
			case "dense":
				add(p+"gate", ggml.Q8_0, toyHidden, toyFF)
				add(p+"up", ggml.Q8_0, toyHidden, toyFF)
				add(p+"down", ggml.Q8_0, toyFF, toyHidden)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "toy.gguf")
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// randomBlocks fills a tensor's data: values of about 0.3 in size, whatever the type.
func randomBlocks(r *rand.Rand, typ ggml.Type, data []byte) {
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	scale := map[ggml.Type]float64{ggml.Q4_0: 0.06, ggml.Q8_0: 0.004, ggml.F16: 0}[typ]
	for i := 0; i < len(data); i += int(typ.BlockBytes()) {
		switch typ {
		case ggml.F32:
			binary.LittleEndian.PutUint32(data[i:], math.Float32bits(float32(0.4*r.NormFloat64())))
		case ggml.F16:
			binary.LittleEndian.PutUint16(data[i:], halfBits(0.2*r.Float64()))
		default:
			binary.LittleEndian.PutUint16(data[i:], halfBits(scale))
		}
	}
}

// halfBits is a positive normal number as binary16, cut off.
func halfBits(v float64) uint16 {
	frac, exp := math.Frexp(max(v, 1e-3))
	return uint16((exp+14)<<10 | int((frac*2-1)*1024))
}

// opener reads the weights of f.
func opener(f *gguf.File) engine.Opener {
	return func(p *program.Plan, w []*program.Placed, r []*program.PlacedRecord) (store.Source, error) {
		own, err := gguf.Open(f.Parts[0].Name) // a source closes its file
		if err != nil {
			return nil, err
		}
		return store.NewGGUF(own, p, w, r)
	}
}

// load loads the toy with f32 caches.
func load(t *testing.T, dev *gpu.Device, f *gguf.File, o engine.Options) *engine.Model {
	t.Helper()
	o.KVF32 = true
	m, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, opener(f), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func session(t *testing.T, m *engine.Model) *engine.Session {
	t.Helper()
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// feed gives the logits after each token.
func feed(t *testing.T, s *engine.Session, tokens []int32) [][]float32 {
	t.Helper()
	var out [][]float32
	err := s.Feed(context.Background(), tokens, len(tokens), func(_ int, l *engine.Logits) error {
		out = append(out, append([]float32(nil), l.All...))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// seedOf is SEED from the environment, to replay a failure, or a new one; it is printed.
func seedOf(t *testing.T) uint64 {
	seed := rand.Uint64()
	if s := os.Getenv("SEED"); s != "" {
		fmt.Sscan(s, &seed)
	}
	t.Logf("SEED=%d", seed)
	return seed
}

func tokensOf(seed uint64, n int) []int32 {
	r := rand.New(rand.NewPCG(seed, 2))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(r.IntN(toyVocab))
	}
	return out
}

func itoa[T int | uint64](n T) string { return fmt.Sprint(n) }
