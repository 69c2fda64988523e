package engine_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// The GPU agrees with the float64 interpreter over the same program and weights, token by
// token and in chunks, with every expert resident and with few slots.
func TestEngineAgreesWithInterpreter(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 21)
	whole := load(t, dev, f, engine.Options{Chunk: 1})
	want := interpret(t, whole, openerSource(t, whole, opener(f)), tokens)
	for _, o := range []engine.Options{{Chunk: 1}, {Chunk: 7}, {Chunk: 16}, {Chunk: 16, Budget: smallestOf(t, whole, f, 16)}} {
		t.Run(fmt.Sprintf("chunk %d budget %d", o.Chunk, o.Budget), func(t *testing.T) {
			m := load(t, dev, f, o)
			got := feed(t, session(t, m), tokens)
			if worst := worstDifference(got, want); worst > 2e-4 {
				t.Errorf("logits differ by up to %g from the float64 reference, want 2e-4", worst)
			}
		})
	}
}

// Waves and pools change no bit of a chunk's results, nor does where a chunk's tokens were cut off
// from the sessions beside it.
func TestWavesChangeNothing(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 40)
	whole := load(t, dev, f, engine.Options{Chunk: 16, Sessions: 2})
	want := feed(t, session(t, whole), tokens)
	small := load(t, dev, f, engine.Options{Chunk: 16, Sessions: 2, Budget: smallestBudget(whole)})
	a, b := session(t, small), session(t, small)
	var got, other [][]float32
	for len(tokens) > 0 {
		n := min(8, len(tokens)) // as many as one step gives logits for
		got, other = append(got, feed(t, a, tokens[:n])...), append(other, feed(t, b, tokens[:n])...)
		tokens = tokens[n:]
	}
	if !equalRows(got, want) || !equalRows(other, want) {
		t.Error("the smallest pool gives other logits than one that holds every expert")
	}
	if small.Stats().Waves == 0 {
		t.Error("no chunk needed a second wave of experts: the test shows nothing")
	}
}

// slow is a source that takes its time for each record.
type slow struct{ store.Source }

func (s slow) Pieces(int, int) int { return 1 }

func (s slow) ReadPiece(ctx context.Context, layer, expert, piece, of int, dst []byte) (uint32, error) {
	time.Sleep(20 * time.Millisecond)
	return s.Source.ReadPiece(ctx, layer, expert, piece, of, dst)
}

// A chunk computes with the experts that are there while the others are read, and gives the same bits.
func TestWavesAsTheyCome(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 16)
	whole := load(t, dev, f, engine.Options{Chunk: 16})
	feed(t, session(t, whole), tokens)
	before := whole.Stats().Waves
	want := feed(t, session(t, whole), tokens)
	if n := whole.Stats().Waves - before; n != 0 {
		t.Errorf("have %d more waves with all experts resident, want none", n)
	}
	cold, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, func(p *program.Plan, w []*program.Placed, r []*program.PlacedRecord) (store.Source, error) {
		src, err := opener(f)(p, w, r)
		return slow{src}, err
	}, engine.Options{Chunk: 16, Readers: 1, KVF32: true})
	if err != nil {
		t.Fatal(err)
	}
	defer cold.Close()
	s := session(t, cold)
	got := feed(t, s, tokens)
	s.Close()
	if !equalRows(got, want) {
		t.Error("experts computed as they come give other logits than all at once")
	}
	if n := cold.Stats().Waves; n < 1 {
		t.Errorf("have %d more waves in two layers of six slow experts, want one or more", n)
	}
}

// smallestOf is the smallest budget with a chunk length.
func smallestOf(t *testing.T, whole *engine.Model, f *gguf.File, chunk int) uint64 {
	m := load(t, gputest.Open(t), f, engine.Options{Chunk: chunk})
	return smallestBudget(m)
}

func openerSource(t *testing.T, m *engine.Model, open engine.Opener) store.Source {
	t.Helper()
	src, err := open(m.Plan, m.Weights, m.Records)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// interpret gives the logits after each token, by the program's references.
func interpret(t *testing.T, m *engine.Model, src store.Source, tokens []int32) [][]float64 {
	t.Helper()
	ref := &store.Reference{Source: src, Plan: m.Plan, Weights: m.Weights, Records: m.Records}
	in, err := program.NewInterpreter(m.Plan, m.Weights, m.Records, m.Program, ref, kernels.Ref,
		program.Options{Chunk: 1, Outs: 1, Context: uint32(m.Context)})
	if err != nil {
		t.Fatal(err)
	}
	s := in.NewSession()
	var out [][]float64
	for _, id := range tokens {
		rows, err := s.Step([]uint32{uint32(id)}, []uint32{0})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rows[0])
	}
	return out
}

// worstDifference is the greatest |a - b|, infinite where a is not a number.
func worstDifference(a [][]float32, b [][]float64) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	var worst float64
	for i := range a {
		for j, v := range a[i] {
			d := math.Abs(float64(v) - b[i][j])
			if !(d <= worst) {
				worst = d
			}
			if math.IsNaN(d) {
				return math.Inf(1)
			}
		}
	}
	return worst
}
