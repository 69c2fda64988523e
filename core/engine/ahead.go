package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
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
	start, stops := time.Now(), m.stats.Stops
	t.begin(m)
	defer func() { t.spent(m, time.Since(start), m.stats.Stops-stops) }()
	at, next := 0, 0 // the next op, and the next stage whose routing is to run
	for {
		if err := t.write(m, step); err != nil {
			return err
		}
		end := min(next+lookahead.Lead(t.missing, len(t.stages)), len(t.stages))
		m.recordSpan(s, at, next, end, step)
		stop, err := m.runSpan(ctx, next, end, step)
		if err != nil {
			return err
		}
		switch {
		case stop >= 0:
			if err := m.fetchStage(ctx, stop); err != nil {
				return err
			}
			at, next = t.stages[stop].experts, stop+1
			if next == len(t.stages) { // only the last stage's experts and the head are left
				return m.runRest(ctx, s, at, step)
			}
		case end == len(t.stages):
			return m.readLogits(ctx, step)
		default:
			m.readAhead()
			at, next = t.stages[end].first, end
		}
	}
}

// runWhole runs a step with every expert resident: nothing to resolve, one readback. The commands are those of every such
// step of the session, so they are encoded while the step before runs.
func (m *Model) runWhole(ctx context.Context, s *Session, step program.StepUniform) error {
	for _, st := range m.token.stages {
		m.experts.pool.Found(st.layer, int(m.Plan.Model.TopK))
	}
	if err := m.token.write(m, step); err != nil {
		return err
	}
	n := &m.token.next
	if !n.fits(s, step) {
		if err := m.prepare(s, step); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := n.commands.Submit(); err != nil {
		return err
	}
	n.ready = false
	m.timing.only()
	m.encoding(start)
	if err := m.prepare(s, step); err != nil {
		return err
	}
	return m.readLogits(ctx, step)
}

// prepared is a whole step's commands, encoded.
type prepared struct {
	list     gpu.Commands
	commands gpu.Prepared
	ready    bool // to be submitted
	session  *Session
	outs     uint32
}

// fits reports whether it is what a step of a session needs.
func (p *prepared) fits(s *Session, step program.StepUniform) bool {
	return p.ready && p.session == s && p.outs == step.O
}

// drop frees what is prepared.
func (p *prepared) drop() {
	if p.ready {
		p.commands.Discard()
		p.ready = false
	}
}

// prepare encodes a step like the given one.
func (m *Model) prepare(s *Session, step program.StepUniform) (err error) {
	defer m.encoding(time.Now())
	n := &m.token.next
	n.drop()
	n.list.Reset()
	m.timing.start(&n.list, 0)
	m.token.record(m, &n.list, s, 0, m.token.tail, true)
	m.recordHead(&n.list, s, step, true)
	m.timing.stop(&n.list, 0)
	n.session, n.outs = s, step.O
	err = m.device.Prepare(&n.commands, &n.list)
	n.ready = err == nil
	return err
}

// runRest runs all ops from one on, with nothing left to resolve, and reads the logits.
func (m *Model) runRest(ctx context.Context, s *Session, from int, step program.StepUniform) error {
	if err := m.token.write(m, step); err != nil {
		return err
	}
	start := time.Now()
	m.token.record(m, &m.runner.commands, s, from, m.token.tail, false)
	m.recordHead(&m.runner.commands, s, step, false)
	m.encoding(start)
	if err := m.submit(); err != nil {
		return err
	}
	return m.readLogits(ctx, step)
}

// recordSpan records the ops from at on, up to the end of stage end - 1, and after the last stage the head. Stages from next
// on are resolved.
func (m *Model) recordSpan(s *Session, at, next, end int, step program.StepUniform) {
	defer m.encoding(time.Now())
	t, c := m.token, &m.runner.commands
	for i := next; i < end; i++ {
		t.record(m, c, s, at, t.stages[i].experts, false)
		c.Dispatch(t.resolve, t.groups[i], 1, 1, 1)
		at = t.stages[i].experts
		t.record(m, c, s, at, t.stages[i].end, false)
		at = t.stages[i].end
	}
	if end == len(t.stages) {
		t.record(m, c, s, at, t.tail, false)
		m.recordHead(c, s, step, false)
	}
	t.readback.Copy(c, 0, t.buffer, 0, t.logBytes())
}

// recordHead records the head and the copy of its results.
func (m *Model) recordHead(c *gpu.Commands, s *Session, step program.StepUniform, whole bool) {
	if step.O == 0 {
		return
	}
	t := m.token
	t.record(m, c, s, t.tail, len(t.ops), whole)
	m.copyLogits(c, step.O)
}

// runSpan submits what is recorded, books what the stages from next up to end picked, and returns the stage that lacks an
// expert, -1 for none; its picks are left in the runner.
func (m *Model) runSpan(ctx context.Context, next, end int, step program.StepUniform) (int, error) {
	t := m.token
	if err := m.submit(); err != nil {
		return 0, err
	}
	data, err := m.wait(ctx, t.readback)
	if err != nil {
		return 0, err
	}
	stop := int(binary.LittleEndian.Uint32(data)) - 1
	if stop >= 0 && (stop < next || stop >= end) {
		return 0, fmt.Errorf("%w: at stage %d of %d to %d", errNoProgress, stop, next, end)
	}
	last := end - 1
	if stop >= 0 {
		last = stop
	}
	for i := next; i <= last; i++ {
		if err := m.booked(data, i, i == stop, step); err != nil {
			return 0, err
		}
		miss := 0.0
		if i == stop {
			miss = 1
			m.stats.Stops++
		}
		t.missing += (miss - t.missing) / lookahead.Memory
	}
	if last >= next {
		t.keepGuesses(m, data, last)
	}
	return stop, t.readback.Unmap()
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

// readAhead starts reading what the last guesses name, in place of older guesses: the nearest stage first.
func (m *Model) readAhead() {
	t, k := m.token, int(m.Plan.Model.TopK)
	m.experts.pool.DropGuesses()
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

// fetchStage makes a stage's picks resident, and reads ahead meanwhile.
func (m *Model) fetchStage(ctx context.Context, stage int) error {
	return m.ensure(ctx, m.token.stages[stage].layer, m.runner.asked, m.readAhead)
}
