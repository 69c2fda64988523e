package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// ErrContextFull says that a session holds as many tokens as it can.
var ErrContextFull = errors.New("the context is full")

// Session is one conversation's state: caches, rings and recurrent states. Several sessions
// of a model may take turns; each belongs to one goroutine at a time.
type Session struct {
	model   *Model
	buffers map[uint32]*gpu.Buffer
	groups  [][]*gpu.BindGroup
	pos     int
	broken  error
}

// NewSession makes an empty session.
func (m *Model) NewSession() (*Session, error) {
	s := &Session{model: m, buffers: map[uint32]*gpu.Buffer{}}
	for i, b := range m.Program.Buffers {
		if b.Class == program.Class_SCRATCH {
			continue
		}
		buf, err := m.makeBuffer(b)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.buffers[uint32(i)] = buf
	}
	var err error
	if s.groups, err = m.bindAll(s); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close frees the session's buffers.
func (s *Session) Close() {
	for _, groups := range s.groups {
		for _, g := range groups {
			if g != nil {
				g.Release()
			}
		}
	}
	for _, b := range s.buffers {
		b.Release()
	}
}

// Pos is the number of tokens the session holds.
func (s *Session) Pos() int { return s.pos }

// Room is how many more tokens it can hold.
func (s *Session) Room() int { return s.model.Context - s.pos }

// Reset empties the session. It also mends one that a failed step broke.
func (s *Session) Reset() error {
	for i, b := range s.buffers {
		// Caches need no clearing: positions that were not written are not read.
		if s.model.Program.Buffers[i].Class != program.Class_STATE {
			continue
		}
		if err := s.model.device.Clear(b, 0, b.Size()); err != nil {
			return err
		}
	}
	s.pos, s.broken = 0, nil
	return nil
}

// Feed appends tokens. For each of the last want ones it calls emit, in order, with the
// token's position and the logits after it; the slice is valid during the call. The context
// is heeded between tokens: a step that has begun ends.
func (s *Session) Feed(ctx context.Context, tokens []int32, want int, emit func(pos int, logits []float32) error) error {
	if len(tokens) > s.Room() {
		return fmt.Errorf("engine: have %d tokens and %d more, want at most %d in all: %w", s.pos, len(tokens), s.model.Context, ErrContextFull)
	}
	for i, id := range tokens {
		if err := ctx.Err(); err != nil {
			return err
		}
		logits, err := s.step(ctx, id, i >= len(tokens)-want)
		if err != nil {
			return err
		}
		if logits == nil {
			continue
		}
		if err := emit(s.pos-1, logits); err != nil {
			return err
		}
	}
	return nil
}

// step feeds one token; the logits are nil where they are not wanted.
func (s *Session) step(ctx context.Context, id int32, want bool) ([]float32, error) {
	if s.broken != nil {
		return nil, fmt.Errorf("engine: an earlier step of this session failed, reset it first: %w", s.broken)
	}
	m := s.model
	m.busy <- struct{}{}
	defer func() { <-m.busy }()
	if err := m.input([]int32{id}, s.pos); err != nil {
		return nil, err
	}
	step := program.StepUniform{T: 1, Pos0: uint32(s.pos), S: uint32(s.pos + 1), Chunk: uint32(m.chunk)}
	if want {
		step.O = 1
	}
	// From here on the session's state changes: a step that fails half-way leaves it unusable.
	logits, err := m.run(context.WithoutCancel(ctx), s, step)
	if err != nil {
		s.broken = err
		return nil, err
	}
	s.pos++
	return logits, nil
}
