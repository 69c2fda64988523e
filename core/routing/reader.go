package routing

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Reader reads a trace step by step, in memory for one step.
type Reader struct {
	Header *Header
	in     io.Reader
	frame  bytes.Buffer
	steps  int
}

// NewReader reads the header. Errors say what is wrong with the file.
func NewReader(in io.Reader) (*Reader, error) {
	var begin [len(magic) + 1]byte
	if _, err := io.ReadFull(in, begin[:]); err != nil && !short(err) {
		return nil, fmt.Errorf("routing: %w", err)
	}
	version := begin[len(magic)]
	switch {
	case string(begin[:len(magic)]) != magic:
		return nil, errors.New("routing: this is no routing trace: want a file that --trace has written")
	case version < plain || version > guessing:
		return nil, fmt.Errorf("routing: have format %d, want %d or %d: record it again", version, plain, guessing)
	}
	r := &Reader{in: in, Header: &Header{}}
	data, err := r.next(maxHeader)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = ErrCut
		}
		return nil, fmt.Errorf("routing: header: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err = d.Decode(r.Header); err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("have something behind the JSON value")
		}
	}
	if err == nil {
		err = r.Header.check()
	}
	if want := r.Header.version(); err == nil && version != want {
		err = fmt.Errorf("have %d guesses in format %d, want them in format %d alone", r.Header.guesses(), version, guessing)
	}
	if err != nil {
		return nil, fmt.Errorf("routing: header: %w", err)
	}
	return r, nil
}

func short(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// next reads a frame of at most most bytes; it is valid until the next call. io.EOF is the end of the file.
func (r *Reader) next(most uint32) ([]byte, error) {
	var word [4]byte
	switch n, err := io.ReadFull(r.in, word[:]); {
	case n == 0 && errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil && short(err):
		return nil, ErrCut
	case err != nil:
		return nil, err
	}
	n := binary.LittleEndian.Uint32(word[:])
	if n < 1 || n > most {
		return nil, fmt.Errorf("have %d bytes, want 1 to %d: the file is damaged", n, most)
	}
	r.frame.Reset() // grows with what there is, not with what the file claims
	if _, err := io.CopyN(&r.frame, r.in, int64(n)+4); err != nil {
		if short(err) {
			err = ErrCut
		}
		return nil, err
	}
	data := r.frame.Bytes()
	if have, want := crc32.Checksum(data[:n], castagnoli), binary.LittleEndian.Uint32(data[n:]); have != want {
		return nil, fmt.Errorf("have checksum %08x, want %08x: the file is damaged", have, want)
	}
	return data[:n], nil
}

// Next reads the next step into s, whose Picks and Guesses are used again where they are
// large enough. It returns io.EOF at the end, and an error that wraps ErrCut where the
// file ends within a step.
func (r *Reader) Next(s *Step) error {
	data, err := r.next(maxFrame)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err == nil {
		err = r.decode(data, s)
	}
	if err != nil {
		return fmt.Errorf("routing: step %d: %w", r.steps, err)
	}
	r.steps++
	return nil
}

// decode reads a step of its bytes.
func (r *Reader) decode(data []byte, s *Step) error {
	kinds := byte(made)
	if r.Header.guesses() > 0 {
		kinds |= guessed
	}
	if data[0]&^kinds != 0 {
		return fmt.Errorf("have kind %d, want 0 to %d", data[0], kinds)
	}
	pos, n := binary.Uvarint(data[1:])
	if n <= 0 || pos > maxPos {
		return fmt.Errorf("want a position up to %d", int64(maxPos))
	}
	rest := data[1+n:]
	tokens, n := binary.Uvarint(rest)
	if n <= 0 || tokens < 1 || tokens > maxTokens {
		return fmt.Errorf("want 1 to %d tokens", maxTokens)
	}
	rest = rest[n:]
	ahead := data[0]&guessed != 0
	if ahead && tokens != 1 {
		return fmt.Errorf("have guesses of %d tokens, want 1", tokens)
	}
	s.Decode, s.Pos, s.Tokens = data[0]&made != 0, int(pos), int(tokens)
	if want := r.Header.packed(s.Tokens, ahead); len(rest) != want {
		return fmt.Errorf("have %d bytes of picks, want %d for %d tokens", len(rest), want, tokens)
	}
	return r.unpack(rest, s, ahead)
}

// unpack reads the picks, and guesses behind them.
func (r *Reader) unpack(data []byte, s *Step, ahead bool) error {
	h, width := r.Header, r.Header.width()
	s.Picks, s.Guesses = s.Picks[:0], s.Guesses[:0]
	picks := s.Tokens * len(h.Layers) * h.TopK
	all := picks
	if ahead {
		all += h.guesses() * h.TopK
	}
	var held uint64
	have := 0
	for i := range all {
		for ; have < width; have += 8 {
			held |= uint64(data[0]) << have
			data = data[1:]
		}
		p := held & (1<<width - 1)
		held >>= width
		have -= width
		if p >= uint64(h.Experts) {
			return fmt.Errorf("have expert %d, want 0 to %d", p, h.Experts-1)
		}
		if i < picks {
			s.Picks = append(s.Picks, uint16(p))
		} else {
			s.Guesses = append(s.Guesses, uint16(p))
		}
	}
	if held != 0 || len(data) != 0 {
		return errors.New("have more than the picks, want zeros behind them")
	}
	return nil
}

// Trace is a whole trace in memory.
type Trace struct {
	Header *Header
	Steps  []Step
	Cut    bool // the file ends within a step, which is left out
}

// maxPicks bounds what Read holds: 512 MiB. A step takes as much as so many picks, beside its own.
const (
	maxPicks  = 1 << 28
	stepPicks = 64
)

// Read reads a whole trace. A file that ends within a step gives what came before.
func Read(in io.Reader) (*Trace, error) {
	r, err := NewReader(in)
	if err != nil {
		return nil, err
	}
	t := &Trace{Header: r.Header}
	for picks := 0; ; {
		var s Step
		switch err := r.Next(&s); {
		case errors.Is(err, io.EOF):
			return t, nil
		case errors.Is(err, ErrCut):
			t.Cut = true
			return t, nil
		case err != nil:
			return nil, err
		}
		if picks += len(s.Picks) + len(s.Guesses) + stepPicks; picks > maxPicks {
			return nil, fmt.Errorf("routing: have more than %d picks in %d steps, want a shorter trace", picks-stepPicks*(len(t.Steps)+1), len(t.Steps))
		}
		t.Steps = append(t.Steps, s)
	}
}
