package engine

import (
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// partStages is how many stages one list of prepared commands has. Fewer make a stop cheaper: what of the list ran before runs
// again on no workgroups, and all of it is encoded again. More spare the driver lists.
const partStages = 2

// prepared is commands of one-token steps of a session, encoded before they are needed: that costs the CPU some 2 µs a dispatch,
// and is done while the GPU computes or a disk reads.
type prepared struct {
	list     gpu.Commands
	commands gpu.Prepared
	ready    bool // to be submitted
	session  *Session
	outs     uint32
	depth    int // guesses recorded
}

// part is the commands of the stages from first up to end, of the last ones with the head.
type part struct {
	prepared
	first, end int
}

// fits reports whether it is what a step of a session needs, with guesses at least so deep.
func (p *prepared) fits(s *Session, step program.StepUniform, depth int) bool {
	return p.ready && p.session == s && p.outs == step.O && p.depth >= depth
}

// drop frees what is prepared.
func (p *prepared) drop() {
	if p.ready {
		p.commands.Discard()
		p.ready = false
	}
}

// forget drops what is prepared for a session, or for any (nil).
func (t *token) forget(s *Session) {
	if s == nil || t.whole.session == s {
		t.whole.drop()
	}
	for i := range t.parts {
		if p := &t.parts[i]; s == nil || p.session == s {
			p.drop()
		}
	}
}

// encode makes a list that is recorded one that a step like the given one can submit.
func (p *prepared) encode(m *Model, s *Session, step program.StepUniform, depth int) error {
	p.session, p.outs, p.depth = s, step.O, depth
	err := m.device.Prepare(&p.commands, &p.list)
	p.ready = err == nil
	return err
}

// prepareWhole prepares a step with every expert resident.
func (m *Model) prepareWhole(s *Session, step program.StepUniform) error {
	defer m.encoding(time.Now())
	t, p := m.token, &m.token.whole
	p.drop()
	p.list.Reset()
	m.timing.start(&p.list, 0)
	t.record(m, &p.list, s, 0, t.tail, true)
	m.recordHead(&p.list, s, step, true)
	m.timing.stop(&p.list, 0)
	return p.encode(m, s, step, 0)
}

// preparePart prepares a part with resolving.
func (m *Model) preparePart(s *Session, step program.StepUniform, i int) error {
	defer m.encoding(time.Now())
	t, p := m.token, &m.token.parts[i]
	p.drop()
	c := &p.list
	c.Reset()
	for i := p.first; i < p.end; i++ {
		st := t.stages[i]
		t.record(m, c, s, st.first, st.experts, false)
		c.Dispatch(t.resolve, t.groups[i], 1, 1, 1)
		t.record(m, c, s, st.experts, st.end, false)
	}
	if p.end == len(t.stages) {
		t.record(m, c, s, t.stages[p.end-1].end, t.tail, false)
		m.recordHead(c, s, step, false)
	}
	return p.encode(m, s, step, t.running(m))
}

// fit prepares a part where it is not what the step needs.
func (m *Model) fit(s *Session, step program.StepUniform, i int) error {
	if m.token.parts[i].fits(s, step, m.token.running(m)) {
		return nil
	}
	return m.preparePart(s, step, i)
}

// unfit is the first part from one on that is not what steps like the given one need; those of the next token come last.
// It is -1 where all are.
func (m *Model) unfit(s *Session, step program.StepUniform, from int) int {
	t := m.token
	for i := range t.parts {
		if j := (from + i) % len(t.parts); !t.parts[j].fits(s, step, t.running(m)) {
			return j
		}
	}
	return -1
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
