package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

func equalRows(a, b [][]float32) bool {
	return slices.EqualFunc(a, b, func(x, y []float32) bool { return slices.Equal(x, y) })
}

// The smallest pool that the engine names gives the same bits as one that holds everything, and
// one byte less is refused.
func TestPoolSizesGiveTheSameLogits(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 12)
	whole := load(t, dev, f, engine.Options{})
	want := feed(t, session(t, whole), tokens)
	smallest := smallestBudget(whole)
	for _, budget := range []uint64{smallest, (smallest + whole.Budget.Total()) / 2, whole.Budget.Total()} {
		m := load(t, dev, f, engine.Options{Budget: budget})
		if m.Budget.Total() > budget {
			t.Errorf("budget %d: predicted %d", budget, m.Budget.Total())
		}
		if !equalRows(feed(t, session(t, m), tokens), want) {
			t.Errorf("budget %d: logits differ from those with everything resident", budget)
		}
	}
	_, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, opener(f), engine.Options{Budget: smallest - 1, KVF32: true})
	if err == nil || !strings.Contains(err.Error(), " ("+itoa(smallest)+" bytes)") {
		t.Errorf("a byte below the smallest budget %d: have error %v", smallest, err)
	}
}

// smallestBudget leaves top-k slots for each of the toy's two record layouts.
func smallestBudget(m *engine.Model) uint64 {
	n := m.Budget.Total() - m.Budget.Pool
	for _, r := range m.Records {
		n += gpu.Reserved(toyTopK * r.Stride)
	}
	return n
}

// Layers of one record layout give the same bits in one bank, and in a bank each, as where all of them exceed a binding.
func TestBanksOfALayoutGiveTheSameLogits(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFileOf(t, seed, ggml.Q4_0, ggml.Q4_0), tokensOf(seed, 12)
	o := engine.Options{Sessions: 2}
	whole := load(t, dev, f, o)
	run := func(m *engine.Model) (rows [][]float32) {
		rows = append(rows, feed(t, session(t, m), tokens)...)
		s := session(t, m)
		for _, id := range tokens {
			rows = append(rows, feed(t, s, []int32{id})...)
		}
		return rows
	}
	want, one := run(whole), whole.Records[0].Stride*toyExperts
	small := whole.Budget.Total() - whole.Budget.Pool + 2*gpu.Reserved(toyTopK*whole.Records[0].Stride)
	for _, c := range []struct {
		limit, budget uint64
		banks         int
	}{{0, 0, 1}, {2 * one, 0, 1}, {2*one - 1, 0, 2}, {one, 0, 2}, {one / 2, 0, 2}, {one, small, 1}, {one / 2, small, 2}} {
		o.Budget = c.budget
		m := load(t, dev, f, engine.BankLimit(o, c.limit))
		if n := engine.Banks(m); n != c.banks {
			t.Errorf("%+v: have %d banks", c, n)
		}
		if !equalRows(run(m), want) {
			t.Errorf("%+v: the logits differ", c)
		}
	}
}

// What is predicted per kind is what is made, and it all goes away again.
func TestBudgetIsWhatIsMade(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f := toyFile(t, seed)
	before, requested := dev.Bytes(), dev.Memory().Requested
	m, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, opener(f), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	feed(t, s, tokensOf(seed, 2))
	for kind, want := range m.Budget.ByKind() {
		if have := dev.Bytes()[kind] - before[kind]; have != want {
			t.Errorf("%s: have %d bytes, predicted %d", kind, have, want)
		}
	}
	if have := dev.Memory().Requested - requested; have != m.Budget.Requested {
		t.Errorf("have %d bytes requested, predicted %d", have, m.Budget.Requested)
	}
	s.Close()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for kind, n := range dev.Bytes() {
		if n != before[kind] {
			t.Errorf("%s: %d bytes before, %d after Close", kind, before[kind], n)
		}
	}
}

// Sessions that take turns give what each gives alone; so does one after Reset.
func TestSessionsTakeTurns(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	m := load(t, dev, toyFile(t, seed), engine.Options{Chunk: 1})
	a, b := session(t, m), session(t, m)
	one, two := tokensOf(seed, 9), tokensOf(seed+1, 9)
	wantOne := feed(t, a, one)
	if err := a.Reset(); err != nil {
		t.Fatal(err)
	}
	wantTwo := feed(t, a, two)
	if err := a.Reset(); err != nil {
		t.Fatal(err)
	}
	var gotOne, gotTwo [][]float32
	for i := range one {
		gotOne = append(gotOne, feed(t, a, one[i:i+1])...)
		gotTwo = append(gotTwo, feed(t, b, two[i:i+1])...)
	}
	if !equalRows(gotOne, wantOne) || !equalRows(gotTwo, wantTwo) {
		t.Error("sessions that alternate differ from sessions alone")
	}
}

func TestContextEndsCleanly(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f := toyFile(t, seed)
	m := load(t, dev, f, engine.Options{Context: 5})
	s := session(t, m)
	feed(t, s, tokensOf(seed, 4))
	err := s.Feed(context.Background(), tokensOf(seed, 2), 0, nil)
	if !errors.Is(err, engine.ErrContextFull) {
		t.Errorf("6 tokens in a context of 5: have error %v", err)
	}
	feed(t, s, tokensOf(seed, 1))
	if s.Room() != 0 {
		t.Errorf("have room for %d, want 0", s.Room())
	}
	for _, n := range []int{-1, toyContext + 1} {
		_, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, opener(f), engine.Options{Context: n})
		if err == nil || !strings.Contains(err.Error(), "context") {
			t.Errorf("context %d: have error %v", n, err)
		}
	}
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	if err := s.Feed(context.Background(), []int32{toyVocab}, 0, nil); err == nil || !strings.Contains(err.Error(), itoa(toyVocab)) {
		t.Errorf("token outside the vocabulary: have error %v", err)
	}
}

// A cancelled feed stops between tokens and leaves the session as far as it got.
func TestFeedHeedsItsContext(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	m := load(t, dev, toyFile(t, seed), engine.Options{Chunk: 1})
	s, tokens := session(t, m), tokensOf(seed, 6)
	want := feed(t, s, tokens)
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err := s.Feed(ctx, tokens, 6, func(pos int, _ *engine.Logits) error {
		if pos == 2 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || s.Pos() != 3 {
		t.Fatalf("have error %v at position %d, want canceled at 3", err, s.Pos())
	}
	if !equalRows(feed(t, s, tokens[3:]), want[3:]) {
		t.Error("logits after a cancelled feed differ")
	}
}

// faulty fails record reads while it is set to.
type faulty struct {
	store.Source
	failing atomic.Bool
}

var errDisk = errors.New("the disk is gone")

func (f *faulty) ReadPiece(ctx context.Context, layer, expert, piece, of int, dst []byte) (uint32, error) {
	if f.failing.Load() {
		return 0, errDisk
	}
	return f.Source.ReadPiece(ctx, layer, expert, piece, of, dst)
}

// A read that fails in mid-step breaks its session until Reset, and no other.
func TestFailedReadBreaksTheSession(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 8)
	src := &faulty{}
	open := func(p *program.Plan, w []*program.Placed, r []*program.PlacedRecord) (store.Source, error) {
		s, err := opener(f)(p, w, r)
		src.Source = s
		return src, err
	}
	whole := load(t, dev, f, engine.Options{Sessions: 2})
	want := feed(t, session(t, whole), tokens)
	m, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, open, engine.Options{Budget: smallestBudget(whole), Sessions: 2, KVF32: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := session(t, m)
	src.failing.Store(true)
	if err := s.Feed(context.Background(), tokens[:1], 0, nil); !errors.Is(err, errDisk) {
		t.Fatalf("have error %v, want the disk's", err)
	}
	src.failing.Store(false)
	if err := s.Feed(context.Background(), tokens[:1], 0, nil); err == nil || !strings.Contains(err.Error(), "reset") {
		t.Errorf("a broken session took a token: %v", err)
	}
	if !equalRows(feed(t, session(t, m), tokens), want) {
		t.Error("another session differs after the failure")
	}
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	if !equalRows(feed(t, s, tokens), want) {
		t.Error("the session differs after its reset")
	}
}

// Every allocation can fail: Load gives the error and leaves nothing behind.
func TestLoadUndoesItself(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f := toyFile(t, seed)
	before := dev.Bytes()
	full := errors.New("no memory")
	n := 1 + rand.IntN(20)
	t.Cleanup(func() { dev.SetAllocationHook(nil) })
	for i := n; ; i += n {
		left := i
		dev.SetAllocationHook(func(gpu.Kind, string, uint64) error {
			if left--; left < 0 {
				return full
			}
			return nil
		})
		m, err := engine.Load(context.Background(), dev, store.Header(f), planner{}, opener(f), engine.Options{})
		if err == nil {
			m.Close()
			break
		}
		if !errors.Is(err, full) {
			t.Fatalf("after %d allocations: have error %v", i, err)
		}
		for kind, b := range dev.Bytes() {
			if b != before[kind] {
				t.Fatalf("after %d allocations: %d bytes of %s left", i, b-before[kind], kind)
			}
		}
	}
}
