package program

import (
	"fmt"
	"math"
)

// Source is where an Interpreter reads a model's weights. TensorSource is one
// over the tensors of a file.
type Source interface {
	// Band is the GPU form of a band of plan.weights[weight], a MATRIX.
	Band(weight, band int) ([]byte, error)
	// Vector is the values of a band of plan.weights[weight], a VECTOR.
	Vector(weight, band int) ([]float64, error)
	// Expert is the record of an expert, as long as the stride, for plan.records[record].
	Expert(record, expert int) ([]byte, error)
	// Embedding is the row of a token in the embedding table, before plan.embed.scale.
	Embedding(token uint32) ([]float64, error)
	// Divisor is the values of the divisor tensor of plan.ropes[rope].
	Divisor(rope int) ([]float64, error)
}

// Options are what the host decides, for an Interpreter.
type Options struct {
	Chunk   uint32 // most tokens of a step
	Outs    uint32 // most output rows of a step
	Context uint32 // most positions of a session
	Slots   int    // experts of a layer that are resident at once; 0 means all
	Trace   func(*Trace)
}

// Trace is a dispatch that has just run, for finding the first that is wrong.
type Trace struct {
	Section  *Section
	Wave     int // of an EXPERTS section
	Dispatch *Dispatch
	Kernel   *Kernel
	Step     StepUniform
	Grid     [3]uint32
	Outputs  []Output // what was bound READ_WRITE, in the order of the slots
}

// Output is what a dispatch may have written: the live memory, to be copied by
// whoever keeps it.
type Output struct {
	Name   string // of the buffer, or the table's constant
	Memory *Memory
}

// Interpreter runs a program in float64 as the host would run it on a GPU,
// calling each kernel's Go reference: slow, plain, and the judge of both the
// kernels and the host. It plays the host's part too: embeddings, rope rows,
// residency and waves of experts. Memory that a step has not written holds
// NaN, so that a program which reads it shows.
//
// An Interpreter and its Sessions are used by one goroutine.
type Interpreter struct {
	plan    *Plan
	records []*PlacedRecord
	prog    *Program
	src     Source
	o       Options
	refs    []Ref
	fields  []map[string]Field // of each kernel's constants
	ropes   []*Memory
	freqs   [][]float64
	scratch []*Memory // by buffer; nil for those of sessions
	weights map[[2]uint32]*Memory
	tables  [Table_LOGITS + 1]*Memory
	banks   []*bank // by record
}

// NewInterpreter prepares to run a program over the weights of src. It
// validates the program, without limits of a device. refs finds the reference
// of a kernel by Kernel.ref, or by its name where that is empty; a kernel
// without one is an error.
func NewInterpreter(plan *Plan, placed []*Placed, records []*PlacedRecord, prog *Program, src Source,
	refs func(name string) Ref, o Options) (*Interpreter, error) {
	err := Validate(plan, placed, records, prog, Bounds{Chunk: uint64(o.Chunk), Outs: uint64(o.Outs), Context: uint64(o.Context)})
	if err != nil {
		return nil, err
	}
	in := &Interpreter{plan: plan, records: records, prog: prog, src: src, o: o, weights: map[[2]uint32]*Memory{}}
	if in.o.Slots <= 0 || in.o.Slots > int(plan.Model.Experts) {
		in.o.Slots = int(plan.Model.Experts)
	}
	for _, k := range prog.Kernels {
		if err := in.kernel(k, refs); err != nil {
			return nil, err
		}
	}
	for _, b := range prog.Buffers {
		in.scratch = append(in.scratch, nil)
		if b.Class == Class_SCRATCH {
			in.scratch[len(in.scratch)-1] = in.memory(b)
		}
	}
	for range records {
		in.banks = append(in.banks, newBank(in.o.Slots, int(plan.Model.Experts)))
	}
	return in, in.makeTables()
}

// kernel finds a kernel's reference and the fields of its constants.
func (in *Interpreter) kernel(k *Kernel, refs func(string) Ref) error {
	name := k.Ref
	if name == "" {
		name = k.Name
	}
	ref := refs(name)
	if ref == nil {
		return fmt.Errorf("program: kernel %s: there is no reference %s", k.Name, name)
	}
	decl, err := ParseWGSL(k.Wgsl)
	if err != nil {
		return fmt.Errorf("program: kernel %s: %w", k.Name, err)
	}
	fields := map[string]Field{}
	for _, f := range decl.Constants {
		fields[f.Name] = f
	}
	in.refs, in.fields = append(in.refs, ref), append(in.fields, fields)
	return nil
}

// memory is the elements of a buffer, of which nothing is written yet.
func (in *Interpreter) memory(b *Buffer) *Memory {
	n, err := BufferElems(b, uint64(in.o.Chunk), uint64(in.o.Outs), uint64(in.o.Context))
	if err != nil {
		panic("BUG: " + err.Error()) // Validate has computed it
	}
	m := newMemory(b.Elem, n)
	if b.Class != Class_STATE {
		m.poison()
	}
	return m
}

func newMemory(e Elem, n uint64) *Memory { return &Memory{Elem: e, Values: make([]float64, n)} }

// poison makes all values NaN.
func (m *Memory) poison() {
	for i := range m.Values {
		m.Values[i] = math.NaN()
	}
}

// makeTables makes the host's tables and works out the ropes.
func (in *Interpreter) makeTables() error {
	for t := Table_PICKS; t <= Table_LOGITS; t++ {
		elem := Elem_U32
		if t == Table_LOGITS {
			elem = Elem_F32
		}
		in.tables[t] = newMemory(elem, TableBytes(t, in.plan.Model, in.prog.TileRows, uint64(in.o.Chunk), uint64(in.o.Outs))/4)
	}
	for i, r := range in.plan.Ropes {
		var divisor []float64
		if r.Divisor != "" {
			var err error
			if divisor, err = in.src.Divisor(i); err != nil {
				return fmt.Errorf("program: rope %s: %w", r.Name, err)
			}
		}
		freqs, err := RopeFreqs(r, divisor)
		if err != nil {
			return err
		}
		in.freqs = append(in.freqs, freqs)
		in.ropes = append(in.ropes, newMemory(Elem_F32, RopeBytes(r, uint64(in.o.Chunk))/4))
	}
	return nil
}

// weight is a weight's band, read when first bound.
func (in *Interpreter) weight(at *WeightBand) (*Memory, error) {
	key := [2]uint32{at.GetWeight(), at.GetBand()}
	if m := in.weights[key]; m != nil {
		return m, nil
	}
	w, m := in.plan.Weights[at.GetWeight()], &Memory{}
	var err error
	if w.Use == Use_VECTOR {
		m.Values, err = in.src.Vector(int(key[0]), int(key[1]))
	} else {
		m.Elem = Elem_U32
		m.Form, err = in.src.Band(int(key[0]), int(key[1]))
	}
	if err != nil {
		return nil, fmt.Errorf("program: weight %s: %w", w.Name, err)
	}
	in.weights[key] = m
	return m, nil
}

// RopeFreqs is the frequency of each pair of r in radians a position:
// base^(-2i/base_dims), or as the plan lists them, over the divisor's value
// where there is one.
func RopeFreqs(r *Rope, divisor []float64) ([]float64, error) {
	if r.GetDivisor() != "" && len(divisor) < int(r.GetPairs()) {
		return nil, fmt.Errorf("program: rope %s: divisor %s: have %d values, want %d", r.GetName(), r.GetDivisor(), len(divisor), r.GetPairs())
	}
	freqs := make([]float64, r.GetPairs())
	for i := range freqs {
		if len(r.GetFreqs()) > 0 {
			freqs[i] = r.Freqs[i]
		} else {
			freqs[i] = math.Pow(r.GetBase(), -2*float64(i)/float64(r.GetBaseDims()))
		}
		if r.GetDivisor() != "" {
			freqs[i] /= divisor[i]
		}
	}
	return freqs, nil
}

// RopeRow writes the table's row of one position: cos of each pair, then sin
// of each, times the magnitude, rounded to f32 as the host writes them.
func RopeRow(row []float64, r *Rope, freqs []float64, pos uint32) {
	m := float64(r.GetMagnitude())
	if m == 0 {
		m = 1
	}
	for i, f := range freqs {
		sin, cos := math.Sincos(float64(pos) * f)
		row[i], row[len(freqs)+i] = roundF32(cos*m), roundF32(sin*m)
	}
}

func roundF32(v float64) float64 { return float64(float32(v)) }
