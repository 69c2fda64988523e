package engine

import (
	"context"
	"fmt"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// snapshot is a copy of what a session can't rewind: its rings and recurrent states.
type snapshot struct {
	pos    int           // tokens the session held; 0 is an unused snapshot
	arenas []*gpu.Buffer // beside the session's own; nil for those that are not copied
}

// snapshotted reports whether snapshots hold a copy of the class.
func snapshotted(c program.Class) bool {
	return c == program.Class_RING || c == program.Class_STATE
}

// makeSnapshots creates room for n snapshots.
func (s *Session) makeSnapshots(n int) error {
	for range n {
		snap := &snapshot{arenas: make([]*gpu.Buffer, len(s.arenas))}
		s.snapshots = append(s.snapshots, snap)
		for i, a := range s.model.kept.list {
			if !snapshotted(a.class) {
				continue
			}
			b, err := s.model.device.NewBuffer(gpu.State, "snapshot of "+a.label(i), a.size, gpu.UsageCopySrc|gpu.UsageCopyDst)
			if err != nil {
				return err
			}
			snap.arenas[i] = b
		}
	}
	return nil
}

// Snapshot keeps the session's state at the tokens it holds now, so that Continue can come back
// to them: call it at the end of a prompt. The oldest snapshot gives way.
func (s *Session) Snapshot() error {
	if len(s.snapshots) == 0 || s.pos == 0 || s.broken != nil {
		return nil
	}
	oldest := s.snapshots[0]
	for _, snap := range s.snapshots {
		if snap.pos == s.pos {
			return nil
		}
		if snap.pos < oldest.pos {
			oldest = snap
		}
	}
	oldest.pos = 0 // until the copy is queued
	if err := s.copyState(s.arenas, oldest.arenas); err != nil {
		return err
	}
	oldest.pos = s.pos
	return nil
}

// copyState copies every ring and state between a session and a snapshot.
func (s *Session) copyState(from, to []*gpu.Buffer) error {
	var c gpu.Commands
	for i, a := range s.model.kept.list {
		if snapshotted(a.class) {
			c.Copy(from[i], 0, to[i], 0, a.size)
		}
	}
	if c.Len() == 0 {
		return nil
	}
	return s.model.device.Submit(&c)
}

// Continue makes the session hold exactly tokens: it keeps as much of what it holds as is a prefix
// of them and within reach, and feeds the rest. Caches rewind to any position, rings at most a
// chunk back, recurrent states only to a snapshot. It returns how many tokens were kept; want and
// emit are as in Feed. A session that a failed step broke is rebuilt.
func (s *Session) Continue(ctx context.Context, tokens []int32, want int, emit func(pos int, l *Logits) error) (kept int, err error) {
	if len(tokens) > s.model.Context {
		return 0, fmt.Errorf("engine: have %d tokens, want at most %d: %w", len(tokens), s.model.Context, ErrContextFull)
	}
	limit := min(len(s.tokens), len(tokens)-max(want, 1))
	for kept < limit && s.tokens[kept] == tokens[kept] {
		kept++
	}
	if kept, err = s.rewind(kept); err != nil {
		return 0, err
	}
	return kept, s.Feed(ctx, tokens[kept:], want, emit)
}

// Reset empties the session. It also mends one that a failed step broke.
func (s *Session) Reset() error {
	_, err := s.rewind(0)
	return err
}

// rewind goes back to the last position within reach at or before n, and returns it.
func (s *Session) rewind(n int) (int, error) {
	pos := 0
	if s.reaches(n) {
		pos = n
	}
	var best *snapshot
	for _, snap := range s.snapshots {
		if snap.pos > pos && snap.pos <= n {
			best, pos = snap, snap.pos
		}
	}
	if err := s.moveTo(pos, best); err != nil {
		s.broken = err
		return 0, err
	}
	for _, snap := range s.snapshots {
		if snap.pos > pos { // the caches after pos are about to be overwritten
			snap.pos = 0
		}
	}
	s.tokens, s.broken = s.tokens[:pos], nil
	s.pos = pos
	return pos, nil
}

// moveTo sets rings and states to those of a snapshot, or clears the states for an empty session.
func (s *Session) moveTo(pos int, from *snapshot) error {
	if from != nil {
		return s.copyState(from.arenas, s.arenas)
	}
	if pos > 0 {
		return nil
	}
	for i, a := range s.model.kept.list {
		if a.class != program.Class_STATE {
			continue // caches and rings need no clearing: positions that were not written are not read
		}
		if err := s.model.device.Clear(s.arenas[i], 0, a.size); err != nil {
			return err
		}
	}
	s.high = 0
	return nil
}

// reaches reports whether the session can be at position n without a snapshot.
func (s *Session) reaches(n int) bool {
	if n == s.pos && s.broken == nil {
		return true
	}
	for _, b := range s.model.Program.Buffers {
		switch {
		case b.Class == program.Class_STATE:
			return false
		case b.Class == program.Class_RING && n < s.high-s.model.Chunk:
			return false
		}
	}
	return true
}
