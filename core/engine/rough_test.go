package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/core/stream"
	"github.com/sluicehost/sluice/sdk/program"
)

// rough is a source of slow pieces that fails at the calls it is told to.
type rough struct {
	keeper
	piece, check atomic.Int64 // calls to the one that fails
}

func (r *rough) ReadPiece(ctx context.Context, layer, expert, piece, of int, dst []byte) (uint32, error) {
	if rand.IntN(3) == 0 {
		time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
	}
	if r.piece.Add(-1) == 0 {
		return 0, errDisk
	}
	return r.Source.ReadPiece(ctx, layer, expert, piece, of, dst)
}

func (r *rough) Check(layer, expert int, sums []uint32) error {
	if r.check.Add(-1) == 0 {
		return errDisk
	}
	return r.Source.Check(layer, expert, sums)
}

// Sessions that take turns, come and go, beside prompts, fills and failing reads, checks and submits: whatever step succeeds gives
// the bits that waiting for each layer gives.
func TestRoughTimes(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 16)
	waiting := load(t, dev, f, engine.Options{Wait: true})
	want := oneByOne(t, waiting, tokens)
	o := engine.Options{KVF32: true, Keep: true, Timing: dev.Limits().Timestamps, Sessions: 4, Readers: 3, Chunk: 8}
	for i, more := range []uint64{0, 8 << 10, 1 << 20} {
		r, rng := &rough{keeper: keeper{kept: map[[2]int]int{}}}, rand.New(rand.NewPCG(seed, uint64(i)))
		open := func(p *program.Plan, w []*program.Placed, x []*program.PlacedRecord) (_ store.Source, err error) {
			r.Source, err = opener(f)(p, w, x)
			return r, err
		}
		o.Budget, o.Lookahead = 1, []int{1, 0, 0}[i]
		_, err := engine.Load(t.Context(), dev, store.Header(f), planner{}, open, o)
		small := (*engine.BudgetError)(nil)
		if !errors.As(err, &small) {
			t.Fatal(err)
		}
		o.Budget = small.Want() + more
		m, err := engine.Load(t.Context(), dev, store.Header(f), planner{}, open, o)
		if err != nil {
			t.Fatal(err)
		}
		x := &roughly{t: t, m: m, rng: rng, want: want, tokens: tokens, source: r}
		for range 100 {
			x.step()
		}
		t.Logf("budget %d: %d steps, %d failed, resident %v, %+v", i, x.steps, x.failed, m.Resident(), guesses(m))
		x.end()
		if len(r.strange) > 0 || i == 0 && len(r.kept) == 0 {
			t.Errorf("have %d records kept, wrong ones %v", len(r.kept), r.strange)
		}
	}
}

// roughly is a model under such treatment.
type roughly struct {
	t             *testing.T
	m             *engine.Model
	rng           *rand.Rand
	want          [][]float32
	tokens        []int32
	source        *rough
	sessions      [3]*engine.Session
	fills         sync.WaitGroup
	steps, failed int
}

func (x *roughly) open() *engine.Session {
	s, err := x.m.NewSession()
	if err != nil {
		x.t.Fatal(err)
	}
	return s
}

// step does one thing, and feeds a token to a session.
func (x *roughly) step() {
	s := &x.sessions[x.rng.IntN(len(x.sessions))]
	if *s != nil && ((*s).Pos() == len(x.tokens) || x.rng.IntN(12) == 0) {
		(*s).Close()
		*s = nil
	}
	if *s == nil {
		*s = x.open()
	}
	mapped := -1
	switch x.rng.IntN(16) {
	case 0:
		x.source.piece.Store(1 + x.rng.Int64N(3))
	case 1:
		x.source.check.Store(1 + x.rng.Int64N(3))
	case 2:
		k := stream.Key{Layer: x.rng.IntN(2), Expert: x.rng.IntN(toyExperts)}
		x.fills.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			_ = x.m.Fill(ctx, []stream.Key{k}) // may fail, or be cancelled
		})
	case 3:
		prompt := x.open()
		_ = prompt.Feed(context.Background(), x.tokens[:7], 0, nil) // may fail
		prompt.Close()
	case 4:
		mapped = x.rng.IntN(3)
		if _, err := engine.Readbacks(x.m)[mapped].Wait(context.Background()); err != nil {
			x.t.Fatal(err)
		}
	}
	if !x.feed(*s) {
		(*s).Close()
		*s = nil
	}
	if mapped >= 0 {
		if err := engine.Readbacks(x.m)[mapped].Unmap(); err != nil {
			x.t.Fatal(err)
		}
	}
}

// feed feeds a token and reports whether that went well.
func (x *roughly) feed(s *engine.Session) bool {
	x.steps++
	at := s.Pos()
	err := s.Feed(context.Background(), x.tokens[at:at+1], x.rng.IntN(2), func(_ int, l *engine.Logits) error {
		if !slices.Equal(l.All, x.want[at]) {
			x.t.Errorf("step %d: position %d has other logits", x.steps, at)
		}
		return nil
	})
	if err != nil {
		x.failed++
	}
	return err == nil
}

// end has reads fail no more, and then all goes well.
func (x *roughly) end() {
	x.fills.Wait()
	x.source.piece.Store(0)
	x.source.check.Store(0)
	s := x.open()
	for range x.tokens {
		if !x.feed(s) {
			x.t.Error("a step failed in calm times")
			break
		}
	}
	s.Close()
	for _, s := range x.sessions {
		if s != nil {
			s.Close()
		}
	}
	if err := x.m.Close(); err != nil {
		x.t.Error(err)
	}
}
