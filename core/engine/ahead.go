package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/core/lookahead"
	"github.com/sluicehost/sluice/sdk/program"
)

// runToken runs a one-token step with its routing on the GPU: some layers ahead at once, and again from the experts of the
// layer that lacked one. It computes what run computes.
func (m *Model) runToken(ctx context.Context, s *Session, step program.StepUniform) error {
	t := m.token
	m.runner.commands.Reset()
	defer m.letGo()
	if m.routed == nil && m.experts.pool.Whole() {
		return m.runWhole(ctx, s, step)
	}
	start, was := time.Now(), m.stats
	t.begin(m)
	defer func() { t.spent(m, time.Since(start), was) }()
	if err := t.fill(m, step); err != nil {
		return err
	}
	if err := t.write(m); err != nil {
		return err
	}
	if err := m.runStages(ctx, s, step); err != nil {
		return err
	}
	return m.readLogits(ctx, step)
}

// runStages submits a token's stretches, again from where a stage lacked an expert, until all stages had theirs.
func (m *Model) runStages(ctx context.Context, s *Session, step program.StepUniform) error {
	t, f := m.token, &m.token.flight
	f.land(0, 0)
	for t.heard = 0; t.heard < len(t.stages); {
		if err := m.advance(s, step); err != nil {
			return err
		}
		stop, err := m.hear(ctx, s, step)
		switch {
		case err != nil:
			return err
		case stop >= 0:
			if err := m.goOn(ctx, s, step, stop); err != nil {
				return err
			}
		case t.heard < len(t.stages):
			m.readAhead()
		}
	}
	if f.op == t.stages[len(t.stages)-1].experts { // the last stage stopped: its experts and the head are left
		if err := m.send(); err != nil {
			return err
		}
	}
	return m.fit(s, step, 0, 0) // the next token's
}

// goOn makes what a stage lacks resident, and the next stretch the one that begins with its experts. What is in flight behind
// the stop runs nothing.
func (m *Model) goOn(ctx context.Context, s *Session, step program.StepUniform, stop int) error {
	m.token.flight.land(m.token.stages[stop].experts, stop+1)
	if err := m.fetchStage(ctx, s, step, stop); err != nil {
		return err
	}
	return m.token.write(m)
}

// advance submits stretches as far ahead as pays: one, and another where it is likely that the GPU gets to it.
func (m *Model) advance(s *Session, step program.StepUniform) error {
	t, f := m.token, &m.token.flight
	for f.to < len(t.stages) && f.n < len(f.stretches) {
		if f.n > 0 && !lookahead.Passes(t.missing, f.to-t.heard) {
			return nil
		}
		if err := m.fit(s, step, f.op, f.to); err != nil {
			return err
		}
		if err := m.send(); err != nil {
			return err
		}
	}
	return nil
}

// hear waits for the oldest stretch, books what its stages picked, and returns the stage that lacks an expert, -1 for none, whose
// picks are left in the runner.
func (m *Model) hear(ctx context.Context, s *Session, step program.StepUniform) (stop int, err error) {
	t, f := m.token, &m.token.flight
	if f.to == len(t.stages) && f.n < len(f.stretches) && lookahead.Passes(t.missing, f.to-t.heard) {
		if err := m.fit(s, step, 0, 0); err != nil { // the next token's beginning, while the GPU works on the end of this one
			return 0, err
		}
	}
	x := &f.stretches[f.first]
	data, err := m.waitFor(ctx, x.back, f.n == 1)
	if err != nil {
		return 0, err
	}
	f.first, f.n = (f.first+1)%len(f.stretches), f.n-1
	if stop, err = m.note(data, x, step); err != nil {
		_ = x.back.Unmap() // the step has failed, but the next one copies to it
		return 0, err
	}
	return stop, x.back.Unmap()
}

// note books what a stretch did, and returns where it stopped, as hear does.
func (m *Model) note(data []byte, x *stretch, step program.StepUniform) (stop int, err error) {
	t := m.token
	stop = int(binary.LittleEndian.Uint32(data)) - 1
	if stop >= 0 && (stop < x.from || stop >= x.to) {
		return 0, fmt.Errorf("%w: at stage %d of %d to %d", errNoProgress, stop, x.from, x.to)
	}
	if t.heard = x.to; stop >= 0 {
		t.heard = stop + 1
	}
	return stop, m.book(data, x.from, t.heard, stop, step)
}

// book takes note of what stages picked, the last of which may have stopped, and keeps its guesses.
func (m *Model) book(data []byte, from, end, stop int, step program.StepUniform) error {
	t := m.token
	for i := from; i < end; i++ {
		if err := m.booked(data, i, i == stop, step); err != nil {
			return err
		}
		miss := 0.0
		if i == stop {
			miss = 1
			m.stats.Stops++
		}
		t.missing += (miss - t.missing) / lookahead.Memory
	}
	if end > from {
		t.keepGuesses(m, data, end-1)
	}
	return nil
}

// runWhole runs a step with every expert resident: nothing to resolve, one readback. The commands are those of every such
// step of the session, so they are encoded while the step before runs.
func (m *Model) runWhole(ctx context.Context, s *Session, step program.StepUniform) error {
	t := m.token
	for _, st := range t.stages {
		m.experts.pool.Found(st.layer, int(m.Plan.Model.TopK))
	}
	if err := t.fill(m, step); err != nil {
		return err
	}
	if err := t.write(m); err != nil {
		return err
	}
	if !t.whole.fits(s, step, 0) {
		if err := m.prepareWhole(s, step); err != nil {
			return err
		}
	}
	start := time.Now()
	t.flight.lists = append(t.flight.lists[:0], &t.whole.commands)
	if err := m.experts.submit(t.flight.lists, &noCommands); err != nil {
		t.whole.drop()
		return err
	}
	t.whole.ready = false
	m.timing.only()
	m.encoding(start)
	if err := m.prepareWhole(s, step); err != nil {
		return err
	}
	return m.readLogits(ctx, step)
}

// keepGuesses remembers what a stage guessed of the stages after it.
func (t *token) keepGuesses(m *Model, data []byte, stage int) {
	t.guesser = stage
	t.guessed = t.foretold(m, data, stage, min(t.ahead.Depth(), t.stages[stage].guesses), t.guessed[:0])
}

// foretold appends to dst what a stage guessed of the picks of as many stages after it.
func (t *token) foretold(m *Model, data []byte, stage, stages int, dst []int) []int {
	k := int(m.Plan.Model.TopK)
	words := data[4*(1+stage*t.perStage(m)+k):]
	for i := range k * stages {
		dst = append(dst, int(binary.LittleEndian.Uint32(words[4*i:])))
	}
	return dst
}

// readAhead starts reading what the last guesses name, in place of older guesses: the nearest stage first. Of the stages up to
// the one that guessed all picks are known.
func (m *Model) readAhead() {
	t, k := m.token, int(m.Plan.Model.TopK)
	m.experts.pool.DropGuesses(t.stages[t.guesser].layer)
	for i := 0; i < len(t.guessed); i += k {
		m.experts.pool.Guess(t.stages[t.guesser+1+i/k].layer, t.guessed[i:i+k], k)
	}
}

// booked takes note of a stage's picks; those of a stage that stopped are asked for and counted later.
func (m *Model) booked(data []byte, stage int, stopped bool, step program.StepUniform) error {
	r, t, k := &m.runner, m.token, int(m.Plan.Model.TopK)
	layer := t.stages[stage].layer
	r.asked = r.asked[:0]
	for i := range k {
		r.asked = append(r.asked, int(binary.LittleEndian.Uint32(data[4*(1+stage*t.perStage(m)+i):])))
	}
	if err := m.checkPicks(layer); err != nil {
		return err
	}
	if m.routed != nil {
		m.foretold = t.foretold(m, data, stage, t.stages[stage].guesses, m.foretold[:0])
		m.routed(layer, int(step.Pos0), r.asked, m.foretold)
	}
	if !stopped {
		m.experts.pool.Used(layer, r.asked)
	}
	return nil
}

// fetchStage makes a stage's picks resident, and meanwhile reads ahead and encodes what goes on there.
func (m *Model) fetchStage(ctx context.Context, s *Session, step program.StepUniform, stage int) error {
	pins, err := m.hold(ctx, m.token.stages[stage].layer, m.runner.asked)
	if err != nil {
		return err
	}
	m.readAhead()
	if err := m.fit(s, step, m.token.flight.op, m.token.flight.to); err != nil {
		return err
	}
	return m.await(ctx, pins, 0)
}
