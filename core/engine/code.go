package engine

import (
	"fmt"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// code is the program's kernels, compiled.
type code struct {
	pipelines []*gpu.Pipeline
}

func (c *code) release() {
	for _, p := range c.pipelines {
		p.Release()
	}
}

// Kernels is how many kernels the model has on the device, the host's own among them.
func (m *Model) Kernels() int {
	n := len(m.code.pipelines)
	if m.topn != nil {
		n += 2
	}
	if m.token != nil {
		n++
	}
	return n
}

// compile makes a pipeline of every kernel, on all CPUs at once.
func (m *Model) compile() (*code, error) {
	specs := make([]gpu.PipelineSpec, len(m.Program.Kernels))
	for i, k := range m.Program.Kernels {
		specs[i] = gpu.PipelineSpec{Label: k.Name, WGSL: k.Wgsl, Bindings: bindingTypes(k)}
	}
	p, err := m.device.NewPipelines(specs)
	return &code{pipelines: p}, err
}

func bindingTypes(k *program.Kernel) []gpu.BindingType {
	types := make([]gpu.BindingType, len(k.Slots))
	for i, s := range k.Slots {
		types[i] = map[program.Access]gpu.BindingType{
			program.Access_READ: gpu.ReadStorage, program.Access_READ_WRITE: gpu.Storage, program.Access_UNIFORM: gpu.Uniform,
		}[s.Access]
	}
	return types
}

// bindAll makes the bind group of every dispatch: with a nil session those that need none, else
// those that do, by section variant in the program's order.
func (m *Model) bindAll(s *Session) ([][]*gpu.BindGroup, error) {
	var all [][]*gpu.BindGroup
	for _, sec := range m.Program.Sections {
		for _, v := range sec.Variants {
			groups := make([]*gpu.BindGroup, len(v.Dispatches))
			for i, d := range v.Dispatches {
				if sec.Kind == program.Kind_GUESS && (m.token == nil || v != sec.Pick(1)) || m.ofSession(d) != (s != nil) {
					continue // prompts guess nothing: their chunks ask for nearly all experts of a layer
				}
				g, err := m.bind(sec, d, s)
				if err != nil {
					return append(all, groups), err
				}
				groups[i] = g
			}
			all = append(all, groups)
		}
	}
	return all, nil
}

// ofSession reports whether a dispatch binds a buffer that each session has its own of.
func (m *Model) ofSession(d *program.Dispatch) bool {
	for _, b := range d.Bindings {
		if x, ok := b.At.(*program.Binding_Buffer); ok && m.Program.Buffers[x.Buffer].Class != program.Class_SCRATCH {
			return true
		}
	}
	return false
}

func (m *Model) bind(sec *program.Section, d *program.Dispatch, s *Session) (*gpu.BindGroup, error) {
	ranges := make([]gpu.Range, len(d.Bindings))
	for i, b := range d.Bindings {
		r, err := m.rangeOf(sec, d, b, s)
		if err != nil {
			return nil, fmt.Errorf("engine: %s: %w", d.Label, err)
		}
		ranges[i] = r
	}
	return m.device.NewBindGroup(m.code.pipelines[d.Kernel], d.Label, ranges)
}

// rangeOf finds the memory that a binding means.
func (m *Model) rangeOf(sec *program.Section, d *program.Dispatch, b *program.Binding, s *Session) (gpu.Range, error) {
	switch x := b.At.(type) {
	case *program.Binding_Buffer:
		if buf, ok := m.scratch[x.Buffer]; ok {
			return gpu.Range{Buffer: buf}, nil
		}
		at := m.kept.at[x.Buffer]
		return gpu.Range{Buffer: s.arenas[at.arena], Offset: at.offset, Size: at.size}, nil
	case *program.Binding_Weight:
		return m.dense[x.Weight.Weight][x.Weight.Band], nil
	case *program.Binding_Bank:
		return gpu.Range{Buffer: m.experts.bankOf(int(sec.Layer))}, nil
	case *program.Binding_Rope:
		return gpu.Range{Buffer: m.tables.ropes[x.Rope]}, nil
	case *program.Binding_Table:
		return m.tableRange(sec, d, x.Table)
	}
	return gpu.Range{}, fmt.Errorf("a binding of no kind")
}

func (m *Model) tableRange(sec *program.Section, d *program.Dispatch, t program.Table) (gpu.Range, error) {
	size := m.sizes
	switch t {
	case program.Table_STEP:
		return gpu.Range{Buffer: m.tables.step}, nil
	case program.Table_CONSTANTS:
		return gpu.Range{Buffer: m.tables.constants, Offset: m.tables.at[string(d.Constants)], Size: uint64(len(d.Constants))}, nil
	case program.Table_PICKS:
		return gpu.Range{Buffer: m.tables.picks, Offset: m.experts.index[int(sec.Layer)] * size.picksStride, Size: size.picksStride}, nil
	case program.Table_RESIDENCY:
		return gpu.Range{Buffer: m.tables.residency, Offset: m.experts.index[int(sec.Layer)] * size.residencyStride, Size: size.residencyStride}, nil
	case program.Table_GUESSES:
		return m.guessRange(int(sec.Layer), m.token.ordinal(m.Program, sec), 1), nil
	case program.Table_OUTS:
		return gpu.Range{Buffer: m.tables.outs}, nil
	case program.Table_PAIRS:
		return gpu.Range{Buffer: m.tables.pairs}, nil
	case program.Table_TILES:
		return gpu.Range{Buffer: m.tables.tiles}, nil
	case program.Table_LOGITS:
		return gpu.Range{Buffer: m.tables.logits}, nil
	}
	return gpu.Range{}, fmt.Errorf("this host does not fill the table %v yet", t)
}

// guessRange is where n guesses of a layer lie, from its first-th on.
func (m *Model) guessRange(layer, first, n int) gpu.Range {
	at := m.experts.index[layer]*uint64(max(m.token.guesses, 1)) + uint64(first)
	return gpu.Range{Buffer: m.tables.guesses, Offset: at * m.sizes.guessStride, Size: uint64(n) * m.sizes.guessStride}
}

// ordinal is a guess's number among those of its layer.
func (t *token) ordinal(p *program.Program, sec *program.Section) (n int) {
	for _, s := range p.Sections {
		switch {
		case s == sec:
			return n
		case s.Kind == program.Kind_GUESS && s.Layer == sec.Layer:
			n++
		}
	}
	panic("BUG: a guess of another program")
}
