package engine

import (
	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/stream"
	"github.com/sluicehost/sluice/sdk/program"
)

const (
	// longestChunk bounds what stretched chooses: from there on computing a prompt's token takes longer than reading its
	// share of the experts on any disk that we have seen.
	longestChunk = 2048
	// poolOverChunk is how many times more a pool must hold than a longer chunk takes from it.
	poolOverChunk = 16
)

// stretched is the plan with the chunk that a budget makes worth while, where none is asked for.
//
// A chunk of a few hundred tokens picks nearly every expert of every layer, so where they don't all fit a prompt reads them
// once a chunk: a chunk twice as long halves what a token of the prompt costs. What it takes is memory, for the activations
// of a step and the rings of windowed caches. So the chunk is doubled while that leaves the pool all but a small part of
// its slots.
func (m *Planned) stretched(device gpu.Limits, o Options) *Planned {
	if o.Chunk > 0 || o.Budget == 0 {
		return m
	}
	before, banks, err := m.predict(device, o)
	if err != nil || slotsOf(banks) == len(m.Records)*int(m.Plan.Model.Experts) {
		return m // an error comes again, to who asks
	}
	for n := 2 * m.Chunk; n <= min(longestChunk, m.Context); n *= 2 {
		x := *m
		if x.Chunk = chunkLength(n, m.Context, m.Program); x.Chunk < n || x.holds(device) != nil {
			break
		}
		b, _, err := x.predict(device, o)
		if err != nil || b.Pool < before.Pool && before.Pool-b.Pool > before.Pool/poolOverChunk {
			break
		}
		m = &x
	}
	return m
}

// holds fails where a device can't run the program with the plan's chunk and context.
func (m *Planned) holds(device gpu.Limits) error {
	bounds := DeviceBounds(device)
	if err := m.checkLoops(bounds.Limits); err != nil {
		return err
	}
	bounds.Chunk, bounds.Outs, bounds.Context = uint64(m.Chunk), uint64(m.outs()), uint64(m.Context)
	return program.Validate(m.Plan, m.Weights, m.Records, m.Program, bounds)
}

// slotsOf is the slots of all banks.
func slotsOf(banks []stream.Bank) (n int) {
	for _, b := range banks {
		n += b.Slots
	}
	return n
}
