package tokenizer

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// atoms are the tokens from which merging starts.
type atoms struct {
	byByte [256]int32 // a byte in GPT-2's form, or <0xXX>; or none
	ascii  [128]int32 // without byteLevel: one-character tokens, ▁ at the space
}

func newAtoms(ids map[string]int32, byteLevel bool) atoms {
	var a atoms
	for b := range a.byByte {
		text := string(byteRunes[b])
		if !byteLevel {
			text = fmt.Sprintf("<0x%02X>", b)
		}
		a.byByte[b] = find(ids, text)
	}
	for r := range a.ascii {
		a.ascii[r] = find(ids, string(rune(r)))
	}
	a.ascii[' '] = find(ids, underscore)
	return a
}

// underscore is how character vocabularies write a space: U+2581.
const underscore = "▁"

func find(ids map[string]int32, text string) int32 {
	if id, ok := ids[text]; ok {
		return id
	}
	return none
}

// encoder encodes texts without special tokens.
type encoder struct {
	*Tokenizer
	plain bool // see Options.Plain
	merger
	scratch []byte
}

func newEncoder(ctx context.Context, t *Tokenizer, plain bool) *encoder {
	e := &encoder{Tokenizer: t, plain: plain}
	e.merger.merges, e.until.ctx = &t.merges, ctx
	if plain {
		e.allowed = t.isSpelling
	}
	return e
}

// isSpelling says whether text that must stay text may become this token: not
// control tokens, and user-defined ones only if they are whitespace, such as
// gemma4's runs of newlines: any text has those.
func (t *Tokenizer) isSpelling(id int32) bool {
	switch t.types[id] {
	case Control, Unknown:
		return false
	case UserDefined:
		return strings.TrimSpace(t.tokens[id]) == ""
	}
	return true
}

// text appends the ids of a text, pre-token by pre-token, until the context ends: then those that it appends are any.
func (e *encoder) text(dst []int32, s string) []int32 {
	for s != "" && !e.over() {
		n := e.rules.split(s)
		dst = e.pretoken(dst, s[:n])
		s = s[n:]
	}
	return dst
}

// fragments appends the ids of a text in fragments.
func (e *encoder) fragments(dst []int32, parts []fragment) ([]int32, error) {
	for _, f := range parts {
		if f.id != none {
			dst = append(dst, f.id)
			continue
		}
		dst = e.text(dst, f.text)
	}
	if e.err == nil {
		e.err = e.ctx.Err()
	}
	if e.err != nil {
		return nil, e.err
	}
	return dst, nil
}

func (e *encoder) pretoken(dst []int32, s string) []int32 {
	if e.rules.whole(s) {
		if id := e.wholeToken(s); id != none {
			return append(dst, id)
		}
	}
	e.symbols = e.symbols[:0]
	if e.rules.byteLevel {
		for i := 0; i < len(s) && !e.over(); i++ {
			e.push(e.atom(e.atoms.byByte[s[i]], rune(s[i])))
		}
	} else {
		for _, r := range s {
			if e.over() {
				break
			}
			e.push(e.atom(e.character(r), r))
		}
	}
	e.merge()
	if e.err != nil {
		return dst
	}
	for _, sym := range e.symbols {
		switch {
		case sym.id == gone:
		case sym.id >= 0:
			dst = append(dst, sym.id)
		default:
			dst = e.missing(dst, ^sym.id)
		}
	}
	return dst
}

// wholeToken finds the token that a pre-token is, or none.
func (e *encoder) wholeToken(s string) int32 {
	if e.rules.byteLevel {
		e.scratch = appendByteLevel(e.scratch[:0], s)
	} else {
		e.scratch = append(e.scratch[:0], s...)
	}
	id, ok := e.ids[string(e.scratch)]
	if !ok || e.plain && !e.isSpelling(id) {
		return none
	}
	return id
}

// character finds the token of one character, or none.
func (e *encoder) character(r rune) int32 {
	if r < utf8.RuneSelf {
		return e.atoms.ascii[r]
	}
	e.scratch = utf8.AppendRune(e.scratch[:0], r)
	if id, ok := e.ids[string(e.scratch)]; ok {
		return id
	}
	return none
}

// atom is the symbol of a single byte or character c that has the token id,
// or none.
func (e *encoder) atom(id, c int32) int32 {
	if id == none || e.plain && e.types[id].hidden() {
		return ^c
	}
	return id
}

// missing appends what stands for a character or byte that is no token: its
// bytes; else the unknown token; else nothing, as in llama.cpp.
func (e *encoder) missing(dst []int32, c rune) []int32 {
	n := len(dst)
	if !e.rules.byteLevel {
		if c == ' ' {
			c = '▁' // what llama.cpp has made of it by now
		}
		e.scratch = utf8.AppendRune(e.scratch[:0], c)
		for _, b := range e.scratch {
			if id := e.atom(e.atoms.byByte[b], 0); id >= 0 {
				dst = append(dst, id)
			}
		}
	}
	if len(dst) == n && e.unknown != none && !e.plain {
		dst = append(dst, e.unknown)
	}
	return dst
}
