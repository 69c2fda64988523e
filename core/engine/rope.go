package engine

import (
	"encoding/binary"
	"math"

	"github.com/sluicehost/sluice/sdk/program"
)

// ropeTable is one of the plan's ropes, ready to compute rows.
type ropeTable struct {
	rope  *program.Rope
	freqs []float64
	row   []float64 // room for one position
	bytes []byte    // room for a chunk's rows, as f32
}

// readRopes computes the frequencies of every rope of the plan.
func (m *Model) readRopes() ([]ropeTable, error) {
	var out []ropeTable
	for i, r := range m.Plan.Ropes {
		div, err := m.source.RopeDivisor(i)
		if err != nil {
			return nil, err
		}
		freqs, err := program.RopeFreqs(r, div)
		if err != nil {
			return nil, err
		}
		out = append(out, ropeTable{rope: r, freqs: freqs, row: make([]float64, 2*r.Pairs), bytes: make([]byte, program.RopeBytes(r, uint64(m.Chunk)))})
	}
	return out, nil
}

// writeRopes writes cos and sin for the positions pos0..pos0+n-1.
func (m *Model) writeRopes(pos0, n int) error {
	for i, t := range m.ropes {
		at := 0
		for r := range n {
			program.RopeRow(t.row, t.rope, t.freqs, uint32(pos0+r))
			for _, v := range t.row {
				binary.LittleEndian.PutUint32(t.bytes[at:], math.Float32bits(float32(v)))
				at += 4
			}
		}
		if err := m.device.Write(m.tables.ropes[i], 0, t.bytes[:at]); err != nil {
			return err
		}
	}
	return nil
}
