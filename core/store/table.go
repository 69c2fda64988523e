package store

import (
	"fmt"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

func (s *GGUF) addEmbed(p *program.Plan) error {
	name := p.GetEmbed().GetTensor()
	t, ok := s.file.Tensor(name)
	if !ok {
		return fmt.Errorf("embedding tensor %.80q is not in the file", name)
	}
	if _, ok := ggml.Form(t.Type); !ok || len(t.Dims) != 2 {
		return fmt.Errorf("embedding tensor %s: have %v of shape %v, want 2 dims of one of %s", name, t.Type, t.Dims, ggml.FormNames())
	}
	s.embed = table{t, t.Size / int64(t.Dims[1])}
	return nil
}

// EmbedRows implements Source.
func (s *GGUF) EmbedRows(ids []int32, dst []float32) error {
	e := &s.embed
	cols := int(e.Dims[0])
	if len(dst) != len(ids)*cols {
		return fmt.Errorf("store: %s: have room for %d values, want %d rows of %d", e.Name, len(dst), len(ids), cols)
	}
	scratch := s.small.get()
	defer s.small.put(scratch)
	row := scratch
	if e.row > int64(len(scratch)) {
		row = make([]byte, e.row)
	}
	row = row[:e.row]
	for i, id := range ids {
		if id < 0 || uint64(id) >= e.Dims[1] {
			return fmt.Errorf("store: tensor %s: have token id %d, want 0 to %d", e.Name, id, e.Dims[1]-1)
		}
		if err := s.readAt(row, e.Offset+int64(id)*e.row, e.Name); err != nil {
			return fmt.Errorf("store: token %d: %w", id, err)
		}
		if err := ggml.DequantizeF32(e.Type, dst[i*cols:(i+1)*cols], row); err != nil {
			return fmt.Errorf("store: tensor %s: %w", e.Name, err)
		}
	}
	return nil
}

func (s *GGUF) addRopes(p *program.Plan) error {
	for _, r := range p.GetRopes() {
		name := r.GetDivisor()
		if name == "" {
			s.ropes = append(s.ropes, rope{})
			continue
		}
		t, ok := s.file.Tensor(name)
		if !ok {
			return fmt.Errorf("rope %.80q: divisor tensor %.80q is not in the file", r.GetName(), name)
		}
		if t.Type != ggml.F32 || uint64(t.Size) < 4*uint64(r.GetPairs()) {
			return fmt.Errorf("rope %.80q: divisor tensor %s: have %v of shape %v, want F32 of at least %d values",
				r.GetName(), name, t.Type, t.Dims, r.GetPairs())
		}
		s.ropes = append(s.ropes, rope{t, r.GetPairs()})
	}
	return nil
}

// RopeDivisor implements Source.
func (s *GGUF) RopeDivisor(i int) ([]float64, error) {
	if i < 0 || i >= len(s.ropes) {
		return nil, fmt.Errorf("store: %s: have rope %d, want one of the plan's %d", s.name(), i, len(s.ropes))
	}
	r := &s.ropes[i]
	if r.pairs == 0 {
		return nil, nil
	}
	raw := make([]byte, 4*int(r.pairs))
	if err := s.readAt(raw, r.Offset, r.Name); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	out := make([]float64, r.pairs)
	if err := ggml.Dequantize(r.Type, out, raw); err != nil {
		return nil, fmt.Errorf("store: tensor %s: %w", r.Name, err)
	}
	return out, nil
}
