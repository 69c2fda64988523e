package program

import (
	"fmt"
	"slices"
)

// flow follows a step through the sections, for each class of steps that runs
// the same variants, and checks that what is read was written before, and that
// each section writes its result. A READ_WRITE binding counts as a write.
func (c *checker) flow() {
	classes := c.classes()
	if !c.count("rows at which variants change", len(classes), maxClasses) {
		return
	}
	f := &flow{c: c, told: map[string]bool{}}
	for _, rows := range classes {
		if len(c.errs) < maxFaults {
			f.step(rows)
		}
	}
}

// classes is the least number of rows of each class of steps.
func (c *checker) classes() []uint32 {
	rows := []uint32{1}
	for _, s := range c.prog.GetSections() {
		for _, v := range s.GetVariants() {
			if s.GetKind() != Kind_HEAD && uint64(v.GetMin()) <= c.b.Chunk {
				rows = append(rows, v.GetMin())
			}
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// flow is what has been written at some point of a step.
type flow struct {
	c       *checker
	told    map[string]bool // faults reported, so that each is reported for one class only
	buffers []bool
	results [Table_LOGITS + 1]bool
}

// step walks a step of that many rows.
func (f *flow) step(rows uint32) {
	f.buffers = make([]bool, len(f.c.prog.GetBuffers()))
	for i, b := range f.c.prog.GetBuffers() {
		f.buffers[i] = b.GetClass() != Class_SCRATCH
	}
	f.buffers[f.c.prog.GetInput()] = true
	for i, s := range f.c.prog.GetSections() {
		switch s.GetKind() {
		case Kind_HEAD:
			for _, v := range s.GetVariants() {
				before := slices.Clone(f.buffers)
				f.section(i, s, v, rows)
				f.buffers = before
			}
		case Kind_GUESS: // the host may leave it out, so the layer's experts and all later must not need what it writes or overwrites
			before := slices.Clone(f.buffers)
			f.section(i, s, s.Pick(rows), rows)
			f.buffers = before
			f.forget(s.Pick(rows))
		default:
			f.section(i, s, s.Pick(rows), rows)
		}
	}
}

// section walks the dispatches of a section's variant.
func (f *flow) section(i int, s *Section, v *Variant, rows uint32) {
	result, has := map[Kind]Table{Kind_TRUNK: Table_PICKS, Kind_GUESS: Table_GUESSES, Kind_HEAD: Table_LOGITS}[s.GetKind()]
	if has {
		f.results[result] = false
	}
	for j, d := range v.GetDispatches() {
		kernel := f.c.prog.GetKernels()[d.GetKernel()]
		slots := kernel.GetSlots()
		for k, b := range d.GetBindings() {
			if slots[k].GetAccess() == Access_READ && !f.written(b) {
				at := place{section: s, variant: v, index: i, number: j, dispatch: d, kernel: kernel}
				f.tell("%v: slot %s: reads %s, which nothing has written in a step of %d rows", &at, clip(slots[k].GetName()), f.c.bound(b), rows)
			}
		}
		for k, b := range d.GetBindings() {
			if slots[k].GetAccess() == Access_READ_WRITE {
				f.write(b)
			}
		}
	}
	if has && !f.results[result] {
		f.tell("%s: rows %s: have no dispatch that writes %v, want one", sectionName(i, s), rowsText(v), result)
	}
}

// tell reports a fault once, whatever the number of rows at its end.
func (f *flow) tell(format string, args ...any) {
	if len(f.c.errs) >= maxFaults {
		f.c.dropped++
		return
	}
	key := fmt.Sprintf("%s %v", format, args[:2])
	if !f.told[key] {
		f.told[key] = true
		f.c.addf(format, args...)
	}
}

// written reports whether what b binds holds a value.
func (f *flow) written(b *Binding) bool {
	switch at := b.GetAt().(type) {
	case *Binding_Buffer:
		return f.buffers[at.Buffer]
	case *Binding_Table:
		return !tableRules[at.Table].result || f.results[at.Table]
	}
	return true
}

func (f *flow) write(b *Binding) {
	switch at := b.GetAt().(type) {
	case *Binding_Buffer:
		f.buffers[at.Buffer] = true
	case *Binding_Table:
		f.results[at.Table] = true
	}
}

// forget marks what a variant writes as not written.
func (f *flow) forget(v *Variant) {
	for _, d := range v.GetDispatches() {
		slots := f.c.prog.GetKernels()[d.GetKernel()].GetSlots()
		for k, b := range d.GetBindings() {
			if at, ok := b.GetAt().(*Binding_Buffer); ok && slots[k].GetAccess() == Access_READ_WRITE {
				f.buffers[at.Buffer] = false
			}
		}
	}
}
