// Package simulate computes what caches of any size would have done with a recorded
// trace, without running the model: hit rates and bytes to read for each token. LRU
// takes one pass for all sizes; any other core/stream policy is replayed, and so is
// Belady's choice, which no policy can beat. In these nothing is read ahead: prefetch
// changes when records are read more than how many. [Demand.Decode] plays a trace with
// guesses in simulated time, with reading ahead, and tells the speed.
//
// Only tokens that were made count. A prompt's chunks pass through the caches and
// change what lies in them, but are not in any rate.
//
// Start at [New].
package simulate

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/core/routing"
	"github.com/sluicehost/sluice/core/stream"
)

// ask is what one layer asks for in one step.
type ask struct {
	layer   int // of the header
	experts []uint16
	ahead   []uint16 // guesses at the layers after it, nearest first, TopK each
	tokens  int      // of its step
	prompt  bool
	counted bool
}

// Demand is a trace as the slot pool sees it. Its methods may be called from several goroutines at once.
type Demand struct {
	Header *routing.Header
	Tokens int // that count
	asks   []ask
	index  map[int]int // of the header's layer, by number

	mu     sync.Mutex
	curves map[string]*curveOnce
}

// warmShare is the part of the tokens made that fills the caches and does not count.
const warmShare = 8

// New takes a trace's demand. The first eighth of the tokens made fills the caches and
// does not count. It fails where the trace has no token to count.
func New(t *routing.Trace) (*Demand, error) {
	d := &Demand{Header: t.Header, index: map[int]int{}, curves: map[string]*curveOnce{}}
	for i, l := range t.Header.Layers {
		d.index[l.Layer] = i
	}
	made := 0
	for _, s := range t.Steps {
		if s.Decode {
			made++
		}
	}
	warm := made / warmShare
	seen := make([]bool, t.Header.Experts)
	for i := range t.Steps {
		s := &t.Steps[i]
		counted := false
		if s.Decode {
			warm--
			counted = warm < 0
		}
		if counted {
			d.Tokens += s.Tokens
		}
		ahead := s.Guesses // of the layers from here on; Header.Ahead adds them up anew for each
		for l, x := range t.Header.Layers {
			n := min(x.Guesses*t.Header.TopK, len(ahead))
			d.asks = append(d.asks, ask{l, distinct(s.Layer(l, t.Header.TopK), s.Tokens, seen), ahead[:n], s.Tokens, !s.Decode, counted})
			ahead = ahead[n:]
		}
	}
	if d.Tokens == 0 {
		return nil, errors.New("the trace has no tokens that were made after a prompt, want some: record a longer run")
	}
	return d, nil
}

// distinct is each expert once: of one token in pick order, of more ascending, as the engine asks for them. Nothing of seen
// is set, by expert, before and after.
func distinct(picks []uint16, tokens int, seen []bool) []uint16 {
	if tokens > 1 {
		picks = slices.Clone(picks)
		slices.Sort(picks)
		return slices.Compact(picks)
	}
	out := picks[:0:0]
	for _, p := range picks {
		if !seen[p] {
			seen[p], out = true, append(out, p)
		}
	}
	for _, p := range out {
		seen[p] = false
	}
	return out
}

// Guesses is how many MoE layers ahead the trace's guesses look; 0 where it has none.
func (d *Demand) Guesses() (deepest int) {
	for _, a := range d.asks {
		deepest = max(deepest, d.guesses(a))
	}
	return deepest
}

// Groups are the header's layers as [stream.Divide] takes them.
func (d *Demand) Groups() []stream.Group {
	at := map[int]int{}
	var groups []stream.Group
	for _, l := range d.Header.Layers {
		i, ok := at[l.Group]
		if !ok {
			i = len(groups)
			at[l.Group] = i
			groups = append(groups, stream.Group{Experts: d.Header.Experts, Used: d.Header.TopK, RecordBytes: l.RecordBytes})
		}
		groups[i].Layers = append(groups[i].Layers, l.Layer)
	}
	return groups
}

// Fits checks that the trace is of a model with these MoE layers.
func (d *Demand) Fits(groups []stream.Group) error {
	layers := 0
	for _, g := range groups {
		if g.Experts != d.Header.Experts || g.Used != d.Header.TopK {
			return fmt.Errorf("the trace is of another model: have %d experts of which %d are picked, want %d and %d", d.Header.Experts, d.Header.TopK, g.Experts, g.Used)
		}
		for _, l := range g.Layers {
			if _, ok := d.index[l]; !ok {
				return fmt.Errorf("the trace is of another model: have no layer %d with experts", l)
			}
		}
		layers += len(g.Layers)
	}
	if layers != len(d.index) {
		return fmt.Errorf("the trace is of another model: have %d layers with experts, want %d", len(d.index), layers)
	}
	return nil
}

// Outcome is what caches did for the tokens that count.
type Outcome struct {
	Asked         int64   `json:"asked"` // experts, once per token and layer
	Hits          int64   `json:"hits"`
	HitRate       float64 `json:"hit_rate"`
	BytesPerToken float64 `json:"bytes_per_token"` // of records to read
}

// sum adds up banks.
type sum struct {
	asked, hits, bytes int64
}

func (s *sum) add(asked, hits, record int64) {
	s.asked += asked
	s.hits += hits
	s.bytes += (asked - hits) * record
}

func (d *Demand) outcome(s sum) Outcome {
	return Outcome{s.asked, s.hits, float64(s.hits) / float64(max(s.asked, 1)), float64(s.bytes) / float64(d.Tokens)}
}

// bank is the demand on one bank: the ids of its keys, numbered as core/stream does.
type bank struct {
	layers []served // in the model's order
	keys   int
}

// served is a layer of the header, and the id of its expert 0.
type served struct{ layer, first int }

// serve numbers the keys of layers as numbered in the model.
func (d *Demand) serve(layers []int) bank {
	b := bank{layers: make([]served, len(layers))}
	for i, l := range layers {
		b.layers[i] = served{d.index[l], b.keys}
		b.keys += d.Header.Experts
	}
	slices.SortFunc(b.layers, func(x, y served) int { return x.layer - y.layer })
	return b
}

// of goes through what a bank is asked for, in order: the number of each ask, and the id of expert 0 in its layer. It looks
// at the bank's layers alone, as there may be thousands of banks.
func (d *Demand) of(b bank) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for step := 0; step < len(d.asks); step += len(d.Header.Layers) {
			for _, l := range b.layers {
				if !yield(step+l.layer, l.first) {
					return
				}
			}
		}
	}
}
