package engine

import "github.com/sluicehost/sluice/core/gpu"

// Tallied says whether a token that comes next finds the pool's counters summed up.
func Tallied(m *Model) bool { return m.token.tallied == m.stats.Steps }

// Readbacks are those that one-token steps copy to.
func Readbacks(m *Model) []*gpu.Readback {
	return []*gpu.Readback{m.runner.logits, m.token.flight.stretches[0].back, m.token.flight.stretches[1].back}
}

// BreakArrivals has no record get to its slot any more.
func BreakArrivals(m *Model) {
	x := m.experts
	x.delivering.Lock()
	defer x.delivering.Unlock()
	x.arrived.commands.Clear(x.banks[0], 1, 4) // no multiple of 4
}

// BankLimit has a model's banks be no larger than so many bytes, as a device's largest binding does.
func BankLimit(o Options, bytes uint64) Options {
	o.binding = bytes
	return o
}

// Banks is how many banks a model's pool has.
func Banks(m *Model) int { return len(m.experts.banks) }

// NextEncoded says whether the commands of the next token of a step with every expert resident are encoded.
func NextEncoded(m *Model) bool { return m.token.whole.ready }
