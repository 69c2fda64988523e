package chat

import (
	"strings"
	"unicode"

	"github.com/sluicehost/sluice/core/tokenizer"
	"github.com/sluicehost/sluice/sdk/program"
)

// Part is a part of an answer.
type Part struct {
	Text    string
	Thought bool // reasoning, which the answer proper comes after
}

// Split tells reasoning from answer in a text that comes in pieces, wherever
// they are divided. The delimiters, the preamble of a thought and the whitespace
// around a thought are in no part.
type Split struct {
	open, end, preamble string

	thought bool
	fresh   bool   // nothing of the thought, or of what follows one, has come
	begun   bool   // the thought's preamble may still come
	held    string // may be the start of a delimiter, or whitespace that nothing follows
}

// NewSplit begins an answer of a family; thinking says that the prompt has
// opened a thought.
func NewSplit(facts *program.Chat, thinking bool) *Split {
	s := &Split{open: facts.GetThinkOpen(), end: facts.GetThinkClose(), preamble: facts.GetThinkPreamble()}
	if thinking {
		s.enter()
	}
	return s
}

func (s *Split) enter() { s.thought, s.fresh, s.begun = true, true, s.preamble != "" }

// Thinking says whether what comes next is reasoning, as far as is known.
func (s *Split) Thinking() bool { return s.thought }

// Push takes text and gives the parts that it completes.
func (s *Split) Push(text string) []Part { return s.take(text, false) }

// Flush gives what was held back: the answer has ended.
func (s *Split) Flush() []Part { return s.take("", true) }

func (s *Split) take(text string, last bool) (parts []Part) {
	s.held += text
	for {
		if s.thought && !s.skipPreamble(last) {
			return parts
		}
		if s.fresh {
			s.held = strings.TrimLeftFunc(s.held, unicode.IsSpace)
			s.fresh = s.held == ""
		}
		mark := s.open
		if s.thought {
			mark = s.end
		}
		i := -1
		if mark != "" {
			i = strings.Index(s.held, mark)
		}
		if i < 0 {
			n := len(s.held)
			if !last {
				n -= overlap(s.held, mark)
			}
			if s.thought {
				n = len(strings.TrimRightFunc(s.held[:n], unicode.IsSpace))
			}
			parts = add(parts, s.held[:n], s.thought)
			if s.held = s.held[n:]; last {
				s.held = ""
			}
			return parts
		}
		inside := s.held[:i]
		if s.thought {
			inside = strings.TrimRightFunc(inside, unicode.IsSpace)
		}
		parts = add(parts, inside, s.thought)
		s.held = s.held[i+len(mark):]
		if s.thought {
			s.thought, s.fresh = false, true
		} else {
			s.enter()
		}
	}
}

// skipPreamble drops the preamble at the start of a thought; it is false while
// more text is needed to tell.
func (s *Split) skipPreamble(last bool) bool {
	if !s.begun {
		return true
	}
	if !last && len(s.held) < len(s.preamble) && strings.HasPrefix(s.preamble, s.held) {
		return false
	}
	s.begun = false
	s.held = strings.TrimPrefix(s.held, s.preamble)
	return true
}

// overlap is how much of the end of s is a start of mark, but not all of it.
func overlap(s, mark string) int {
	for n := min(len(s), len(mark)-1); n > 0; n-- {
		if strings.HasSuffix(s, mark[:n]) {
			return n
		}
	}
	return 0
}

func add(parts []Part, text string, thought bool) []Part {
	if text == "" {
		return parts
	}
	return append(parts, Part{text, thought})
}

// Reader turns the tokens of an answer into parts. Control tokens are not seen,
// but for those that open and close a thought.
type Reader struct {
	split  *Split
	stream *tokenizer.Stream
	tok    *tokenizer.Tokenizer
	marks  map[int32]bool
}

// Read begins an answer to a prompt.
func (f *Format) Read(p Prompt) *Reader {
	r := &Reader{NewSplit(f.facts, p.Thinking), f.tok.Stream(false), f.tok, map[int32]bool{}}
	for _, piece := range []string{f.facts.GetThinkOpen(), f.facts.GetThinkClose()} {
		if id, ok := f.tok.ID(piece); ok {
			r.marks[id] = true
		}
	}
	return r
}

// Push takes a token and gives the parts that it completes.
func (r *Reader) Push(id int32) []Part {
	if r.marks[id] {
		return r.split.Push(r.stream.Flush() + string(r.tok.Piece(id)))
	}
	return r.split.Push(r.stream.Push(id))
}

// Flush gives what was held back: the answer has ended.
func (r *Reader) Flush() []Part {
	return append(r.split.Push(r.stream.Flush()), r.split.Flush()...)
}
