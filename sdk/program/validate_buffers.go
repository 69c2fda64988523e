package program

import "math/bits"

// buffers checks each buffer by itself.
func (c *checker) buffers() {
	seen := map[string]bool{}
	for _, b := range c.prog.GetBuffers() {
		c.name("buffer", b.GetName(), seen)
		what := "buffer " + clip(b.GetName())
		if _, ok := Elem_name[int32(b.GetElem())]; !ok {
			c.addf("%s: have elem %d, want F32, U32 or F16", what, b.GetElem())
		}
		c.class(what, b)
		c.size(what, b)
	}
}

// class checks that a buffer's size has the terms of its class.
func (c *checker) class(what string, b *Buffer) {
	if b.GetClass() == Class_RING != (b.GetWindow() > 0) {
		c.addf("%s: have class %v with window %d, want a window for RING and only there", what, b.GetClass(), b.GetWindow())
	}
	switch b.GetClass() {
	case Class_SCRATCH:
		return
	case Class_KV, Class_RING:
		if b.GetPerPos() == 0 {
			c.addf("%s: have class %v without per_pos, want one that holds positions", what, b.GetClass())
		}
	case Class_STATE:
		if b.GetPerPos() != 0 {
			c.addf("%s: have class STATE with per_pos %d, want 0", what, b.GetPerPos())
		}
	default:
		c.addf("%s: have class %d, want SCRATCH, KV, RING or STATE", what, b.GetClass())
	}
	if b.GetPerRow() != 0 || b.GetPerOut() != 0 || b.GetPerRowPos() != 0 {
		c.addf("%s: have class %v with per_row %d, per_out %d and per_row_pos %d, want 0: a session outlives a step",
			what, b.GetClass(), b.GetPerRow(), b.GetPerOut(), b.GetPerRowPos())
	}
}

// size checks a buffer's bytes at the largest step.
func (c *checker) size(what string, b *Buffer) {
	n, err := BufferBytes(b, c.b.Chunk, c.b.Outs, c.b.Context)
	switch most := min(c.b.MaxBuffer, limit(c.b.Limits.GetMaxBinding())); {
	case err != nil:
		c.addf("%s: the size at chunk %d, outs %d, context %d overflows", what, c.b.Chunk, c.b.Outs, c.b.Context)
	case n == 0:
		c.addf("%s: have 0 bytes, want at least one element", what)
	case n > most:
		c.addf("%s: have %d bytes at chunk %d, outs %d, context %d, want at most %d, the largest binding",
			what, n, c.b.Chunk, c.b.Outs, c.b.Context, most)
	}
}

// input checks the buffer that embeddings are written to.
func (c *checker) input() {
	i := c.prog.GetInput()
	if uint64(i) >= uint64(len(c.prog.GetBuffers())) {
		c.addf("input: have buffer %d, want below %d", i, len(c.prog.GetBuffers()))
		return
	}
	b, hidden := c.prog.GetBuffers()[i], uint64(c.plan.GetModel().GetHidden())
	if b.GetClass() != Class_SCRATCH || b.GetElem() != Elem_F32 || b.GetPerRow() != hidden {
		c.addf("input: buffer %s: have %v %v with %d per row, want SCRATCH F32 with %d, the model's hidden",
			clip(b.GetName()), b.GetClass(), b.GetElem(), b.GetPerRow(), hidden)
	}
}

// memory checks the sum of all buffers and host tables.
func (c *checker) memory() {
	var total, over uint64
	add := func(n uint64) {
		var carry uint64
		total, carry = bits.Add64(total, n, 0)
		over |= carry
	}
	for _, b := range c.prog.GetBuffers() {
		n, err := BufferBytes(b, c.b.Chunk, c.b.Outs, c.b.Context)
		if err != nil {
			return // said already
		}
		add(n)
	}
	for t := Table_PICKS; t <= Table_LOGITS; t++ {
		n := TableBytes(t, c.plan.GetModel(), c.prog.GetTileRows(), c.b.Chunk, c.b.Outs)
		if most := limit(c.b.Limits.GetMaxBinding()); n > most {
			c.addf("table %v: have %d bytes at chunk %d, outs %d, want at most %d, the largest binding", t, n, c.b.Chunk, c.b.Outs, most)
		}
		add(n)
	}
	for _, r := range c.plan.GetRopes() {
		n := RopeBytes(r, c.b.Chunk)
		if most := limit(c.b.Limits.GetMaxBinding()); n > most {
			c.addf("rope %s: have %d bytes at chunk %d, want at most %d, the largest binding", clip(r.GetName()), n, c.b.Chunk, most)
		}
		add(n)
	}
	add(ConstantsBytes(c.prog, c.b.UniformAlign))
	if over != 0 || total > c.b.Budget {
		c.addf("buffers and tables: have %d bytes at chunk %d, outs %d, context %d, want at most %d: lower the context or the chunk",
			total, c.b.Chunk, c.b.Outs, c.b.Context, c.b.Budget)
	}
}

// TableBytes is the size of one of the host's storage tables for steps of up
// to chunk tokens and outs output rows; 0 for the uniforms.
func TableBytes(t Table, m *Model, tileRows uint32, chunk, outs uint64) uint64 {
	switch pairs := chunk * uint64(m.GetTopK()); t {
	case Table_PICKS, Table_GUESSES, Table_PAIRS:
		return 4 * pairs
	case Table_RESIDENCY:
		return 4 * uint64(m.GetExperts())
	case Table_TILES:
		return 16 * MaxTiles(chunk, m.GetTopK(), m.GetExperts(), tileRows)
	case Table_OUTS:
		return 4 * outs
	case Table_LOGITS:
		return 4 * outs * uint64(m.GetVocab())
	}
	return 0
}

// ConstantsBytes is the size of the constants of all dispatches, each from a
// multiple of align, as in one uniform buffer.
func ConstantsBytes(p *Program, align uint32) uint64 {
	var total uint64
	for _, s := range p.GetSections() {
		for _, v := range s.GetVariants() {
			for _, d := range v.GetDispatches() {
				total += roundUp(uint64(len(d.GetConstants())), uint64(align))
			}
		}
	}
	return total
}

// RopeBytes is the size of a rope's table for steps of up to chunk tokens.
func RopeBytes(r *Rope, chunk uint64) uint64 { return 8 * chunk * uint64(r.GetPairs()) }
