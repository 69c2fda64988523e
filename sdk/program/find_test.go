package program

import "slices"

// Where the tests of the validator find what they break.

func (b *builder) buf(name string) *Buffer { return b.prog.Buffers[b.bufferIndex(name)] }

func (b *builder) bufferIndex(name string) uint32 {
	b.t.Helper()
	i := slices.IndexFunc(b.prog.Buffers, func(x *Buffer) bool { return x.Name == name })
	if i < 0 {
		b.t.Fatalf("the test has no buffer %s", name)
	}
	return uint32(i)
}

func (b *builder) kern(name string) *Kernel {
	b.t.Helper()
	i := slices.IndexFunc(b.prog.Kernels, func(k *Kernel) bool { return k.Name == name })
	if i < 0 {
		b.t.Fatalf("the test has no kernel %s", name)
	}
	return b.prog.Kernels[i]
}

func (b *builder) sect(kind Kind, layer uint32) *Section {
	b.t.Helper()
	i := slices.IndexFunc(b.prog.Sections, func(s *Section) bool { return s.Kind == kind && s.Layer == layer })
	if i < 0 {
		b.t.Fatalf("the test has no section %v of layer %d", kind, layer)
	}
	return b.prog.Sections[i]
}

// one is the dispatch of a label in a section's variant.
func (b *builder) disp(kind Kind, layer uint32, variant int, label string) *Dispatch {
	b.t.Helper()
	ds := b.sect(kind, layer).Variants[variant].Dispatches
	i := slices.IndexFunc(ds, func(d *Dispatch) bool { return d.Label == label })
	if i < 0 {
		b.t.Fatalf("the test has no dispatch %s", label)
	}
	return ds[i]
}

// rebind binds a dispatch's slot of that name to something else.
func (b *builder) rebind(d *Dispatch, slot, thing string) {
	b.t.Helper()
	i := slices.IndexFunc(b.prog.Kernels[d.Kernel].Slots, func(s *Slot) bool { return s.Name == slot })
	if i < 0 {
		b.t.Fatalf("the test's kernel %s has no slot %s", b.prog.Kernels[d.Kernel].Name, slot)
	}
	if b.things[thing] == nil {
		b.t.Fatalf("the test has nothing named %s", thing)
	}
	d.Bindings[i] = b.things[thing]
}

// drop leaves out a dispatch.
func (b *builder) drop(kind Kind, layer uint32, variant int, label string) {
	b.t.Helper()
	d := b.disp(kind, layer, variant, label)
	v := b.sect(kind, layer).Variants[variant]
	v.Dispatches = slices.DeleteFunc(v.Dispatches, func(x *Dispatch) bool { return x == d })
}
