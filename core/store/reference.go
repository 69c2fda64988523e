package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluicehost/sluice/sdk/program"
)

// Reference is a Source as the float64 interpreter of sdk/program reads weights:
// whole bands at a time, as the host would upload them, so that a reference run
// covers the reading and the packing too.
type Reference struct {
	Source  Source
	Plan    *program.Plan
	Weights []*program.Placed
	Records []*program.PlacedRecord
}

var _ program.Source = (*Reference)(nil)

// Band is the GPU form of a band of a MATRIX.
func (r *Reference) Band(weight, band int) ([]byte, error) {
	if weight < 0 || weight >= len(r.Weights) || band < 0 || band >= len(r.Weights[weight].GetBands()) {
		return nil, fmt.Errorf("store: have weight %d band %d, want one that was placed", weight, band)
	}
	dst := make([]byte, r.Weights[weight].GetBands()[band].GetBytes())
	err := r.Source.ReadBand(context.Background(), weight, band, func(off uint64, data []byte) error {
		copy(dst[off:], data)
		return nil
	})
	return dst, err
}

// Vector is the values of a VECTOR.
func (r *Reference) Vector(weight, band int) ([]float64, error) {
	raw, err := r.Band(weight, band)
	if err != nil {
		return nil, err
	}
	values := make([]float64, r.Weights[weight].GetCols())
	for i := range values {
		values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	return values, nil
}

// Expert is the record of an expert, for a record of the plan.
func (r *Reference) Expert(record, expert int) ([]byte, error) {
	if record < 0 || record >= len(r.Records) {
		return nil, fmt.Errorf("store: have record %d, want one of %d", record, len(r.Records))
	}
	p := r.Records[record]
	dst := make([]byte, p.GetStride())
	return dst, r.Source.ReadRecord(context.Background(), int(p.GetLayer()), expert, dst)
}

// Embedding is the row of a token in the embedding table.
func (r *Reference) Embedding(token uint32) ([]float64, error) {
	if token > math.MaxInt32 {
		return nil, fmt.Errorf("store: have token id %d, want at most %d", token, math.MaxInt32)
	}
	row := make([]float32, r.Plan.GetModel().GetHidden())
	if err := r.Source.EmbedRows([]int32{int32(token)}, row); err != nil {
		return nil, err
	}
	values := make([]float64, len(row))
	for i, v := range row {
		values[i] = float64(v)
	}
	return values, nil
}

// Divisor is the values of a rope's divisor tensor.
func (r *Reference) Divisor(rope int) ([]float64, error) { return r.Source.RopeDivisor(rope) }
