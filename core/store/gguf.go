package store

import (
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/sdk/program"
)

// GGUF is the Source that reads a GGUF file as it is. Nothing is to be waited
// for and no second copy takes disk; each record costs as many reads as it has
// tensors, and its repacking.
type GGUF struct {
	file    *gguf.File
	weights []weight
	records map[int]*record
	embed   table
	ropes   []rope
	reader
	experts reader   // of records
	scratch *buffers // for records
	small   *buffers // for rows
	raw     *buffers // for bands
	packed  *buffers
}

var _ Source = (*GGUF)(nil)

// weight is a resident weight: bands of a MATRIX, or the one band of a VECTOR.
type weight struct {
	name   string
	bands  []matrix
	vector []gguf.Tensor // instead of bands
	bytes  uint64        // of the vector's band
}

// record is what one expert of a layer is made of.
type record struct {
	experts int
	stride  uint64
	bands   []matrix
	end     uint64 // of the last band
}

// table is a tensor read by rows.
type table struct {
	gguf.Tensor
	row int64 // bytes
}

// rope is a divisor tensor, of which the first values are read, one a pair; none
// where pairs is 0.
type rope struct {
	gguf.Tensor
	pairs uint32
}

// NewGGUF makes a source of an open file, whose Close it takes over: weights and
// records are a plan of that file as sdk/place has laid it out. It reads
// nothing yet. It fails, naming the weight, the layer or the tensor, where the
// layout is not that of the file.
func NewGGUF(f *gguf.File, p *program.Plan, weights []*program.Placed, records []*program.PlacedRecord) (*GGUF, error) {
	s := &GGUF{
		file: f, records: map[int]*record{},
		reader: reader{data: f}, experts: reader{data: f}, scratch: newBuffers(recordPiece),
		small: newBuffers(recordPiece), raw: newBuffers(bandPiece), packed: newBuffers(bandPiece + bandPiece/4),
	}
	for _, step := range []func() error{
		func() error { return s.addWeights(p, weights) },
		func() error { return s.addRecords(p, records) },
		func() error { return s.addEmbed(p) },
		func() error { return s.addRopes(p) },
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("store: %s: %w", f.Parts[0].Name, err)
		}
	}
	return s, nil
}

// Prepare makes the source read records as r says; else they share the file's own handle
// and the page cache. No read may be under way. Where the file system refuses direct reads it
// fails with ErrNoDirect, and leaves the source as it was.
func (s *GGUF) Prepare(r Reading) error {
	f, err := openParts(r, s.file)
	if err != nil {
		return err
	}
	old := s.experts.files
	s.experts.files, s.scratch = f, newBuffers(recordPiece)
	if r.Direct {
		s.scratch = newBuffers(directPiece + slack)
	}
	return old.close()
}

// openParts opens the files of a model.
func openParts(r Reading, file *gguf.File) (*files, error) {
	f := &files{}
	for i := range file.Parts {
		p := &file.Parts[i]
		if err := f.open(r, p.Name, p.Size, p.Reopen); err != nil {
			return nil, errors.Join(err, f.close())
		}
	}
	return f, nil
}

// PageCache is what the system keeps of the files of records. Prepare comes before it.
func (s *GGUF) PageCache() PageCache { return PageCache{s.experts.files} }

// Close closes the file.
func (s *GGUF) Close() error { return errors.Join(s.experts.files.close(), s.file.Close()) }

// BytesRead implements Source.
func (s *GGUF) BytesRead() int64 { return s.read.Load() + s.experts.read.Load() }

func (s *GGUF) addWeights(p *program.Plan, placed []*program.Placed) error {
	if len(placed) != len(p.GetWeights()) {
		return fmt.Errorf("have %d placed weights, want %d as in the plan", len(placed), len(p.GetWeights()))
	}
	for i, w := range p.GetWeights() {
		out := weight{name: w.GetName()}
		var err error
		if w.GetUse() == program.Use_VECTOR {
			out.vector, out.bytes, err = vectorOf(s.file, w, placed[i])
		} else {
			out.bands, err = bandsOf(s.file, w, placed[i], 0, 0)
		}
		if err != nil {
			return fmt.Errorf("weight %.80q: %w", w.GetName(), err)
		}
		s.weights = append(s.weights, out)
	}
	return nil
}

func (s *GGUF) addRecords(p *program.Plan, placed []*program.PlacedRecord) error {
	if len(placed) != len(p.GetRecords()) {
		return fmt.Errorf("have %d placed records, want %d as in the plan", len(placed), len(p.GetRecords()))
	}
	for i, r := range p.GetRecords() {
		rec, err := s.record(r, placed[i], uint64(p.GetModel().GetExperts()))
		if err != nil {
			return fmt.Errorf("record of layer %d: %w", r.GetLayer(), err)
		}
		s.records[int(r.GetLayer())] = rec
	}
	return nil
}

func (s *GGUF) record(r *program.Record, placed *program.PlacedRecord, experts uint64) (*record, error) {
	if experts == 0 || len(r.GetParts()) == 0 || len(placed.GetParts()) != len(r.GetParts()) || placed.GetLayer() != r.GetLayer() {
		return nil, fmt.Errorf("have %d placed parts of layer %d and %d experts, want %d parts of one expert or more",
			len(placed.GetParts()), placed.GetLayer(), experts, len(r.GetParts()))
	}
	rec := &record{experts: int(experts), stride: placed.GetStride()}
	for i, w := range r.GetParts() {
		bands, err := bandsOf(s.file, w, placed.GetParts()[i], experts, rec.end)
		if err != nil {
			return nil, fmt.Errorf("part %.80q: %w", w.GetName(), err)
		}
		for _, b := range bands {
			rec.end += b.bytes
		}
		rec.bands = append(rec.bands, bands...)
	}
	if rec.end > rec.stride {
		return nil, fmt.Errorf("have a stride of %d bytes, want at least %d", rec.stride, rec.end)
	}
	return rec, nil
}
