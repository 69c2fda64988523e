package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// Trace looks into steps: at what each dispatch writes, as soon as it has run. It changes no result, but each value that
// is wanted costs a submit and a readback.
type Trace struct {
	Wants func(v *Traced) bool  // whether to read the value; it has no Data yet
	Take  func(v *Traced) error // an error ends the step
}

// Traced is one value of a step: Rows rows of Width numbers. It belongs to the engine again when Take returns.
type Traced struct {
	Label  string // the dispatch's, as in blk.3.attn_q
	Name   string // the kernel's variable
	Number int    // of the dispatch in its program; 0 for the input. Values come in this order, those of waves of experts several times
	Layer  int    // whose block's result it is; -1 for all other values
	Pos    int    // position of the step's first token
	Tokens int    // of the step
	Rows   int    // one per token, or per output row of the logits; 1 where the program says nothing of rows
	Width  int
	Data   []float32 // token ids and expert ids as numbers
}

// tracePiece is the most that is read back at a time.
const tracePiece = 4 << 20

// tracer is what a model with a Trace holds.
type tracer struct {
	*Trace
	readback *gpu.Readback
	first    []int              // by variant in the program's order, the number of its first dispatch
	sections []*program.Section // likewise, its section
	value    Traced
}

// traceBytes is the size of the tracer's readback.
func (m *Model) traceBytes() (uint64, error) {
	largest := program.TableBytes(program.Table_LOGITS, m.Plan.Model, 0, 0, uint64(m.outs()))
	largest = max(largest, program.TableBytes(program.Table_PICKS, m.Plan.Model, 0, uint64(m.Chunk), 0))
	for _, b := range m.Program.Buffers {
		n, err := program.BufferBytes(b, uint64(m.Chunk), uint64(m.outs()), uint64(m.Context))
		if err != nil {
			return 0, fail("budget", err)
		}
		if b.Class == program.Class_SCRATCH {
			largest = max(largest, n)
		}
	}
	return min(largest, tracePiece), nil
}

func (m *Model) makeTracer(t *Trace) error {
	x := &tracer{Trace: t}
	next := 1
	for _, s := range m.Program.Sections {
		for _, v := range s.Variants {
			x.first, x.sections = append(x.first, next), append(x.sections, s)
			next += len(v.Dispatches)
		}
	}
	n, err := m.traceBytes()
	if err != nil {
		return err
	}
	x.readback, err = m.device.NewReadback("trace", n)
	m.trace = x
	return err
}

// input shows the embedding rows (f32), which no dispatch writes.
func (t *tracer) input(rows []byte, step program.StepUniform, width int) error {
	if t == nil {
		return nil
	}
	v := &t.value
	*v = Traced{Label: "input", Name: "x", Layer: -1, Pos: int(step.Pos0), Tokens: int(step.T), Rows: int(step.T), Width: width, Data: v.Data[:0]}
	if !t.Wants(v) {
		return nil
	}
	t.append(rows[:4*v.Rows*v.Width], false)
	return t.Take(v)
}

// append decodes numbers at the end of the value.
func (t *tracer) append(data []byte, integers bool) {
	for ; len(data) > 0; data = data[4:] {
		w := binary.LittleEndian.Uint32(data)
		n := math.Float32frombits(w)
		if integers {
			n = float32(w)
		}
		t.value.Data = append(t.value.Data, n)
	}
}

// dispatch shows what a dispatch has written, once it is recorded: number i of a variant, which is number flat of all.
func (t *tracer) dispatch(ctx context.Context, m *Model, d *program.Dispatch, flat, i int, step program.StepUniform) error {
	if t == nil {
		return nil
	}
	for slot, s := range m.Program.Kernels[d.Kernel].Slots {
		if s.Access != program.Access_READ_WRITE {
			continue
		}
		v := &t.value
		*v = Traced{Label: d.Label, Name: s.Name, Number: t.first[flat] + i, Layer: -1, Pos: int(step.Pos0), Tokens: int(step.T), Data: v.Data[:0]}
		if r := d.Result; r != nil && int(r.Slot) == slot {
			v.Layer = int(r.Layer)
		}
		from, err := t.place(m, t.sections[flat], d, slot, step)
		if err != nil {
			return err
		}
		if from.Buffer == nil || !t.Wants(v) {
			continue
		}
		if err := t.read(ctx, m, from, integers(m.Program, d.Bindings[slot])); err != nil {
			return fmt.Errorf("engine: trace of %s: %w", d.Label, err)
		}
		if err := t.Take(v); err != nil {
			return err
		}
	}
	return nil
}

// place finds where the value lies and sets its shape in this step; there is no buffer where it is none of the step's:
// what sessions keep is not shown.
func (t *tracer) place(m *Model, sec *program.Section, d *program.Dispatch, slot int, step program.StepUniform) (gpu.Range, error) {
	v := &t.value
	switch at := d.Bindings[slot].At.(type) {
	case *program.Binding_Table:
		switch at.Table {
		case program.Table_PICKS:
			v.Rows, v.Width = int(step.T), int(m.Plan.Model.TopK)
		case program.Table_LOGITS:
			v.Rows, v.Width = int(step.O), int(m.Plan.Model.Vocab)
		default:
			return gpu.Range{}, nil
		}
		return m.tableRange(sec, d, at.Table)
	case *program.Binding_Buffer:
		b, from := m.Program.Buffers[at.Buffer], m.scratch[at.Buffer]
		if from == nil || b.Elem == program.Elem_F16 {
			return gpu.Range{}, nil
		}
		n, err := program.BufferElems(b, uint64(step.T), uint64(step.O), uint64(step.S))
		if err != nil {
			return gpu.Range{}, fail("trace of "+d.Label, err)
		}
		if v.Rows, v.Width = 1, int(min(n, from.Size()/4)); n == b.PerRow*uint64(step.T) {
			v.Rows, v.Width = int(step.T), int(b.PerRow)
		}
		return gpu.Range{Buffer: from}, nil
	}
	return gpu.Range{}, nil
}

// integers reports whether a binding's elements are integers.
func integers(p *program.Program, b *program.Binding) bool {
	switch at := b.At.(type) {
	case *program.Binding_Table:
		return at.Table == program.Table_PICKS
	case *program.Binding_Buffer:
		return p.Buffers[at.Buffer].Elem == program.Elem_U32
	}
	return false
}

// read submits what is recorded and copies the value. The experts that a later dispatch reads stay pinned.
func (t *tracer) read(ctx context.Context, m *Model, from gpu.Range, integers bool) error {
	c, v := &m.runner.commands, &t.value
	for off, end := uint64(0), 4*uint64(v.Rows)*uint64(v.Width); off < end; off += t.readback.Size() {
		n := min(end-off, t.readback.Size())
		t.readback.Copy(c, 0, from.Buffer, from.Offset+off, n)
		err := m.experts.submit(nil, c)
		c.Reset()
		if err != nil {
			return err
		}
		data, err := t.readback.Wait(ctx)
		if err != nil {
			return err
		}
		t.append(data[:n], integers)
		if err := t.readback.Unmap(); err != nil {
			return err
		}
	}
	return nil
}

func (t *tracer) release() {
	if t != nil && t.readback != nil {
		t.readback.Release()
	}
}
