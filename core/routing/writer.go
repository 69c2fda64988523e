package routing

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer records a trace. Each step goes out in one write when its last layer has
// come, so that a run may be killed at any time and leaves whole steps. A nil
// Writer records nothing. It belongs to one goroutine.
type Writer struct {
	out    io.Writer
	header *Header
	frame  []byte
	picks  []uint16
	ahead  []uint16 // guesses
	layer  int      // of the header, that comes next
	pos    int
	tokens int
	decode bool
	err    error
}

// NewWriter writes the header. It fails where the header is no model's.
func NewWriter(out io.Writer, h *Header) (*Writer, error) {
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("routing: %w", err)
	}
	data, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("routing: %w", err)
	}
	if len(data) > maxHeader {
		return nil, fmt.Errorf("routing: have a header of %d bytes, want at most %d: give the model a shorter name", len(data), maxHeader)
	}
	w := &Writer{out: out, header: h, frame: append([]byte(magic), h.version())}
	at := w.open()
	w.frame = append(w.frame, data...)
	w.close(at)
	if _, err := out.Write(w.frame); err != nil {
		return nil, fmt.Errorf("routing: %w", err)
	}
	return w, nil
}

// open leaves room for a frame's length; close fills it in and appends the checksum.
func (w *Writer) open() (at int) {
	at = len(w.frame)
	w.frame = append(w.frame, 0, 0, 0, 0)
	return at
}

func (w *Writer) close(at int) {
	payload := w.frame[at+4:]
	binary.LittleEndian.PutUint32(w.frame[at:], uint32(len(payload)))
	w.frame = binary.LittleEndian.AppendUint32(w.frame, crc32.Checksum(payload, castagnoli))
}

// Decoding says whether the steps that begin from now on make tokens (true) or belong to a prompt.
func (w *Writer) Decoding(on bool) {
	if w != nil {
		w.decode = on
	}
}

// Add takes the picks of one layer in the step at position pos: topK for each
// token, token by token. Guesses are what this layer foretold of as many of those after
// it as the header says, topK for each, the nearest first: a step of one token has them
// for all layers or, as a step of more, for none. A step's layers come in the header's
// order; one that begins before the last is complete, as after an error, replaces it.
// The first error stays: see Err.
func (w *Writer) Add(layer, pos int, picks, guesses []int) {
	if w == nil || w.err != nil {
		return
	}
	h := w.header
	if layer == h.Layers[0].Layer {
		w.layer, w.pos, w.tokens, w.picks = 0, pos, len(picks)/h.TopK, w.picks[:0]
		w.ahead = w.ahead[:0]
	}
	if err := w.fits(layer, pos, picks, guesses); err != nil {
		w.err = fmt.Errorf("routing: layer %d at position %d: %w", layer, pos, err)
		return
	}
	for _, p := range picks {
		w.picks = append(w.picks, uint16(p))
	}
	for _, p := range guesses {
		w.ahead = append(w.ahead, uint16(p))
	}
	if w.layer++; w.layer < len(h.Layers) {
		return
	}
	if n := len(w.ahead); n > 0 && n != h.guesses()*h.TopK {
		w.err = fmt.Errorf("routing: position %d: have %d guesses, want %d or none", pos, n, h.guesses()*h.TopK)
		return
	}
	w.write()
}

// fits checks one layer of a step.
func (w *Writer) fits(layer, pos int, picks, guesses []int) error {
	h := w.header
	switch {
	case w.layer == len(h.Layers) || layer != h.Layers[w.layer].Layer:
		return fmt.Errorf("have it out of turn, want the header's %d layers in order", len(h.Layers))
	case pos != w.pos || pos < 0 || pos > maxPos:
		return fmt.Errorf("want one position in all layers of a step, 0 to %d", int64(maxPos))
	case len(picks) != w.tokens*h.TopK || w.tokens < 1 || w.tokens > maxTokens || h.packed(w.tokens, false) > maxFrame/2:
		return fmt.Errorf("have %d picks, want %d for each of %d tokens", len(picks), h.TopK, w.tokens)
	case len(guesses) != 0 && (w.tokens != 1 || len(guesses) != h.Layers[w.layer].Guesses*h.TopK):
		return fmt.Errorf("have %d guesses in a step of %d tokens, want %d in one of 1, or none", len(guesses), w.tokens, h.Layers[w.layer].Guesses*h.TopK)
	}
	for _, all := range [][]int{picks, guesses} {
		for _, p := range all {
			if p < 0 || p >= h.Experts {
				return fmt.Errorf("have expert %d, want 0 to %d", p, h.Experts-1)
			}
		}
	}
	return nil
}

// write puts out the step.
func (w *Writer) write() {
	w.frame = w.frame[:0]
	at := w.open()
	kind := byte(0)
	if w.decode {
		kind |= made
	}
	if len(w.ahead) > 0 {
		kind |= guessed
	}
	w.frame = append(w.frame, kind)
	w.frame = binary.AppendUvarint(w.frame, uint64(w.pos))
	w.frame = binary.AppendUvarint(w.frame, uint64(w.tokens))
	var held uint64
	width, have := w.header.width(), 0
	for _, all := range [][]uint16{w.picks, w.ahead} {
		for _, p := range all {
			held |= uint64(p) << have
			for have += width; have >= 8; have -= 8 {
				w.frame = append(w.frame, byte(held))
				held >>= 8
			}
		}
	}
	if have > 0 {
		w.frame = append(w.frame, byte(held))
	}
	w.close(at)
	if _, err := w.out.Write(w.frame); err != nil {
		w.err = fmt.Errorf("routing: %w", err)
	}
}

// Err returns the first error of Add.
func (w *Writer) Err() error {
	if w == nil {
		return nil
	}
	return w.err
}

// Write writes a whole trace.
func Write(out io.Writer, t *Trace) error {
	w, err := NewWriter(out, t.Header)
	if err != nil {
		return err
	}
	var picks, guesses []int
	ints := func(dst []int, from []uint16) []int {
		for _, p := range from {
			dst = append(dst, int(p))
		}
		return dst
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		w.Decoding(s.Decode)
		for j, l := range t.Header.Layers {
			picks, guesses = ints(picks[:0], s.Layer(j, t.Header.TopK)), ints(guesses[:0], t.Header.Ahead(s, j))
			w.Add(l.Layer, s.Pos, picks, guesses)
		}
	}
	return w.Err()
}
