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

// flight is the stretches that are submitted and not heard of: while the host reads what one did the GPU works on the other.
type flight struct {
	stretches [2]stretch
	first     int // the older one
	n         int
	lists     []*gpu.Prepared // of the stretch at hand
}

// stretch is a submit of some parts.
type stretch struct {
	from, to int           // stages that it resolves
	back     *gpu.Readback // stop and the log
	behind   gpu.Commands  // the copy to it
}

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
	if err := t.fill(m, step); err != nil {
		return err
	}
	if err := t.write(m, 0, 0); err != nil {
		return err
	}
	if err := m.runStages(ctx, s, step); err != nil {
		return err
	}
	return m.readLogits(ctx, step)
}

// runStages submits all parts of a token, again from the one where a stage lacked an expert, until all stages had theirs.
func (m *Model) runStages(ctx context.Context, s *Session, step program.StepUniform) (err error) {
	t := m.token
	sent, next := 0, 0 // the next part to submit, and the next stage to hear of
	t.flight.n = 0
	for next < len(t.stages) {
		if sent, err = m.sendStretches(s, step, sent, next); err != nil {
			return err
		}
		stop, end, err := m.hear(ctx, s, step, sent)
		if err != nil {
			return err
		}
		if next = end; stop < 0 {
			if next < len(t.stages) {
				m.readAhead()
			}
			continue
		}
		t.flight.n = 0 // what is behind the stop runs nothing
		sent, next = stop/partStages, stop+1
		if err := m.fetchStage(ctx, s, step, stop); err != nil {
			return err
		}
		if err := t.write(m, t.stages[stop].experts, next); err != nil {
			return err
		}
	}
	if sent == len(t.parts) {
		return nil
	}
	return m.sendStretch(s, step, sent, len(t.parts), next) // the last stage stopped: its experts and the head are left
}

// sendStretches submits parts from one on, whose stages from next on are not heard of, as far ahead as pays: one stretch, and another
// where it is likely that the GPU gets to it. It returns the part after them.
func (m *Model) sendStretches(s *Session, step program.StepUniform, from, next int) (int, error) {
	t := m.token
	lead := lookahead.Lead(t.missing, len(t.stages))
	for from < len(t.parts) && t.flight.n < len(t.flight.stretches) {
		if t.flight.n > 0 && !lookahead.Passes(t.missing, lead) {
			break
		}
		next = max(next, t.parts[from].first)
		to := min((next+lead+partStages-1)/partStages, len(t.parts))
		if err := m.sendStretch(s, step, from, to, next); err != nil {
			return from, err
		}
		from = to
	}
	return from, nil
}

// sendStretch submits the parts from one up to another, of which the stages from next on are resolved.
func (m *Model) sendStretch(s *Session, step program.StepUniform, from, to, next int) error {
	t, f := m.token, &m.token.flight
	f.lists = f.lists[:0]
	for i := from; i < to; i++ {
		if err := m.fit(s, step, i); err != nil {
			return err
		}
		f.lists = append(f.lists, &t.parts[i].commands)
	}
	sp := &f.stretches[(f.first+f.n)%len(f.stretches)]
	sp.from, sp.to = next, t.parts[to-1].end
	f.n++
	for i := from; i < to; i++ {
		t.parts[i].ready = false
	}
	return m.submitPrepared(f.lists, &sp.behind)
}

// hear waits for the oldest stretch, books what its stages picked, and returns the stage that lacks an expert, -1 for none, whose
// picks are left in the runner, and the stage after those that it is about. While the GPU works parts are prepared, those from
// one on first.
func (m *Model) hear(ctx context.Context, s *Session, step program.StepUniform, from int) (stop, end int, err error) {
	f := &m.token.flight
	sp := &f.stretches[f.first]
	if err := m.prepareMeanwhile(s, step, from, sp.back); err != nil {
		return 0, 0, err
	}
	data, err := m.waitFor(ctx, sp.back, f.n == 1)
	if err != nil {
		return 0, 0, err
	}
	f.first, f.n = (f.first+1)%len(f.stretches), f.n-1
	stop = int(binary.LittleEndian.Uint32(data)) - 1
	if stop >= 0 && (stop < sp.from || stop >= sp.to) {
		return 0, 0, fmt.Errorf("%w: at stage %d of %d to %d", errNoProgress, stop, sp.from, sp.to)
	}
	if end = sp.to; stop >= 0 {
		end = stop + 1
	}
	if err := m.book(data, sp.from, end, stop, step); err != nil {
		return 0, 0, err
	}
	return stop, end, sp.back.Unmap()
}

// prepareMeanwhile prepares parts until a readback is there.
func (m *Model) prepareMeanwhile(s *Session, step program.StepUniform, from int, back *gpu.Readback) error {
	for {
		i := m.unfit(s, step, from)
		if i < 0 {
			return nil
		}
		if over, err := back.Ready(); over || err != nil {
			return err
		}
		if err := m.preparePart(s, step, i); err != nil {
			return err
		}
	}
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
	if err := t.write(m, 0, 0); err != nil {
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

// preparedAtStop is how many parts are prepared while a stop's experts are read: those that come next. Encoding holds up what
// brings the records, so the others wait.
const preparedAtStop = 2

// fetchStage makes a stage's picks resident, and meanwhile reads ahead and prepares what comes next.
func (m *Model) fetchStage(ctx context.Context, s *Session, step program.StepUniform, stage int) error {
	pins, err := m.hold(ctx, m.token.stages[stage].layer, m.runner.asked)
	if err != nil {
		return err
	}
	m.readAhead()
	for i := stage / partStages; i < min(stage/partStages+preparedAtStop, len(m.token.parts)); i++ {
		if err := m.fit(s, step, i); err != nil {
			return err
		}
	}
	return m.await(ctx, pins, 0)
}
