package program

import (
	"fmt"
	"strings"
)

func (t *text) buffers() {
	t.printf("\nbuffers\n")
	var rows [][]string
	for i, b := range t.prog.GetBuffers() {
		note := ""
		if uint32(i) == t.prog.GetInput() {
			note = "(input)"
		}
		rows = append(rows, []string{b.GetName(), strings.ToLower(b.GetClass().String()), strings.ToLower(b.GetElem().String()), sizeText(b), note})
	}
	t.table("  ", rows)
}

// sizeText is a buffer's size in elements as an expression.
func sizeText(b *Buffer) string {
	var parts []string
	add := func(n uint64, of string) {
		switch {
		case n == 1:
			parts = append(parts, of)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d*%s", n, of))
		}
	}
	if b.GetFixed() > 0 {
		parts = append(parts, fmt.Sprint(b.GetFixed()))
	}
	add(b.GetPerRow(), "chunk")
	add(b.GetPerOut(), "outs")
	positions := "context"
	if b.GetClass() == Class_RING {
		positions = fmt.Sprintf("(%d + chunk)", b.GetWindow())
	}
	if d := b.GetPosDiv(); d > 1 {
		positions = fmt.Sprintf("ceil(%s/%d)", strings.Trim(positions, "()"), d)
	}
	add(b.GetPerPos(), positions)
	add(b.GetPerRowPos(), "chunk*"+positions)
	return strings.Join(parts, " + ")
}

func (t *text) kernels() {
	t.printf("\nkernels\n")
	var rows [][]string
	for i, k := range t.prog.GetKernels() {
		ref := "own"
		if k.GetRef() != "" {
			ref = "ref " + k.GetRef()
		}
		var params []string
		for _, p := range sortedKeys(k.GetParams()) {
			params = append(params, fmt.Sprintf("%s=%d", p, k.GetParams()[p]))
		}
		wg := t.decls[i].Workgroup
		shape := strings.TrimSuffix(strings.TrimSuffix(fmt.Sprintf("%dx%dx%d", wg[0], wg[1], wg[2]), "x1"), "x1")
		rows = append(rows, []string{k.GetName(), ref, "lanes " + shape, strings.Join(params, " "), typesText(k.GetTypes())})
	}
	t.table("  ", rows)
	if n := t.prog.GetTileRows(); n > 0 {
		t.printf("\nexpert tiles of %d rows\n", n)
	}
}

func (t *text) section(s *Section) {
	switch name := strings.ToLower(s.GetKind().String()); s.GetKind() {
	case Kind_HEAD:
		t.printf("\n%s\n", name)
	case Kind_GUESS:
		t.printf("\n%s in layer %d at layer %d\n", name, s.GetLayer(), s.GetGuessOf())
	default:
		t.printf("\n%s of layer %d\n", name, s.GetLayer())
	}
	for _, v := range s.GetVariants() {
		t.printf(" rows %s: %s\n", rowsText(v), plural(len(v.GetDispatches()), "dispatch", "dispatches"))
		lines := make([][]string, len(v.GetDispatches()))
		for i, d := range v.GetDispatches() {
			lines[i] = t.dispatch(d)
		}
		t.table("  ", lines)
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// dispatch is the cells of a dispatch's line.
func (t *text) dispatch(d *Dispatch) []string {
	kernel, consts := fmt.Sprintf("kernel %d", d.GetKernel()), ""
	var slots []*Slot
	if uint64(d.GetKernel()) < uint64(len(t.prog.GetKernels())) {
		k := t.prog.GetKernels()[d.GetKernel()]
		kernel, slots = k.GetName(), k.GetSlots()
		consts = constantsText(&t.decls[d.GetKernel()], d.GetConstants())
	}
	var in, out []string
	for i, b := range d.GetBindings() {
		access := Access_READ
		if i < len(slots) {
			access = slots[i].GetAccess()
		}
		name := bindingName(t.plan, t.prog, b)
		if r := d.GetResult(); r != nil && int(r.GetSlot()) == i {
			name += fmt.Sprintf(" (result of layer %d)", r.GetLayer())
		}
		switch access {
		case Access_READ_WRITE:
			out = append(out, name)
		case Access_READ:
			in = append(in, name)
		}
	}
	tail := "grid " + gridText(d.GetGrid())
	if consts != "" {
		tail += "  " + consts
	}
	return []string{d.GetLabel(), kernel, strings.Join(in, ", ") + " -> " + strings.Join(out, ", ") + "  " + tail}
}

// gridText writes a grid's terms with commas between dimensions.
func gridText(terms []*Term) string {
	if len(terms) == 0 {
		return "1"
	}
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = termText(t)
	}
	return strings.Join(parts, ", ")
}

// termText is a term as an expression, ceil(T*512/64).
func termText(t *Term) string {
	n := t.GetN().String()
	if t.GetN() == Var_SW {
		n = fmt.Sprintf("min(S, %d)", t.GetWindow())
	}
	switch mul := max(1, t.GetMul()); {
	case t.GetN() == Var_ONE:
		n = fmt.Sprint(mul)
	case mul > 1:
		n = fmt.Sprintf("%s*%d", n, mul)
	}
	if t.GetDiv() > 1 {
		return fmt.Sprintf("ceil(%s/%d)", n, t.GetDiv())
	}
	return n
}
