package program

import (
	"fmt"
	"maps"
	"slices"
)

// sortedKeys is a map's keys in order, for messages that do not change between runs.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sectionName is a section as messages name it.
func sectionName(i int, s *Section) string {
	if s.GetKind() == Kind_HEAD {
		return fmt.Sprintf("section %d (HEAD)", i)
	}
	return fmt.Sprintf("section %d (%v of layer %d)", i, s.GetKind(), s.GetLayer())
}

// order checks that the sections are, for each MoE layer ascending, TRUNK, any
// GUESSes, EXPERTS and COMBINE, and then one HEAD.
func (c *checker) order() {
	i := 0
	next := func(kind Kind, layer uint32) bool {
		if i == len(c.prog.GetSections()) {
			c.addf("sections: have %d, want %v of layer %d next", i, kind, layer)
			return false
		}
		s := c.prog.GetSections()[i]
		if s.GetKind() != kind || kind != Kind_HEAD && s.GetLayer() != layer {
			c.addf("%s: want %v of layer %d here", sectionName(i, s), kind, layer)
			return false
		}
		i++
		return true
	}
	layers := c.plan.GetModel().GetMoeLayers()
	for n, layer := range layers {
		if !next(Kind_TRUNK, layer) {
			return
		}
		first := i
		for later := layers[n+1:]; i < len(c.prog.GetSections()) && c.prog.GetSections()[i].GetKind() == Kind_GUESS; later = later[min(1, len(later)):] {
			if !next(Kind_GUESS, layer) {
				return
			}
			c.guess(i-1, later)
		}
		c.count(fmt.Sprintf("guesses of layer %d", layer), i-first, maxGuesses)
		for _, kind := range []Kind{Kind_EXPERTS, Kind_COMBINE} {
			if !next(kind, layer) {
				return
			}
		}
	}
	if !next(Kind_HEAD, 0) {
		return
	}
	if i != len(c.prog.GetSections()) {
		c.addf("%s: want the HEAD to be last", sectionName(i, c.prog.GetSections()[i]))
	}
}

// maxGuesses is the most layers that are guessed at from one. The host has room for as many picks of every layer.
const maxGuesses = 16

// guess checks that a guess is at the first of the MoE layers that none before it was at: the host takes the first guess for
// that of the next layer, the second for the one after that.
func (c *checker) guess(i int, later []uint32) {
	s := c.prog.GetSections()[i]
	switch of := s.GetGuessOf(); {
	case len(later) == 0:
		c.addf("%s: have guess_of %d, want no guess here: no MoE layer is left to guess at", sectionName(i, s), of)
	case of != later[0]:
		c.addf("%s: have guess_of %d, want %d, the next MoE layer", sectionName(i, s), of, later[0])
	}
}

// sections checks the variants of each section and their dispatches.
func (c *checker) sections() {
	for i, s := range c.prog.GetSections() {
		c.cover(i, s)
		for _, v := range s.GetVariants() {
			tiled := v.Tiled()
			for j, d := range v.GetDispatches() {
				at := place{section: s, variant: v, tiled: tiled, index: i, number: j, dispatch: d}
				c.dispatch(&at)
			}
		}
	}
}

// cover checks that the variants, in order, cover 1..chunk (of a HEAD,
// 1..outs) without gap or overlap.
func (c *checker) cover(i int, s *Section) {
	rows, what := c.b.Chunk, "chunk"
	if s.GetKind() == Kind_HEAD {
		rows, what = c.b.Outs, "outs"
	}
	next := uint64(1) // the row count that the next variant must start at; 0 once nothing is left
	for j, v := range s.GetVariants() {
		if uint64(v.GetMin()) != next || v.GetMax() != 0 && v.GetMax() < v.GetMin() {
			c.addf("%s: variant %d: have rows %s, want them to go on from %d", sectionName(i, s), j, rowsText(v), next)
			return
		}
		if next = uint64(v.GetMax()) + 1; v.GetMax() == 0 {
			next = 0
		}
	}
	if next != 0 && next <= rows {
		c.addf("%s: have variants up to %d rows, want all up to %s %d", sectionName(i, s), next-1, what, rows)
	}
}

// rowsText is the numbers of rows that a variant serves: 1, 2..8 or 9.. .
func rowsText(v *Variant) string {
	switch {
	case v.GetMin() == v.GetMax():
		return fmt.Sprint(v.GetMin())
	case v.GetMax() == 0:
		return fmt.Sprintf("%d..", v.GetMin())
	}
	return fmt.Sprintf("%d..%d", v.GetMin(), v.GetMax())
}
