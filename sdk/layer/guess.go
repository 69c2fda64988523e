package layer

import (
	"slices"

	"github.com/sluicehost/sluice/sdk/program"
)

// maxGuess is how many MoE layers ahead guesses look. The host runs as many of them as pay.
const maxGuess = 8

// routed is an MoE layer whose routing is written, and the residual stream that its router reads the norm of.
type routed struct {
	trunk *section
	state *Value
}

// guesses writes, behind the trunks of the MoE layers before this one, guesses at its picks: its own norm and router, on the
// state that their routers see. x is what the router reads; one that reads no norm is not guessed at, nor is any layer past it
// from before it, for guesses are of the next layers without a gap.
func (l *Layer) guesses(x *Value, r Router) {
	if x.norm == nil || len(l.routings) > 0 && l.routings[0].state.width != x.width {
		l.routings = nil
	}
	if x.norm == nil {
		return
	}
	last := len(l.routings) - 1
	for i := last; i >= 0 && last-i < maxGuess; i-- {
		l.guess(l.routings[i], x, r)
	}
	l.routings = append(l.routings, routed{trunk: l.section, state: x.norm.of})
}

// guess writes one guess: a section behind those that follow the trunk already.
func (l *Layer) guess(from routed, x *Value, r Router) {
	open := l.section
	l.section = &section{kind: program.Kind_GUESS, layer: from.trunk.layer, of: l.number}
	n := *x.norm
	n.of, n.plain = from.state, nil
	logits := l.Linear(&Value{width: x.width, name: x.name, first: -1, norm: &n}, int(l.source.model().GetExperts()), r.Weight)
	l.emit(l.topK(r, logits, program.Table_GUESSES, l.scratch("pw", int(l.source.model().GetTopK()))))
	at := slices.Index(l.flow, from.trunk) + 1
	for at < len(l.flow) && l.flow[at].kind == program.Kind_GUESS {
		at++
	}
	l.flow = slices.Insert(l.flow, at, l.section)
	l.section = open
}
