// Package sample picks the next token from a model's logits. It is arithmetic
// over numbers: it knows no text, no model and no GPU.
//
// Start at New and Sampler.Sample; Top and LogSumExp serve reports on logits.
package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// Params say how to pick. The zero value is greedy.
type Params struct {
	Temp float64 // temperature; 0 takes the largest logit
	TopK int     // how many of the largest logits to draw from; 0 is all
	Seed uint64  // equal seeds and equal logits give equal tokens
}

// ErrNoLogit says that no token can be picked: every logit is NaN or -Inf.
var ErrNoLogit = errors.New("sample: every logit is NaN or -Inf: the model computed nothing usable")

// Sampler draws tokens, one after the other. One goroutine may use it at a time.
type Sampler struct {
	p       Params
	random  *rand.Rand
	ids     []int32
	logits  []float32
	weights []float64
}

// stream is PCG's second seed word: any constant will do.
const stream = 0x736c75696365

// New checks p and starts a sampler.
func New(p Params) (*Sampler, error) {
	switch {
	case math.IsNaN(p.Temp) || math.IsInf(p.Temp, 0) || p.Temp < 0:
		return nil, fmt.Errorf("sample: temperature: have %v, want a number from 0 on", p.Temp)
	case p.TopK < 0:
		return nil, fmt.Errorf("sample: top-k: have %d, want a count, or 0 for all", p.TopK)
	}
	return &Sampler{p: p, random: rand.New(rand.NewPCG(p.Seed, stream))}, nil
}

// Needs is how many of the largest logits SampleTop needs to pick exactly as
// Sample does; 0 is all of them.
func (s *Sampler) Needs() int {
	if s.p.Temp == 0 {
		return 1
	}
	return s.p.TopK
}

// Sample picks the id of the next token, where logits[id] is the token's logit. NaN
// counts as -Inf, which is never picked. The only error is ErrNoLogit.
func (s *Sampler) Sample(logits []float32) (int32, error) {
	if s.p.Temp == 0 {
		return Greedy(logits)
	}
	if k := s.p.TopK; k > 0 && k < len(logits) {
		s.ids, s.logits = top(s.ids[:0], s.logits[:0], logits, k)
		return s.SampleTop(s.ids, s.logits)
	}
	i, err := s.draw(logits)
	return int32(i), err
}

// SampleTop is Sample over a list of the largest logits and their ids, largest first and
// the lowest id first among equals, as Top gives it. It should hold at least Needs.
func (s *Sampler) SampleTop(ids []int32, logits []float32) (int32, error) {
	if s.p.Temp == 0 {
		ids, logits = ids[:min(1, len(ids))], logits[:min(1, len(logits))]
	} else if k := s.p.TopK; k > 0 && k < len(ids) {
		ids, logits = ids[:k], logits[:k]
	}
	i, err := s.draw(logits)
	if err != nil {
		return 0, err
	}
	return ids[i], nil
}

// draw picks an index i with probability exp(logits[i]/Temp) / sum_j exp(logits[j]/Temp).
func (s *Sampler) draw(logits []float32) (int, error) {
	best, err := Greedy(logits)
	if err != nil || s.p.Temp == 0 {
		return int(best), err
	}
	most := float64(logits[best])
	if math.IsInf(most, 1) { // its probability is 1 in the limit
		return int(best), nil
	}
	s.weights = s.weights[:0]
	var sum float64
	for _, l := range logits {
		var w float64
		if l == l {
			w = math.Exp((float64(l) - most) / s.p.Temp)
		}
		sum += w
		s.weights = append(s.weights, w)
	}
	left := s.random.Float64() * sum
	for i, w := range s.weights {
		if left < w {
			return i, nil
		}
		left -= w
	}
	return int(best), nil // rounding used up more than there was
}

// Greedy is the id of the largest logit, the lowest id among equals. NaN counts as -Inf.
// The only error is ErrNoLogit.
func Greedy(logits []float32) (int32, error) {
	best := -1
	for i, l := range logits {
		if l > float32(math.Inf(-1)) && (best < 0 || l > logits[best]) { // false for NaN
			best = i
		}
	}
	if best < 0 {
		return 0, ErrNoLogit
	}
	return int32(best), nil
}
