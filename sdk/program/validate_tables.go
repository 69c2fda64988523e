package program

import "fmt"

// tableRule says who may use one of the host's tables.
type tableRule struct {
	kinds  []Kind // sections that may read it
	writer Kind   // the section whose result it is
	result bool   // whether it is a result at all
	elem   string // scalar of its elements
}

var tableRules = map[Table]tableRule{
	Table_PICKS:     {kinds: []Kind{Kind_TRUNK, Kind_EXPERTS, Kind_COMBINE, Kind_GUESS}, writer: Kind_TRUNK, result: true, elem: "u32"},
	Table_RESIDENCY: {kinds: []Kind{Kind_EXPERTS}, elem: "u32"},
	Table_PAIRS:     {kinds: []Kind{Kind_EXPERTS}, elem: "u32"},
	Table_TILES:     {kinds: []Kind{Kind_EXPERTS}, elem: "u32"},
	Table_OUTS:      {kinds: []Kind{Kind_HEAD}, elem: "u32"},
	Table_GUESSES:   {kinds: []Kind{Kind_GUESS}, writer: Kind_GUESS, result: true, elem: "u32"},
	Table_LOGITS:    {kinds: []Kind{Kind_HEAD}, writer: Kind_HEAD, result: true, elem: "f32"},
}

// tableBinding says why a table can't be bound to slot i, or "".
func (c *checker) tableBinding(p *place, i int, t Table) string {
	typ, kind := p.decl.Types[i], p.section.GetKind()
	switch t {
	case Table_STEP:
		return wantType(t, typ, stepType)
	case Table_CONSTANTS:
		return wantType(t, typ, constantsType)
	}
	rule, ok := tableRules[t]
	if !ok {
		return fmt.Sprintf("have table %d, which is none", t)
	}
	allowed := false
	for _, k := range rule.kinds {
		allowed = allowed || k == kind
	}
	if !allowed {
		return fmt.Sprintf("have %v bound in %v, want it in %v only", t, kind, rule.kinds)
	}
	if t == Table_PAIRS || t == Table_TILES {
		if !p.tiled || c.prog.GetTileRows() == 0 {
			return fmt.Sprintf("have %v bound, want it in variants that bind TILES, with tile_rows above 0", t)
		}
	}
	return mismatch(t.String(), p.decl.Slots[i].GetAccess(), rule.result && rule.writer == kind, scalarOf(typ), rule.elem)
}

// wantType checks the type of a uniform.
func wantType(t Table, have, want string) string {
	if have != want {
		return fmt.Sprintf("have %v bound to a %s, want %s", t, clip(have), want)
	}
	return ""
}

// grid checks a dispatch's grid at the largest step that its variant serves.
func (c *checker) grid(p *place) {
	terms := p.dispatch.GetGrid()
	if len(terms) < 1 || len(terms) > 3 {
		c.addf("%v: have %d grid terms, want 1 to 3", p, len(terms))
		return
	}
	for i, t := range terms {
		if why := c.term(p, t); why != "" {
			c.addf("%v: grid %c: %s", p, "xyz"[i], why)
			return
		}
	}
	most := c.b.Limits.GetMaxGroups()
	if most == 0 {
		most = FoldWidth
	}
	if g, err := Grid(terms, c.largest(p), most); err != nil {
		c.addf("%v: %w", p, err)
	} else if g[0] == 0 || g[1] == 0 || g[2] == 0 {
		c.addf("%v: have a grid of %v, want no zeros", p, g)
	}
}

// term says what is wrong with a term of a grid in this place, or "".
func (c *checker) term(p *place, t *Term) string {
	switch v := t.GetN(); {
	case v < Var_ONE || v > Var_SW:
		return fmt.Sprintf("have variable %d, which is none", v)
	case (v == Var_SW) != (t.GetWindow() > 0):
		return fmt.Sprintf("have %v with window %d, want a window for SW and only there", v, t.GetWindow())
	case v == Var_O && p.section.GetKind() != Kind_HEAD:
		return "have O, want it in HEAD only"
	case v == Var_G && !p.tiled:
		return "have G, want it in variants that bind TILES only"
	}
	return ""
}

// largest is the step that makes the grids of a variant largest.
func (c *checker) largest(p *place) StepUniform {
	t, o := c.b.Chunk, c.b.Outs
	if most := uint64(p.variant.GetMax()); most != 0 && p.section.GetKind() == Kind_HEAD {
		o = min(o, most)
	} else if most != 0 {
		t = min(t, most)
	}
	m := c.plan.GetModel()
	g := max(1, MaxTiles(t, m.GetTopK(), m.GetExperts(), c.prog.GetTileRows()))
	return StepUniform{
		T: uint32(t), S: uint32(max(t, c.b.Context)), O: uint32(o), Chunk: uint32(c.b.Chunk), G: uint32(min(g, 1<<32-1)),
	}
}
