package layer

import "github.com/sluicehost/sluice/sdk/program"

// section is a stretch of operations that the host may stop before and after.
type section struct {
	kind  program.Kind
	layer int // -1 in a trunk whose routing has not come yet
	of    int // layer that a guess is at
	ops   []*op

	normed computed // the last norm that others may join
}

// open starts a section.
func (e *Encoder) open(kind program.Kind, layer int) {
	e.section = &section{kind: kind, layer: layer}
	e.flow = append(e.flow, e.section)
}

// openHead starts the head; a trunk without routing (layers after the last MoE layer) joins
// the combine before it.
func (e *Encoder) openHead() {
	n := len(e.flow)
	if n < 2 { // at most a trunk without routing
		if len(e.errs) == 0 { // else that is why
			e.fail("no layer has routed experts: this host runs mixture-of-experts models only")
		}
		return
	}
	if e.flow[n-1].kind == program.Kind_TRUNK {
		e.flow[n-2].ops = append(e.flow[n-2].ops, e.flow[n-1].ops...)
		e.flow = e.flow[:n-1]
	}
	e.open(program.Kind_HEAD, 0)
}
