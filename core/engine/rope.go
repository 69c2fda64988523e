package engine

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluicehost/sluice/sdk/program"
)

// ropeTable is a table's frequencies: pair i turns by pos · freq[i].
type ropeTable struct {
	freq      []float64
	magnitude float64
	row       []byte // room for a chunk's rows
}

// readRopes computes the frequencies of every table of the plan.
func (m *Model) readRopes() ([]ropeTable, error) {
	var out []ropeTable
	for i, r := range m.Plan.Ropes {
		freq := Frequencies(r)
		div, err := m.source.RopeDivisor(i)
		if err != nil {
			return nil, err
		}
		if div != nil && len(div) < len(freq) {
			return nil, fmt.Errorf("engine: tensor %s: have %d values, want %d", r.Divisor, len(div), len(freq))
		}
		for i := range div[:min(len(div), len(freq))] {
			freq[i] /= div[i]
		}
		t := ropeTable{freq: freq, magnitude: float64(r.Magnitude), row: make([]byte, 8*len(freq)*m.Chunk)}
		if t.magnitude == 0 {
			t.magnitude = 1
		}
		out = append(out, t)
	}
	return out, nil
}

// Frequencies are a rope's, before its divisor: base^(-2i/base_dims), or as given.
func Frequencies(r *program.Rope) []float64 {
	if len(r.Freqs) > 0 {
		return append([]float64(nil), r.Freqs...)
	}
	freq := make([]float64, r.Pairs)
	for i := range freq {
		freq[i] = math.Pow(r.Base, -2*float64(i)/float64(r.BaseDims))
	}
	return freq
}

// writeRopes computes cos and sin for the positions pos0..pos0+n-1: angles in float64, values in f32.
func (m *Model) writeRopes(pos0, n int) error {
	for i := range m.ropes {
		t := &m.ropes[i]
		half := len(t.freq)
		for r := range n {
			row := t.row[8*half*r:]
			for p, f := range t.freq {
				sin, cos := math.Sincos(float64(pos0+r) * f)
				binary.LittleEndian.PutUint32(row[4*p:], math.Float32bits(float32(cos*t.magnitude)))
				binary.LittleEndian.PutUint32(row[4*(half+p):], math.Float32bits(float32(sin*t.magnitude)))
			}
		}
		if err := m.device.Write(m.tables.ropes[i], 0, t.row[:8*half*n]); err != nil {
			return err
		}
	}
	return nil
}
