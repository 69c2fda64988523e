package program

import (
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// place is where in the program a dispatch stands.
type place struct {
	section  *Section
	variant  *Variant
	tiled    bool
	index    int // of the section
	number   int // of the dispatch in its variant
	dispatch *Dispatch
	kernel   *Kernel
	decl     *Decl
}

// String names the dispatch in messages.
func (p *place) String() string {
	s := fmt.Sprintf("%s, rows %s, dispatch %d %s", sectionName(p.index, p.section), rowsText(p.variant), p.number, clip(p.dispatch.GetLabel()))
	if p.kernel != nil {
		s += " (" + clip(p.kernel.GetName()) + ")"
	}
	return strings.TrimSpace(s)
}

// dispatch checks one dispatch against its kernel.
func (c *checker) dispatch(p *place) {
	d := p.dispatch
	if uint64(d.GetKernel()) >= uint64(len(c.prog.GetKernels())) {
		c.addf("%v: have kernel %d, want below %d", p, d.GetKernel(), len(c.prog.GetKernels()))
		return
	}
	p.kernel, p.decl = c.prog.GetKernels()[d.GetKernel()], c.decls[d.GetKernel()]
	if len(d.GetLabel()) > maxName {
		c.addf("%v: have a label of %d bytes, want at most %d", p, len(d.GetLabel()), maxName)
	}
	if have, want := uint64(len(d.GetConstants())), uint64(p.kernel.GetConstantBytes()); have != want {
		c.addf("%v: have %d bytes of constants, want %d", p, have, want)
	}
	c.grid(p)
	if p.decl == nil || len(p.decl.Slots) != len(p.kernel.GetSlots()) {
		return // said at the kernel
	}
	if len(d.GetBindings()) != len(p.decl.Slots) {
		c.addf("%v: have %d bindings, want %d, one for each slot", p, len(d.GetBindings()), len(p.decl.Slots))
		return
	}
	for i, b := range d.GetBindings() {
		if why := c.binding(p, i, b); why != "" {
			c.addf("%v: slot %s: %s", p, clip(p.decl.Slots[i].GetName()), why)
		}
	}
	c.conflicts(p)
	c.result(p)
}

// binding says why b can't be bound to slot i of the dispatch's kernel, or "".
func (c *checker) binding(p *place, i int, b *Binding) string {
	access, elem := p.decl.Slots[i].GetAccess(), scalarOf(p.decl.Types[i])
	table, isTable := b.GetAt().(*Binding_Table)
	if uniform := isTable && (table.Table == Table_STEP || table.Table == Table_CONSTANTS); uniform != (access == Access_UNIFORM) {
		return fmt.Sprintf("have %s bound as %v, want STEP and CONSTANTS, and only them, as UNIFORM", c.bound(b), access)
	}
	var want string // scalar type of the elements
	var why string
	writable := false
	switch at := b.GetAt().(type) {
	case *Binding_Buffer:
		want, writable, why = c.bufferBinding(p, at.Buffer)
	case *Binding_Weight:
		want, why = c.weightBinding(p, i, at.Weight)
	case *Binding_Bank:
		if want = "u32"; p.section.GetKind() != Kind_EXPERTS || !at.Bank {
			why = "have the bank bound, want it in EXPERTS only"
		}
	case *Binding_Table:
		return c.tableBinding(p, i, at.Table)
	case *Binding_Rope:
		if want = "f32"; uint64(at.Rope) >= uint64(len(c.plan.GetRopes())) {
			why = fmt.Sprintf("have rope %d, want below %d", at.Rope, len(c.plan.GetRopes()))
		}
	default:
		why = "have nothing bound"
	}
	if why != "" {
		return why
	}
	return mismatch(c.bound(b), access, writable, elem, want)
}

// mismatch says what is wrong with binding a thing of wanted elements.
func mismatch(what string, access Access, writable bool, have, want string) string {
	if access == Access_READ_WRITE && !writable {
		return fmt.Sprintf("have %s bound READ_WRITE, want READ", what)
	}
	if have != "" && have != want {
		return fmt.Sprintf("have elements of %s in the WGSL, want %s for %s", have, want, what)
	}
	return ""
}

// bufferBinding is the element type of a buffer, and whether this section may write it.
func (c *checker) bufferBinding(p *place, i uint32) (elem string, writable bool, why string) {
	if uint64(i) >= uint64(len(c.prog.GetBuffers())) {
		return "", false, fmt.Sprintf("have buffer %d, want below %d", i, len(c.prog.GetBuffers()))
	}
	b := c.prog.GetBuffers()[i]
	if elem = "u32"; b.GetElem() == Elem_F32 {
		elem = "f32"
	}
	// Only these two run exactly once in every step; a session must not advance twice, or not at all.
	once := p.section.GetKind() == Kind_TRUNK || p.section.GetKind() == Kind_COMBINE
	return elem, b.GetClass() == Class_SCRATCH || once, ""
}

// weightBinding is the element type of a weight's band.
func (c *checker) weightBinding(p *place, slot int, at *WeightBand) (elem, why string) {
	i, j := uint64(at.GetWeight()), uint64(at.GetBand())
	if i >= uint64(len(c.placed)) || i >= uint64(len(c.plan.GetWeights())) {
		return "", fmt.Sprintf("have weight %d, want below %d", i, len(c.plan.GetWeights()))
	}
	w := c.placed[i]
	if j >= uint64(len(w.GetBands())) {
		return "", fmt.Sprintf("have band %d of weight %s, want below %d", j, clip(w.GetName()), len(w.GetBands()))
	}
	if c.plan.GetWeights()[i].GetUse() == Use_VECTOR {
		return "f32", ""
	}
	if t, ok := p.kernel.GetTypes()[p.decl.Slots[slot].GetName()]; ok && t != w.GetBands()[j].GetType() {
		return "", fmt.Sprintf("have band %d of weight %s of type %v, want %v, which the kernel reads", j, clip(w.GetName()),
			ggml.Type(w.GetBands()[j].GetType()), ggml.Type(t))
	}
	return "u32", ""
}

// bound names a binding in messages.
func (c *checker) bound(b *Binding) string { return clip(bindingName(c.plan, c.prog, b)) }

// conflicts checks that nothing is written through one binding and read or
// written through another: the device finds that only at the end of a pass.
func (c *checker) conflicts(p *place) {
	bindings := p.dispatch.GetBindings()
	for i, b := range bindings {
		for j := range i {
			x, y := p.decl.Slots[i].GetAccess(), p.decl.Slots[j].GetAccess()
			if (x == Access_READ_WRITE || y == Access_READ_WRITE) && same(b, bindings[j]) {
				c.addf("%v: have %s bound to %s as %v and to %s as %v, want what is written bound once", p, c.bound(b),
					clip(p.decl.Slots[j].GetName()), y, clip(p.decl.Slots[i].GetName()), x)
			}
		}
	}
}

// same reports whether two bindings are of one buffer or table.
func same(a, b *Binding) bool {
	switch x := a.GetAt().(type) {
	case *Binding_Buffer:
		y, ok := b.GetAt().(*Binding_Buffer)
		return ok && x.Buffer == y.Buffer
	case *Binding_Table:
		y, ok := b.GetAt().(*Binding_Table)
		return ok && x.Table == y.Table
	}
	return false
}

// scalarOf is the scalar at the bottom of a storage variable's type, "" where
// it is none of WGSL's 32-bit ones (a struct, say), which is not judged here.
func scalarOf(typ string) string {
	for _, p := range []string{"array<", "atomic<", "vec2<", "vec3<", "vec4<", "atomic<"} {
		typ = strings.TrimPrefix(typ, p)
	}
	typ, _, _ = strings.Cut(strings.TrimRight(typ, ">"), ",")
	typ = strings.TrimRight(typ, ">")
	if !isScalar(typ) {
		return ""
	}
	if typ == "i32" {
		return "u32" // the same bits
	}
	return typ
}
