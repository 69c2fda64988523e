package program

import "fmt"

// result checks where a dispatch says that a block's result lies: the host reads it from there.
func (c *checker) result(p *place) {
	r := p.dispatch.GetResult()
	if r == nil {
		return
	}
	if why := c.resultFault(p, r); why != "" {
		c.addf("%v: result of layer %d: %s", p, r.GetLayer(), why)
	}
}

func (c *checker) resultFault(p *place, r *Result) string {
	if n := c.plan.GetModel().GetLayers(); r.GetLayer() >= n {
		return fmt.Sprintf("want a layer below %d", n)
	}
	if p.tiled || p.section.GetKind() == Kind_GUESS {
		return "want none in a GUESS, nor in a variant that runs in waves"
	}
	bindings, slots := p.dispatch.GetBindings(), p.kernel.GetSlots()
	if i := uint64(r.GetSlot()); i >= uint64(len(bindings)) || i >= uint64(len(slots)) {
		return fmt.Sprintf("have slot %d, want below %d", i, len(bindings))
	}
	at, ok := bindings[r.GetSlot()].GetAt().(*Binding_Buffer)
	if !ok || slots[r.GetSlot()].GetAccess() != Access_READ_WRITE || uint64(at.Buffer) >= uint64(len(c.prog.GetBuffers())) {
		return fmt.Sprintf("have slot %d, want one that writes a buffer", r.GetSlot())
	}
	b := c.prog.GetBuffers()[at.Buffer]
	if b.GetClass() != Class_SCRATCH || b.GetElem() != Elem_F32 || b.GetPerRow() != uint64(c.plan.GetModel().GetHidden()) {
		return fmt.Sprintf("have buffer %s, want a SCRATCH buffer of F32 with per_row %d", clip(b.GetName()), c.plan.GetModel().GetHidden())
	}
	return ""
}
