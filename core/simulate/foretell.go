package simulate

import (
	"math/rand/v2"
	"slices"

	"github.com/sluicehost/sluice/core/routing"
)

// Foretell gives the steps of one token guesses of a given quality, in place of any they have: recall[d-1] is the share of a
// layer's picks that are guessed d MoE layers ahead, for as many as there are. A pick that is missed at some distance is
// missed at all where recall is lower. What is guessed instead is every other time what the layer picked in one of the last
// tokens, and else any expert: so it is with the shipped models, where two fifths to three fifths of the wrong guesses are
// picks of the last four tokens.
func Foretell(t *routing.Trace, recall []float64, seed uint64) {
	h, rng := *t.Header, rand.New(rand.NewPCG(seed, 3))
	h.Layers = slices.Clone(h.Layers)
	for i := range h.Layers {
		h.Layers[i].Guesses = min(len(recall), len(h.Layers)-1-i)
	}
	t.Header = &h
	var past []uint16 // picks of the steps before
	luck := make([]float64, len(h.Layers)*h.TopK)
	for n := range t.Steps {
		s := &t.Steps[n]
		s.Guesses = nil
		if s.Tokens != 1 {
			continue
		}
		for i := range luck {
			luck[i] = rng.Float64()
		}
		if n > 0 && t.Steps[n-1].Tokens == 1 {
			past = append(past[max(0, len(past)-(pastSteps-1)*len(luck)):], t.Steps[n-1].Picks...)
		}
		for i, l := range h.Layers {
			for d := 1; d <= l.Guesses; d++ {
				at := (i + d) * h.TopK
				s.Guesses = guessed(s.Guesses, s.Layer(i+d, h.TopK), luck[at:at+h.TopK], recall[d-1], func() uint16 {
					if len(past) > 0 && rng.IntN(2) == 0 {
						return past[rng.IntN(len(past)/len(luck))*len(luck)+at+rng.IntN(h.TopK)]
					}
					return uint16(rng.IntN(h.Experts))
				})
			}
		}
	}
}

// pastSteps is how many tokens back a wrong guess's expert was used, at most.
const pastSteps = 4

// guessed appends a layer's guess: the picks that are in luck, and others for the rest.
func guessed(dst, picks []uint16, luck []float64, recall float64, other func() uint16) []uint16 {
	const most = 8 // tries to find one that is no pick
	from := len(dst)
	for i, p := range picks {
		for tries := 0; luck[i] >= recall && tries < most && (tries == 0 || slices.Contains(picks, p) || slices.Contains(dst[from:], p)); tries++ {
			p = other()
		}
		dst = append(dst, p)
	}
	return dst
}

// Recall is the share of the picks that are guessed at each distance, [d-1] for d MoE layers ahead, over the steps that have
// guesses.
func Recall(t *routing.Trace) []float64 {
	var hits, all []float64
	for n := range t.Steps {
		s := &t.Steps[n]
		for i := range t.Header.Layers {
			ahead, k := t.Header.Ahead(s, i), t.Header.TopK
			for d := 1; d <= len(ahead)/k; d++ {
				if d > len(all) {
					hits, all = append(hits, 0), append(all, 0)
				}
				for _, p := range s.Layer(i+d, k) {
					if slices.Contains(ahead[(d-1)*k:d*k], p) {
						hits[d-1]++
					}
					all[d-1]++
				}
			}
		}
	}
	for d := range hits {
		hits[d] /= all[d]
	}
	return hits
}
