package layer

import (
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// source is where an Encoder finds tensors and weights: a plan in the making, or one
// whose weights the host has placed.
type source interface {
	tensor(name string) *program.Tensor
	model() *program.Model
	// weight gives the index and place of a weight, declaring it while planning.
	weight(w *program.Weight) (int, *program.Placed, error)
	// record gives the place of a layer's expert record.
	record(r *program.Record) (*program.PlacedRecord, error)
	rope(r *program.Rope) (int, error)
	embed(e *program.Embed)
}

type tensors map[string]*program.Tensor

func newTensors(h *program.Header) tensors {
	t := tensors{}
	for _, x := range h.GetTensors() {
		t[x.GetName()] = x
	}
	return t
}

func (t tensors) tensor(name string) *program.Tensor { return t[name] }

// planning collects what a program asks for.
type planning struct {
	tensors
	header  *program.Header
	plan    *program.Plan
	used    map[string]bool
	weights map[string]int
	ropes   map[string]int
}

func newPlanning(h *program.Header, p *program.Plan) *planning {
	return &planning{tensors: newTensors(h), header: h, plan: p,
		used: map[string]bool{}, weights: map[string]int{}, ropes: map[string]int{}}
}

func (s *planning) model() *program.Model { return s.plan.GetModel() }

func (s *planning) weight(w *program.Weight) (int, *program.Placed, error) {
	i, ok := s.weights[w.Name]
	if !ok {
		i = len(s.plan.Weights)
		s.weights[w.Name] = i
		s.plan.Weights = append(s.plan.Weights, w)
	}
	return i, s.pretend(w), nil
}

// pretend places a weight nowhere: one band per run of equal types, planes at 0.
func (s *planning) pretend(w *program.Weight) *program.Placed {
	p := &program.Placed{Name: w.Name}
	for _, name := range w.Tensors {
		t := s.tensors[name]
		s.used[name] = true
		rows := uint64(1)
		for _, d := range t.Dims[1:] {
			rows *= d
		}
		if n := len(p.Bands); n > 0 && p.Bands[n-1].Type == t.Type {
			p.Bands[n-1].Rows += rows
		} else {
			p.Bands = append(p.Bands, &program.Band{Type: t.Type, Row0: p.Rows, Rows: rows})
		}
		p.Rows += rows
		p.Cols = t.Dims[0]
	}
	return p
}

func (s *planning) record(r *program.Record) (*program.PlacedRecord, error) {
	placed := &program.PlacedRecord{Layer: r.Layer}
	for _, part := range r.Parts {
		placed.Parts = append(placed.Parts, s.pretend(part))
	}
	for _, have := range s.plan.Records {
		if have.Layer == r.Layer {
			return placed, nil
		}
	}
	s.plan.Records = append(s.plan.Records, r)
	s.plan.Model.MoeLayers = append(s.plan.Model.MoeLayers, r.Layer)
	return placed, nil
}

func (s *planning) rope(r *program.Rope) (int, error) {
	i, ok := s.ropes[r.Name]
	if !ok {
		i = len(s.plan.Ropes)
		s.ropes[r.Name] = i
		s.plan.Ropes = append(s.plan.Ropes, r)
	}
	if r.Divisor != "" {
		s.used[r.Divisor] = true
	}
	return i, nil
}

func (s *planning) embed(e *program.Embed) {
	s.plan.Embed = e
	s.used[e.Tensor] = true
}

// finish lists the tensors that nothing asked for.
func (s *planning) finish() {
	for _, t := range s.header.GetTensors() {
		if !s.used[t.GetName()] {
			s.plan.Unused = append(s.plan.Unused, t.GetName())
		}
	}
}

// placed is a plan whose weights lie somewhere.
type placed struct {
	tensors
	plan    *program.Plan
	weights map[string]int
	places  []*program.Placed
	records map[uint32]*program.PlacedRecord
	ropes   map[string]int
}

func newPlaced(req *program.EncodeRequest) (*placed, error) {
	p := req.GetPlan()
	if len(req.GetWeights()) != len(p.GetWeights()) || len(req.GetRecords()) != len(p.GetRecords()) {
		return nil, fmt.Errorf("have %d placed weights and %d placed records, the plan has %d and %d",
			len(req.GetWeights()), len(req.GetRecords()), len(p.GetWeights()), len(p.GetRecords()))
	}
	s := &placed{tensors: newTensors(req.GetHeader()), plan: p, places: req.GetWeights(),
		weights: map[string]int{}, records: map[uint32]*program.PlacedRecord{}, ropes: map[string]int{}}
	for i, w := range p.GetWeights() {
		s.weights[w.GetName()] = i
	}
	for _, r := range req.GetRecords() {
		s.records[r.GetLayer()] = r
	}
	for i, r := range p.GetRopes() {
		s.ropes[r.GetName()] = i
	}
	return s, nil
}

func (s *placed) model() *program.Model { return s.plan.GetModel() }

func (s *placed) weight(w *program.Weight) (int, *program.Placed, error) {
	i, ok := s.weights[w.Name]
	if !ok {
		return 0, nil, fmt.Errorf("weight %s is not in the plan: encode must ask for the same weights each time", w.Name)
	}
	return i, s.places[i], nil
}

func (s *placed) record(r *program.Record) (*program.PlacedRecord, error) {
	p, ok := s.records[r.Layer]
	if !ok || len(p.GetParts()) != len(r.Parts) {
		return nil, fmt.Errorf("blk.%d: its expert record is not as in the plan: encode must ask for the same each time", r.Layer)
	}
	return p, nil
}

func (s *placed) rope(r *program.Rope) (int, error) {
	i, ok := s.ropes[r.Name]
	if !ok {
		return 0, fmt.Errorf("rope %s is not in the plan: encode must ask for the same each time", r.Name)
	}
	return i, nil
}

func (s *placed) embed(*program.Embed) {}

// shapeOf writes a tensor's shape as an error shows it.
func shapeOf(t *program.Tensor) string {
	return strings.ReplaceAll(fmt.Sprint(t.GetDims()), " ", ", ")
}

// typeOf is the tensor's ggml type.
func typeOf(t *program.Tensor) ggml.Type { return ggml.Type(t.GetType()) }
