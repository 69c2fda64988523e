package layer

import (
	"fmt"

	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// output is the program being built; the regimes add to it in turn.
type output struct {
	program  *program.Program
	kernels  map[string]uint32
	decls    []program.Decl
	buffers  map[string]uint32 // session and fixed buffers by name
	scratch  map[shapeKey][]uint32
	sections map[sectionKey]*program.Section
}

// sectionKey tells sections apart.
type sectionKey struct {
	kind      program.Kind
	layer, of int
}

func (s *section) key() sectionKey { return sectionKey{s.kind, s.layer, s.of} }

// shapeKey tells which values can share a buffer.
type shapeKey struct {
	elem                  program.Elem
	fixed, perRow, perOut uint64
	perPos, perRowPos     uint64
	posDiv                uint32
}

func keyOf(b *program.Buffer) shapeKey {
	return shapeKey{b.Elem, b.Fixed, b.PerRow, b.PerOut, b.PerPos, b.PerRowPos, b.PosDiv}
}

func newOutput() *output {
	return &output{program: &program.Program{Version: 1}, kernels: map[string]uint32{}, buffers: map[string]uint32{},
		scratch: map[shapeKey][]uint32{}, sections: map[sectionKey]*program.Section{}}
}

func (o *output) addBuffer(b *program.Buffer) uint32 {
	o.program.Buffers = append(o.program.Buffers, b)
	return uint32(len(o.program.Buffers) - 1)
}

// namedBuffer declares a session buffer, or one that all regimes share, once.
func (o *output) namedBuffer(b *program.Buffer) *program.Binding {
	i, ok := o.buffers[b.Name]
	if !ok {
		i = o.addBuffer(b)
		o.buffers[b.Name] = i
	}
	return &program.Binding{At: &program.Binding_Buffer{Buffer: i}}
}

// kernel builds a kernel once per spec.
func (o *output) kernel(s kernels.Spec) (uint32, error) {
	name := s.String()
	if i, ok := o.kernels[name]; ok {
		return i, nil
	}
	k, err := kernels.Build(s)
	if err != nil {
		return 0, err
	}
	decl, err := program.ParseWGSL(k.Wgsl)
	if err != nil {
		return 0, err
	}
	i := uint32(len(o.program.Kernels))
	o.program.Kernels = append(o.program.Kernels, k)
	o.decls = append(o.decls, decl)
	o.kernels[name] = i
	return i, nil
}

// lower turns a regime's operations into dispatches over buffers.
func (o *output) lower(e *Encoder) {
	place, results := o.allocate(e.flow), e.lastWriters()
	for _, s := range e.flow {
		v := &program.Variant{Min: e.regime.min, Max: e.regime.max}
		if s.kind == program.Kind_HEAD {
			if o.sections[s.key()] != nil {
				continue // the head's variants go by output rows: one regime writes them
			}
			v.Min, v.Max = 1, 0
		}
		for _, p := range s.ops {
			d, err := o.dispatch(p, place)
			if err != nil {
				e.fail("%s: %w", p.label, err)
				continue
			}
			if v := results[p]; v != nil {
				d.Result = &program.Result{Layer: uint32(e.results[v]), Slot: o.slotOf(d.Kernel, p, v)}
			}
			v.Dispatches = append(v.Dispatches, d)
		}
		o.addVariant(s, v)
	}
	if i, ok := o.buffers["input"]; ok {
		o.program.Input = i
	}
}

// lastWriters are the operations that complete a block's result, each with that value.
func (e *Encoder) lastWriters() map[*op]*Value {
	last := map[*Value]*op{}
	for _, s := range e.flow {
		for _, p := range s.ops {
			for _, b := range p.binds {
				if _, ok := e.results[b.value]; ok && b.writes {
					last[b.value] = p
				}
			}
		}
	}
	out := map[*op]*Value{}
	for v, p := range last {
		out[p] = v
	}
	return out
}

// slotOf is the slot of a kernel through which an operation writes v.
func (o *output) slotOf(kernel uint32, p *op, v *Value) uint32 {
	for i, s := range o.program.Kernels[kernel].Slots {
		if b := p.binds[s.Name]; b.writes && b.value == v {
			return uint32(i)
		}
	}
	panic("BUG: an operation writes a value through no slot")
}

func (o *output) addVariant(s *section, v *program.Variant) {
	out := o.sections[s.key()]
	if out == nil {
		out = &program.Section{Kind: s.kind, Layer: uint32(s.layer), GuessOf: uint32(s.of)}
		o.sections[s.key()] = out
		o.program.Sections = append(o.program.Sections, out)
	}
	out.Variants = append(out.Variants, v)
}

func (o *output) dispatch(p *op, place map[*Value]uint32) (*program.Dispatch, error) {
	i, err := o.kernel(p.spec.Spec)
	if err != nil {
		return nil, err
	}
	k := o.program.Kernels[i]
	d := &program.Dispatch{Kernel: i, Label: p.label, Grid: p.grid}
	if d.Constants, err = pack(k, o.decls[i], p.consts); err != nil {
		return nil, err
	}
	for _, s := range k.Slots {
		b, err := p.bind(s.Name, place)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		d.Bindings = append(d.Bindings, b)
	}
	return d, nil
}

// bind finds what a WGSL variable stands for.
func (p *op) bind(name string, place map[*Value]uint32) (*program.Binding, error) {
	switch name {
	case "c":
		return table(program.Table_CONSTANTS).binding, nil
	case "step":
		return table(program.Table_STEP).binding, nil
	}
	x, ok := p.binds[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("nothing is bound to %s", name)
	case x.value != nil:
		return &program.Binding{At: &program.Binding_Buffer{Buffer: place[x.value]}}, nil
	case x.binding == nil:
		return nil, fmt.Errorf("what is bound to %s could not be had", name)
	}
	return x.binding, nil
}
