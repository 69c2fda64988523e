package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// ErrContextFull says that a session holds as many tokens as it can.
var ErrContextFull = errors.New("the context is full")

// Session is one conversation's state: caches, rings and recurrent states. Several sessions
// of a model may take turns; each belongs to one goroutine at a time.
type Session struct {
	model     *Model
	arenas    []*gpu.Buffer // as Model.kept says
	groups    [][]*gpu.BindGroup
	tokens    []int32 // that it holds
	pos       int     // their number
	high      int     // positions that were ever written since the session was empty
	broken    error   // why a step failed that may have moved the state on
	snapshots []*snapshot
	closed    bool
}

// sessions counts those of a model, so that they stay within its budget.
type sessions struct {
	mu      sync.Mutex
	budget  uint64 // bytes; 0 is none
	planned int    // that the budget has room for
	live    int
}

// open counts a session more, or says why there is no room for it in what is left of the budget.
func (x *sessions) open(b Budget) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if more := x.live + 1 - x.planned; more > 0 && x.budget > 0 {
		left := x.budget - min(x.budget, b.Total()+uint64(more-1)*b.Session)
		if b.Session > left {
			return fmt.Errorf("engine: session %d: %w: have %d bytes left, want %d: close another session, or plan for more of them (Options.Sessions is %d)",
				x.live+1, gpu.ErrBudget, left, b.Session, x.planned)
		}
	}
	x.live++
	return nil
}

func (x *sessions) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.live--
}

// NewSession makes an empty session. One that the budget has no room for is refused (gpu.ErrBudget).
func (m *Model) NewSession() (*Session, error) {
	if err := m.sessions.open(m.Budget); err != nil {
		return nil, err
	}
	s := &Session{model: m}
	err := s.makeArenas()
	if err == nil {
		err = s.makeSnapshots(m.snapshots)
	}
	if err == nil {
		s.groups, err = m.bindAll(s)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// makeArenas creates what the session keeps, zeroed.
func (s *Session) makeArenas() error {
	for i, a := range s.model.kept.list {
		b, err := s.model.device.NewBuffer(kindOf(a.class), a.label(i), a.size, gpu.UsageStorage|gpu.UsageCopyDst|gpu.UsageCopySrc)
		if err != nil {
			return err
		}
		s.arenas = append(s.arenas, b)
	}
	return nil
}

// Close frees the session's buffers. Closing twice is harmless.
func (s *Session) Close() {
	if s.closed {
		return
	}
	s.closed = true
	s.model.sessions.close()
	s.model.busy <- struct{}{}
	if t := s.model.token; t != nil {
		t.forget(s)
	}
	<-s.model.busy
	for _, groups := range s.groups {
		for _, g := range groups {
			if g != nil {
				g.Release()
			}
		}
	}
	for _, snap := range append(s.snapshots, &snapshot{arenas: s.arenas}) {
		for _, b := range snap.arenas {
			if b != nil {
				b.Release()
			}
		}
	}
}

// Pos is the number of tokens the session holds.
func (s *Session) Pos() int { return s.pos }

// Room is how many more tokens it can hold.
func (s *Session) Room() int { return s.model.Context - s.pos }

// Feed appends tokens, a chunk at a time. For each of the last want ones it calls emit, in
// order, with the token's position and the logits after it; they are valid during the
// call, which must not use the model. The context is heeded between steps: one that has begun ends.
func (s *Session) Feed(ctx context.Context, tokens []int32, want int, emit func(pos int, l *Logits) error) error {
	if len(tokens) > s.Room() {
		return fmt.Errorf("engine: have %d tokens and %d more, want at most %d in all: %w", s.pos, len(tokens), s.model.Context, ErrContextFull)
	}
	for len(tokens) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := s.model.stepLength(len(tokens), want)
		outs := max(0, min(n, n-len(tokens)+want))
		if err := s.step(tokens[:n], outs); err != nil {
			return err
		}
		for i := range outs {
			if err := emit(s.pos-outs+i, s.model.row(i)); err != nil {
				return err
			}
		}
		tokens = tokens[n:]
	}
	return nil
}

// stepLength is how many of left tokens, the last want of which need logits, go into the next
// step: as many as fit a chunk, but no more rows of logits than a step can give.
func (m *Model) stepLength(left, want int) int {
	n := min(left, m.Chunk)
	plain := max(0, left-want) // tokens whose logits nobody wants
	n = min(n, plain+m.outs())
	if n < fewTokens && m.device.Limits().CPU {
		return 1
	}
	return n
}

// fewTokens is where the forms for many tokens begin to pay on a software device: below it they
// gain little, and a cold start would compile them (about a second each) for nothing.
const fewTokens = 5

// step feeds tokens and leaves the logits of the last outs of them in the runner.
func (s *Session) step(ids []int32, outs int) error {
	if s.broken != nil {
		return fmt.Errorf("engine: an earlier step of this session failed, reset it first: %w", s.broken)
	}
	if s.closed {
		return errors.New("engine: have a session that is closed, want an open one")
	}
	m := s.model
	m.busy <- struct{}{}
	defer func(start time.Time) { m.stats.Time += time.Since(start); <-m.busy }(time.Now())
	if err := m.input(ids, s.pos); err != nil {
		return err
	}
	step := program.StepUniform{T: uint32(len(ids)), Pos0: uint32(s.pos), S: uint32(s.pos + len(ids)), O: uint32(outs), Chunk: uint32(m.Chunk)}
	// From here on the session's state changes: a step that fails half-way leaves it unusable, so none is cancelled.
	s.high = max(s.high, s.pos+len(ids))
	if err := m.run(context.Background(), s, step); err != nil {
		s.broken = err
		return err
	}
	s.tokens = append(s.tokens, ids...)
	s.pos += len(ids)
	return nil
}
