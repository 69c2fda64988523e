package program

import (
	"errors"
	"fmt"
)

// Session is one conversation's memory: its KV, RING and STATE buffers and how
// far it has come.
type Session struct {
	in      *Interpreter
	buffers []*Memory // by buffer; nil for scratch
	pos     uint32
	broken  bool
}

// NewSession is a session at position 0.
func (in *Interpreter) NewSession() *Session {
	s := &Session{in: in}
	s.Reset()
	return s
}

// Reset puts the session back to position 0.
func (s *Session) Reset() {
	s.pos, s.broken, s.buffers = 0, false, make([]*Memory, len(s.in.prog.Buffers))
	for i, b := range s.in.prog.Buffers {
		if b.Class != Class_SCRATCH {
			s.buffers[i] = s.in.memory(b)
		}
	}
}

// Pos is the number of tokens that the session holds.
func (s *Session) Pos() int { return int(s.pos) }

// errBroken says that a step failed half way.
var errBroken = errors.New("program: an earlier step of this session failed: reset it")

// Step feeds tokens at the session's end, at most a chunk of them, and returns
// the logits of the rows that outs lists, each of the model's vocab. A row is a
// token's index in tokens. After an error the session must be reset.
func (s *Session) Step(tokens, outs []uint32) ([][]float64, error) {
	in := s.in
	if s.broken {
		return nil, errBroken
	}
	switch t := uint32(len(tokens)); {
	case len(tokens) == 0 || len(tokens) > int(in.o.Chunk):
		return nil, fmt.Errorf("program: step: have %d tokens, want 1 to %d", len(tokens), in.o.Chunk)
	case len(outs) > int(in.o.Outs):
		return nil, fmt.Errorf("program: step: have %d output rows, want at most %d", len(outs), in.o.Outs)
	case t > in.o.Context-s.pos:
		return nil, fmt.Errorf("program: step: have %d tokens at position %d, want them within the context of %d", t, s.pos, in.o.Context)
	}
	for _, row := range outs {
		if int(row) >= len(tokens) {
			return nil, fmt.Errorf("program: step: have output row %d, want below %d", row, len(tokens))
		}
	}
	s.broken = true
	t := uint32(len(tokens))
	w := &walk{Interpreter: in, session: s, step: StepUniform{
		T: t, Pos0: s.pos, S: s.pos + t, O: uint32(len(outs)), Chunk: in.o.Chunk,
	}}
	if err := w.begin(tokens, outs); err != nil {
		return nil, err
	}
	if err := w.sections(); err != nil {
		return nil, err
	}
	s.broken = false
	s.pos += t
	logits, v := make([][]float64, len(outs)), int(in.plan.Model.Vocab)
	for i := range logits {
		logits[i] = append([]float64(nil), in.tables[Table_LOGITS].Values[i*v:(i+1)*v]...)
	}
	return logits, nil
}

// walk is one step on its way through the program.
type walk struct {
	*Interpreter
	session *Session
	step    StepUniform
	section *Section
	wave    int
}

// begin does what the host does before the first dispatch: embeddings, rope
// rows, the rows whose logits are wanted.
func (w *walk) begin(tokens, outs []uint32) error {
	for _, m := range w.scratch {
		if m != nil {
			m.poison()
		}
	}
	for _, m := range w.tables[Table_PICKS:] {
		m.poison()
	}
	scale, x := float64(w.plan.Embed.Scale), w.scratch[w.prog.Input].Values
	for t, token := range tokens {
		row, err := w.src.Embedding(token)
		if err != nil {
			return fmt.Errorf("program: embedding of token %d: %w", token, err)
		}
		if len(row) != int(w.plan.Model.Hidden) {
			return fmt.Errorf("program: embedding of token %d: have %d values, want %d", token, len(row), w.plan.Model.Hidden)
		}
		for i, v := range row {
			x[t*len(row)+i] = roundF32(v * scale)
		}
	}
	for i, r := range w.plan.Ropes {
		n := 2 * len(w.freqs[i])
		w.ropes[i].poison()
		for t := range tokens {
			RopeRow(w.ropes[i].Values[t*n:(t+1)*n], r, w.freqs[i], w.step.Pos0+uint32(t))
		}
	}
	for i, row := range outs {
		w.tables[Table_OUTS].Values[i] = float64(row)
	}
	return nil
}

// sections runs each section's variant for this many rows.
func (w *walk) sections() error {
	record := -1 // of the current layer
	for _, s := range w.prog.Sections {
		w.section, w.wave = s, 0
		var err error
		switch v := s.Pick(w.step.T); s.Kind {
		case Kind_TRUNK:
			record++
			w.tables[Table_PICKS].poison()
			if err = w.run(v, nil); err == nil {
				err = w.check(Table_PICKS)
			}
		case Kind_EXPERTS:
			err = w.experts(v, record)
		case Kind_COMBINE:
			err = w.run(v, nil)
		case Kind_GUESS:
			w.tables[Table_GUESSES].poison()
			if err = w.run(v, nil); err == nil {
				err = w.check(Table_GUESSES)
			}
			w.forget(v)
		case Kind_HEAD:
			if w.step.O > 0 {
				err = w.run(s.Pick(w.step.O), nil)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forget poisons what a guess wrote besides GUESSES: the host may leave a guess
// out, so a program that relies on it shows.
func (w *walk) forget(v *Variant) {
	for _, d := range v.Dispatches {
		for i, b := range d.Bindings {
			at, ok := b.At.(*Binding_Buffer)
			if ok && w.prog.Kernels[d.Kernel].Slots[i].Access == Access_READ_WRITE {
				w.scratch[at.Buffer].poison() // a guess writes no other class
			}
		}
	}
}

// check checks that each row of a table of picks holds different experts.
func (w *walk) check(t Table) error {
	k, experts := int(w.plan.Model.TopK), int(w.plan.Model.Experts)
	for row := range int(w.step.T) {
		seen := map[float64]bool{}
		for pick, v := range w.tables[t].Values[row*k : (row+1)*k] {
			if !(v >= 0 && v < float64(experts)) || v != float64(int(v)) || seen[v] {
				return fmt.Errorf("program: %v of layer %d: row %d, pick %d: have expert %v, want ids below %d, each once",
					t, w.section.Layer, row, pick, v, experts)
			}
			seen[v] = true
		}
	}
	return nil
}
