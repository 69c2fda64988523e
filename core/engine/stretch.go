package engine

import (
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/lookahead"
	"github.com/sluicehost/sluice/sdk/program"
)

// prepared is commands of one-token steps of a session, encoded before they are needed: that costs the CPU some 2 to 5 µs a
// dispatch, and is done while the GPU computes or a disk reads.
type prepared struct {
	list     gpu.Commands
	commands gpu.Prepared
	ready    bool // to be submitted
	session  *Session
	outs     uint32
	depth    int // guesses recorded
}

// stretch is a run of stages that is submitted at once. The first may begin at the experts of the stage before.
type stretch struct {
	prepared
	op       int           // it begins with
	from, to int           // stages that it resolves
	back     *gpu.Readback // stop and the log
}

// flight is the stretches that are submitted and not heard of: while the host reads what one did the GPU works on the other.
type flight struct {
	stretches [2]stretch
	first     int // the older one
	n         int
	op, to    int             // behind all that is submitted: the next op, and the next stage to resolve
	lists     []*gpu.Prepared // of the submit at hand
}

// land forgets what is in flight: the next thing to submit begins at an op, and resolves the stages from one on.
func (f *flight) land(op, to int) { f.n, f.op, f.to = 0, op, to }

// spare is the stretch to submit next.
func (f *flight) spare() *stretch { return &f.stretches[(f.first+f.n)%len(f.stretches)] }

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
	for _, p := range []*prepared{&t.whole, &t.flight.stretches[0].prepared, &t.flight.stretches[1].prepared} {
		if s == nil || p.session == s {
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

// fit makes the spare stretch one that begins at an op and resolves stages from one on, as many as pay, if it isn't.
func (m *Model) fit(s *Session, step program.StepUniform, op, from int) error {
	t, x := m.token, m.token.flight.spare()
	if x.fits(s, step, t.running(m)) && x.op == op && x.from == from {
		return nil
	}
	defer m.encoding(time.Now())
	x.drop()
	x.op, x.from, x.to = op, from, min(from+lookahead.Lead(t.missing, len(t.stages)), len(t.stages))
	c := &x.list
	c.Reset()
	for i := from; i < x.to; i++ {
		st := t.stages[i]
		t.record(m, c, s, op, st.experts, false)
		c.Dispatch(t.resolve, t.groups[i], 1, 1, 1)
		t.record(m, c, s, st.experts, st.end, false)
		op = st.end
	}
	if x.to == len(t.stages) {
		t.record(m, c, s, op, t.tail, false)
		m.recordHead(c, s, step, false)
	}
	x.back.Copy(c, 0, t.buffer, 0, 4)
	x.back.Copy(c, 4, t.buffer, 4*uint64(t.log), t.logBytes(m))
	return x.encode(m, s, step, t.running(m))
}

// send submits the spare stretch.
func (m *Model) send() error {
	f, x := &m.token.flight, m.token.flight.spare()
	f.lists = append(f.lists[:0], &x.commands)
	if err := m.submitPrepared(f.lists); err != nil {
		x.drop()
		return err
	}
	x.ready = false
	f.n, f.op, f.to = f.n+1, m.token.stages[max(x.to, 1)-1].end, x.to
	return nil
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
