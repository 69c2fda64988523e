// Package routing is the file format of routing traces: which experts a model's
// routers picked, step by step, layer by layer, and which were guessed some layers
// ahead. docs/trace-format.md describes the bytes. It records and reads; what follows from a trace is core/simulate's matter.
//
// Start at [NewWriter], whose Add is what core/engine calls, and at [Read].
package routing

import (
	"errors"
	"fmt"
	"math/bits"
)

// magic begins a file; a byte with the format's version follows. Version 2 is version 1 with guesses; a trace without
// any is of version 1, which older readers know.
const (
	magic    = "SLUICERT"
	plain    = 1
	guessing = 2
)

// A step's kind is a sum of these.
const (
	made    = 1 // its token was made, not given in a prompt
	guessed = 2 // guesses follow the picks
)

// Bounds on what a reader accepts, far above any model, so that a bad file makes no large table.
const (
	maxHeader  = 1 << 20 // bytes of the header
	maxExperts = 1 << 16 // as a pick is a uint16
	maxLayers  = 1 << 12
	maxLayer   = 1 << 16 // its number
	maxRecord  = 1 << 40 // bytes
	maxRow     = 1 << 20 // picks and guesses of one token in all layers
	maxTokens  = 1 << 20 // of a step
	maxPos     = 1 << 40
	maxFrame   = 1 << 28 // bytes of a step
)

// Header says what a trace is of.
type Header struct {
	Model        string  `json:"model"` // a name for people
	Architecture string  `json:"architecture"`
	Sum          string  `json:"header_sha256,omitempty"` // of the model's GGUF header; empty where there is no file
	Experts      int     `json:"experts"`                 // per MoE layer
	TopK         int     `json:"top_k"`                   // picked by a token in each
	Layers       []Layer `json:"layers"`                  // the MoE layers, in the order of the model
}

// Layer is an MoE layer.
type Layer struct {
	Layer       int   `json:"layer"`             // as numbered in the model
	RecordBytes int64 `json:"record_bytes"`      // of one expert in its slot
	Group       int   `json:"group"`             // layers of one group have records of one layout, and may share banks
	Guesses     int   `json:"guesses,omitempty"` // how many of the MoE layers after it are guessed at from here
}

// Step is what the routers picked in one step of the model.
type Step struct {
	Decode bool     // the step made a token; else it was of a prompt
	Pos    int      // position of its first token
	Tokens int      // how many it took
	Picks  []uint16 // [layers of the header][tokens][top k], in pick order
	// Guesses are what each layer foretold of the picks of those after it, [layers of the header][its guesses][top k],
	// the nearest layer first; empty where the step made none.
	Guesses []uint16
}

// Layer returns the picks of layer i of the header, token by token.
func (s *Step) Layer(i, topK int) []uint16 {
	n := s.Tokens * topK
	return s.Picks[i*n : (i+1)*n]
}

// Ahead returns what layer i of the header foretold of the layers after it: topK picks for each, the nearest first. It
// is empty where the step made no guesses.
func (h *Header) Ahead(s *Step, i int) []uint16 {
	if len(s.Guesses) == 0 {
		return nil
	}
	at := 0
	for _, l := range h.Layers[:i] {
		at += l.Guesses * h.TopK
	}
	return s.Guesses[at : at+h.Layers[i].Guesses*h.TopK]
}

// guesses is how many layers are guessed at from all layers together.
func (h *Header) guesses() (n int) {
	for _, l := range h.Layers {
		n += l.Guesses
	}
	return n
}

// version is the least format that holds what the header announces.
func (h *Header) version() byte {
	if h.guesses() > 0 {
		return guessing
	}
	return plain
}

// check refuses a header that no model has.
func (h *Header) check() error {
	switch {
	case h.Experts < 1 || h.Experts > maxExperts:
		return fmt.Errorf("experts: have %d, want 1 to %d", h.Experts, maxExperts)
	case h.TopK < 1 || h.TopK > h.Experts:
		return fmt.Errorf("top_k: have %d, want 1 to the %d experts", h.TopK, h.Experts)
	case len(h.Layers) < 1 || len(h.Layers) > maxLayers:
		return fmt.Errorf("layers: have %d, want 1 to %d", len(h.Layers), maxLayers)
	}
	last, records := -1, map[int]int64{} // of a group
	for i, l := range h.Layers {
		switch {
		case l.Guesses < 0 || l.Guesses > len(h.Layers)-1-i:
			return fmt.Errorf("layer %d: guesses: have %d, want 0 to %d, the layers after it", l.Layer, l.Guesses, len(h.Layers)-1-i)
		case l.Layer <= last || l.Layer >= maxLayer:
			return fmt.Errorf("layers: have layer %d after %d, want ascending numbers up to %d", l.Layer, last, maxLayer-1)
		case l.RecordBytes < 1 || l.RecordBytes > maxRecord:
			return fmt.Errorf("layer %d: record_bytes: have %d, want 1 to %d", l.Layer, l.RecordBytes, int64(maxRecord))
		case l.Group < 0 || l.Group >= len(h.Layers):
			return fmt.Errorf("layer %d: group: have %d, want 0 to %d", l.Layer, l.Group, len(h.Layers)-1)
		}
		if have, ok := records[l.Group]; ok && have != l.RecordBytes {
			return fmt.Errorf("layer %d: record_bytes: have %d, want %d as in the other layers of group %d", l.Layer, l.RecordBytes, have, l.Group)
		}
		last, records[l.Group] = l.Layer, l.RecordBytes
	}
	if n := (len(h.Layers) + h.guesses()) * h.TopK; n > maxRow {
		return fmt.Errorf("top_k: have %d in %d layers with %d guesses, want at most %d picks for a token", h.TopK, len(h.Layers), h.guesses(), maxRow)
	}
	return nil
}

// width is the bits of a pick.
func (h *Header) width() int { return max(1, bits.Len(uint(h.Experts-1))) }

// packed is the bytes of a step's picks, and of its guesses if it has some.
func (h *Header) packed(tokens int, guessed bool) int {
	rows := tokens * len(h.Layers)
	if guessed {
		rows += h.guesses()
	}
	return (rows*h.TopK*h.width() + 7) / 8
}

// ErrCut says that a trace ends within a step, as a killed run leaves it. What came before is good.
var ErrCut = errors.New("the file ends within a step: the run that wrote it was cut short")
