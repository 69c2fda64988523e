package program

import (
	"fmt"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// TensorSource is a Source over the tensors of a GGUF file, packed as the
// placed weights say. It keeps nothing; the Interpreter does.
type TensorSource struct {
	Header  *Header
	Plan    *Plan
	Placed  []*Placed
	Records []*PlacedRecord
	Data    func(name string) ([]byte, error) // a tensor's bytes as the file holds them
}

// Band packs the rows of a MATRIX band.
func (s *TensorSource) Band(weight, band int) ([]byte, error) {
	b, cols := s.Placed[weight].Bands[band], s.Placed[weight].Cols
	dst := make([]byte, b.Bytes)
	return dst, s.pack(dst, s.Plan.Weights[weight], b, cols, -1)
}

// Vector is the values of a VECTOR band.
func (s *TensorSource) Vector(weight, band int) ([]float64, error) {
	var all []float64
	for _, name := range s.Plan.Weights[weight].Tensors {
		v, err := s.values(name)
		if err != nil {
			return nil, err
		}
		all = append(all, v...)
	}
	b, cols := s.Placed[weight].Bands[band], s.Placed[weight].Cols
	if (b.Row0+b.Rows)*cols > uint64(len(all)) {
		return nil, fmt.Errorf("have %d values, want rows %d to %d of %d", len(all), b.Row0, b.Row0+b.Rows, cols)
	}
	return all[b.Row0*cols : (b.Row0+b.Rows)*cols], nil
}

// Expert packs the parts of an expert's record.
func (s *TensorSource) Expert(record, expert int) ([]byte, error) {
	r := s.Records[record]
	dst := make([]byte, r.Stride)
	for i, part := range r.Parts {
		for _, b := range part.Bands {
			if err := s.pack(dst, s.Plan.Records[record].Parts[i], b, part.Cols, expert); err != nil {
				return nil, err
			}
		}
	}
	return dst, nil
}

// Embedding dequantizes a row of the embedding table.
func (s *TensorSource) Embedding(token uint32) ([]float64, error) {
	t, data, err := s.tensor(s.Plan.Embed.Tensor)
	if err != nil {
		return nil, err
	}
	typ := ggml.Type(t.Type)
	row, err := typ.RowBytes(t.Dims[0])
	if err != nil {
		return nil, err
	}
	if uint64(token)*row+row > uint64(len(data)) {
		return nil, fmt.Errorf("tensor %s has no row %d", t.Name, token)
	}
	values := make([]float64, t.Dims[0])
	return values, ggml.Dequantize(typ, values, data[uint64(token)*row:][:row])
}

// Divisor is the values of a rope's divisor tensor.
func (s *TensorSource) Divisor(rope int) ([]float64, error) {
	return s.values(s.Plan.Ropes[rope].Divisor)
}

// values dequantizes a whole tensor.
func (s *TensorSource) values(name string) ([]float64, error) {
	t, data, err := s.tensor(name)
	if err != nil {
		return nil, err
	}
	cols, rows, ok := shapeOf(t.Dims)
	if !ok {
		return nil, fmt.Errorf("tensor %s: have shape %v", name, t.Dims)
	}
	values := make([]float64, cols*rows)
	return values, ggml.Dequantize(ggml.Type(t.Type), values, data)
}

func (s *TensorSource) tensor(name string) (*Tensor, []byte, error) {
	for _, t := range s.Header.Tensors {
		if t.Name == name {
			data, err := s.Data(name)
			return t, data, err
		}
	}
	return nil, nil, fmt.Errorf("tensor %s is not in the file", name)
}

// pack writes the GPU form of a band of w to its planes in dst. With expert ≥ 0
// the tensors are 3-D and the band is of that expert's slices.
func (s *TensorSource) pack(dst []byte, w *Weight, b *Band, cols uint64, expert int) error {
	raw, err := s.rows(w, b.Row0, b.Rows, expert)
	if err != nil {
		return err
	}
	form, ok := ggml.Form(ggml.Type(b.Type))
	if !ok {
		return fmt.Errorf("type %v has no GPU form", ggml.Type(b.Type))
	}
	spans, err := form.Spans(b.Rows, cols, 0, b.Rows)
	if err != nil {
		return err
	}
	_, total, err := form.Planes(b.Rows, cols)
	if err != nil {
		return err
	}
	packed := make([]byte, total)
	if err := form.Pack(packed, raw, b.Rows, cols); err != nil {
		return err
	}
	for i, span := range spans {
		at := uint64(b.Planes[i]) * ggml.PlaneAlign
		copy(dst[at:at+span.Len], packed[span.Offset:])
	}
	return nil
}

// rows is the bytes of rows [row0, row0+n) of a stack, all of one type.
func (s *TensorSource) rows(w *Weight, row0, n uint64, expert int) ([]byte, error) {
	var raw []byte
	var first uint64 // row of the stack at which the tensor starts
	for _, name := range w.Tensors {
		t, data, err := s.tensor(name)
		if err != nil {
			return nil, err
		}
		dims := t.Dims
		if expert >= 0 {
			dims = dims[:len(dims)-1]
		}
		cols, rows, ok := shapeOf(dims)
		size, err := ggml.Type(t.Type).RowBytes(cols)
		if err != nil || !ok {
			return nil, fmt.Errorf("tensor %s: have shape %v of %v", name, t.Dims, ggml.Type(t.Type))
		}
		from, to := max(row0, first), min(row0+n, first+rows)
		if from < to {
			start := (uint64(max(expert, 0))*rows + from - first) * size
			end := start + (to-from)*size
			if end > uint64(len(data)) {
				return nil, fmt.Errorf("tensor %s: have %d bytes, want at least %d", name, len(data), end)
			}
			raw = append(raw, data[start:end]...)
		}
		first += rows
	}
	return raw, nil
}
