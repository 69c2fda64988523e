package program

import (
	"fmt"
	"slices"
	"testing"
)

// Rules about sections, variants, and what is written when.
func TestValidateRefusesOrder(t *testing.T) {
	sections := func(f func([]*Section) []*Section) func(*builder) {
		return func(b *builder) { b.prog.Sections = f(b.prog.Sections) }
	}
	variants := func(kind Kind, f func(*Section)) func(*builder) { return func(b *builder) { f(b.sect(kind, 0)) } }
	for name, c := range map[string]fault{
		"no sections":            {sections(func([]*Section) []*Section { return nil }), "sections: have 0, want TRUNK of layer 0 next"},
		"no trunk":               {sections(func(s []*Section) []*Section { return s[1:] }), "section 0 (GUESS of layer 0): want TRUNK of layer 0 here"},
		"no experts":             {sections(func(s []*Section) []*Section { return slices.Delete(s, 2, 3) }), "section 2 (COMBINE of layer 0): want EXPERTS of layer 0 here"},
		"no combine":             {sections(func(s []*Section) []*Section { return slices.Delete(s, 3, 4) }), "section 3 (TRUNK of layer 1): want COMBINE of layer 0 here"},
		"no head":                {sections(func(s []*Section) []*Section { return s[:len(s)-1] }), "sections: have 7, want HEAD"},
		"two heads":              {sections(func(s []*Section) []*Section { return append(s, s[len(s)-1]) }), "section 8 (HEAD): want the HEAD to be last"},
		"layers in disorder":     {sections(func(s []*Section) []*Section { return slices.Concat(s[4:7], s[:4], s[7:]) }), "section 0 (TRUNK of layer 1): want TRUNK of layer 0 here"},
		"layer missing":          {sections(func(s []*Section) []*Section { return slices.Delete(s, 4, 7) }), "section 4 (HEAD): want TRUNK of layer 1 here"},
		"guess after experts":    {sections(func(s []*Section) []*Section { return slices.Concat(s[:1], s[2:3], s[1:2], s[3:]) }), "section 2 (GUESS of layer 0): want COMBINE of layer 0 here"},
		"guess after combine":    {sections(func(s []*Section) []*Section { return slices.Concat(s[:1], s[2:4], s[1:2], s[4:]) }), "section 3 (GUESS of layer 0): want TRUNK of layer 1 here"},
		"guess of another layer": {func(b *builder) { b.sect(Kind_GUESS, 0).Layer = 1 }, "section 1 (GUESS of layer 1): want GUESS of layer 0 here"},
		"guess at itself":        {func(b *builder) { b.sect(Kind_GUESS, 0).GuessOf = 0 }, "have guess_of 0, want 1, the next MoE layer"},
		"guess past the end":     {func(b *builder) { b.sect(Kind_GUESS, 0).GuessOf = 2 }, "have guess_of 2, want 1"},
		"guess twice":            {sections(func(s []*Section) []*Section { return slices.Insert(s, 1, s[1]) }), "section 2 (GUESS of layer 0): have guess_of 1, want no guess here"},
		"too many guesses": {func(b *builder) {
			m, s := b.plan.Model, b.prog.Sections
			more := s[:1:1]
			for i := range uint32(maxGuesses + 1) {
				m.Layers, m.MoeLayers = max(m.Layers, i+2), append(m.MoeLayers[:i+1], i+1)
				more = append(more, &Section{Kind: Kind_GUESS, GuessOf: i + 1, Variants: s[1].Variants})
			}
			b.prog.Sections = append(more, s[2:]...)
		}, "guesses of layer 0: have 17, want at most 16"},
		"kind of none":           {func(b *builder) { b.sect(Kind_HEAD, 0).Kind = 9 }, "want HEAD of layer 0 here"},
		"no variants":            {variants(Kind_COMBINE, func(s *Section) { s.Variants = nil }), "section 3 (COMBINE of layer 0): have variants up to 0 rows, want all up to chunk 64"},
		"variants end early":     {variants(Kind_COMBINE, func(s *Section) { s.Variants[1].Max = 63 }), "have variants up to 63 rows, want all up to chunk 64"},
		"variants with a gap":    {variants(Kind_COMBINE, func(s *Section) { s.Variants[1].Min = 3 }), "variant 1: have rows 3.., want them to go on from 2"},
		"variants that overlap":  {variants(Kind_COMBINE, func(s *Section) { s.Variants[0].Max = 2 }), "variant 1: have rows 2.., want them to go on from 3"},
		"variants from zero":     {variants(Kind_COMBINE, func(s *Section) { s.Variants[0].Min = 0 }), "variant 0: have rows 0..1, want them to go on from 1"},
		"variant backwards":      {variants(Kind_COMBINE, func(s *Section) { s.Variants[1].Min, s.Variants[1].Max = 2, 1 }), "variant 1: have rows 2..1"},
		"variant after the end":  {variants(Kind_COMBINE, func(s *Section) { s.Variants = append(s.Variants, &Variant{Min: 65}) }), "variant 2: have rows 65.., want them to go on from 0"},
		"head for fewer outputs": {variants(Kind_HEAD, func(s *Section) { s.Variants[0].Max = 7 }), "(HEAD): have variants up to 7 rows, want all up to outs 8"},
		"no picks":               {func(b *builder) { b.drop(Kind_TRUNK, 1, 1, "blk.1.router") }, "section 4 (TRUNK of layer 1): rows 2..: have no dispatch that writes PICKS"},
		"no guesses":             {func(b *builder) { b.drop(Kind_GUESS, 0, 0, "guess") }, "section 1 (GUESS of layer 0): rows 1..: have no dispatch that writes GUESSES"},
		"no logits":              {func(b *builder) { b.drop(Kind_HEAD, 0, 0, "output") }, "section 7 (HEAD): rows 1..: have no dispatch that writes LOGITS"},
		"read before written":    {func(b *builder) { b.drop(Kind_TRUNK, 0, 0, "blk.0.merge") }, "dispatch 4 blk.0.attn_output (proj[q4_0]): slot a0: reads att, which nothing has written in a step of 1 rows"},
		"read in other rows":     {func(b *builder) { b.drop(Kind_EXPERTS, 0, 1, "blk.0.down") }, "section 3 (COMBINE of layer 0), rows 2.., dispatch 0 blk.0.sum (moe_sum): slot a0: reads rows, which nothing has written in a step of 2 rows"},
		"picks of the layer before": {func(b *builder) {
			ds := b.sect(Kind_TRUNK, 1).Variants[0].Dispatches
			b.current, b.variant = b.sect(Kind_TRUNK, 1), b.sect(Kind_TRUNK, 1).Variants[0]
			b.run("early", "early", "PICKS -> h", grid(perRow(1, 1)), nil)
			b.variant.Dispatches = append([]*Dispatch{b.variant.Dispatches[len(ds)]}, ds...)
		}, "dispatch 0 early (early): slot picks: reads PICKS, which nothing has written"},
		"what a guess wrote": {func(b *builder) {
			b.scratch(64, "guessed")
			b.rebindGuess("guessed")
			b.rebind(b.disp(Kind_HEAD, 0, 0, "output"), "a0", "guessed")
		}, "slot a0: reads guessed, which nothing has written"},
		"what a guess overwrote": {func(b *builder) { b.rebindGuess("pw") }, "section 2 (EXPERTS of layer 0), rows 1, dispatch 1 blk.0.down (expert_down): slot a4: reads pw, which nothing has written"},
		"too many classes": {func(b *builder) {
			for i, s := range b.prog.Sections[:7] {
				s.Variants = nil
				for j := range uint32(maxVariants) {
					s.Variants = append(s.Variants, &Variant{Min: j*32 + 1 + uint32(i), Max: j*32 + 32 + uint32(i)})
				}
				s.Variants[0].Min, s.Variants[maxVariants-1].Max = 1, 0
			}
			b.run("output", "head", "x, OUTS, output_norm.weight, token_embd.weight -> LOGITS", grid(perOut(1, 1)), consts{"eps", 1e-6})
		}, "rows at which variants change: have 106, want at most 64"},
	} {
		t.Run(name, func(t *testing.T) {
			b, x := small(t), testBounds()
			if name == "too many classes" {
				x.Chunk = 512
			}
			c.mutate(b)
			wantFault(t, b.validate(x), c.want)
		})
	}
}

// The head is walked for each of its own variants.
func TestValidateWalksEveryHead(t *testing.T) {
	b := small(t)
	s := b.sect(Kind_HEAD, 0)
	s.Variants[0].Max = 1
	b.scratch(64, "unwritten")
	b.current = s
	b.rows(2, 0)
	b.run("many", "head", "unwritten, OUTS, output_norm.weight, token_embd.weight -> LOGITS", grid(perOut(1, 1)), consts{"eps", 1e-6})
	wantFault(t, b.validate(testBounds()), "rows 2.., dispatch 0 many (head[q8_0]): slot a0: reads unwritten")
}

// One fault in every layer is told for one class of rows only.
func TestValidateTellsOnce(t *testing.T) {
	b := small(t)
	b.drop(Kind_TRUNK, 0, 0, "blk.0.merge")
	err := b.validate(testBounds())
	if errs, ok := err.(interface{ Unwrap() []error }); !ok || len(errs.Unwrap()) != 1 {
		t.Errorf("have %v, want one fault", err)
	}
}

func TestValidateOfNothing(t *testing.T) {
	if Validate(nil, nil, nil, nil, Bounds{}) == nil {
		t.Error("have no error for nothing")
	}
	nils := &Program{
		Version: 1, Buffers: []*Buffer{nil}, Kernels: []*Kernel{nil},
		Sections: []*Section{nil, {Variants: []*Variant{nil, {Min: 1, Dispatches: []*Dispatch{nil, {Grid: []*Term{nil}, Bindings: []*Binding{nil, {At: &Binding_Weight{}}}}}}}}},
	}
	plan := &Plan{Model: &Model{MoeLayers: []uint32{0}}, Weights: []*Weight{nil}, Records: []*Record{nil, {Parts: []*Weight{nil}}}, Ropes: []*Rope{nil}}
	placed := []*Placed{nil}
	for _, records := range [][]*PlacedRecord{nil, {nil, nil}, {nil, {Parts: []*Placed{nil}}}, {nil, {Parts: []*Placed{{Bands: []*Band{nil}}}}}} {
		if err := Validate(plan, placed, records, nils, Bounds{Chunk: 1, Outs: 1, Context: 1}); err == nil {
			t.Error("have no error for a program of nils")
		}
	}
	h := &Header{Tensors: []*Tensor{nil}, Metadata: []*KeyValue{nil}}
	if ValidatePlan(h, plan) == nil {
		t.Error("have no error for a plan of nils")
	}
	if s := fmt.Sprint(Text(discard{}, plan, placed, nil, nils)); s != "<nil>" {
		t.Errorf("text: have %s", s)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
