package program

import "fmt"

// run calls the references of a variant's dispatches in order. bank is the
// memory of the layer's experts, nil outside EXPERTS.
func (w *walk) run(v *Variant, bank *Memory) error {
	for _, d := range v.Dispatches {
		k := w.prog.Kernels[d.Kernel]
		extent, err := Extent(d.Grid, w.step)
		if err != nil {
			return err
		}
		c := &Call{
			Step: w.step, Grid: [3]uint32{uint32(extent[0]), uint32(extent[1]), uint32(extent[2])},
			kernel: k, fields: w.fields[d.Kernel], consts: d.Constants, memory: map[string]*Memory{},
		}
		var outputs []Output
		for i, b := range d.Bindings {
			if k.Slots[i].Access == Access_UNIFORM {
				continue
			}
			m, err := w.bound(b, bank)
			if err != nil {
				return err
			}
			c.memory[k.Slots[i].Name] = m
			if k.Slots[i].Access == Access_READ_WRITE {
				outputs = append(outputs, Output{bindingName(w.plan, w.prog, b), m})
			}
		}
		if c.Grid[0] > 0 && c.Grid[1] > 0 && c.Grid[2] > 0 {
			if err := call(w.refs[d.Kernel], c); err != nil {
				return fmt.Errorf("program: kernel %s, dispatch %s of %v of layer %d: %w", k.Name, d.Label, w.section.Kind, w.section.Layer, err)
			}
		}
		if w.o.Trace != nil {
			w.o.Trace(&Trace{w.section, w.wave, d, k, w.step, c.Grid, outputs})
		}
	}
	return nil
}

// call runs a reference. Its panics, an index past a buffer most likely, are
// the program's or the reference's fault, not the caller's.
func call(ref Ref, c *Call) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the reference panics in step %+v, grid %v: %v", c.Step, c.Grid, r)
		}
	}()
	ref(c)
	return nil
}

// bound is the memory behind a binding.
func (w *walk) bound(b *Binding, bank *Memory) (*Memory, error) {
	switch at := b.At.(type) {
	case *Binding_Buffer:
		if m := w.scratch[at.Buffer]; m != nil {
			return m, nil
		}
		return w.session.buffers[at.Buffer], nil
	case *Binding_Weight:
		return w.weight(at.Weight)
	case *Binding_Bank:
		return bank, nil
	case *Binding_Table:
		return w.tables[at.Table], nil
	case *Binding_Rope:
		return w.ropes[at.Rope], nil
	}
	panic("BUG: a binding of nothing")
}
