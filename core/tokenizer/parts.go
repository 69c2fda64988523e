package tokenizer

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

// Part is a part of a text of which some is trusted and some is not.
type Part struct {
	Text  string
	Plain bool // only text, such as a chat message; see Options.Plain
}

// EncodeParts gives the ids of a text that is made of parts, without a BOS. A
// special token of any type is matched only where all of it lies in parts that
// are not Plain and follow one another; but for user-defined ones of whitespace,
// which are spelling. Apart from that the parts are one text: it is split and
// merged across their borders, so that where there are no special tokens in
// Plain parts the ids are those of Encode with ParseSpecial.
func (t *Tokenizer) EncodeParts(parts []Part) []int32 {
	ids, _ := t.EncodePartsContext(context.Background(), parts) // which never ends
	return ids
}

// EncodePartsContext is EncodeParts until ctx ends; then it soon gives ctx's error.
func (t *Tokenizer) EncodePartsContext(ctx context.Context, parts []Part) ([]int32, error) {
	var b strings.Builder
	var plain []span // in order, apart from one another
	for _, p := range parts {
		text := p.Text
		if !utf8.ValidString(text) {
			text = string([]rune(text))
		}
		from := b.Len()
		b.WriteString(text)
		switch n := len(plain); {
		case !p.Plain || text == "":
		case n > 0 && plain[n-1].to == from:
			plain[n-1].to = b.Len()
		default:
			plain = append(plain, span{from, b.Len()})
		}
	}
	trusted := func(from, to int) bool {
		i, _ := slices.BinarySearchFunc(plain, from, func(s span, at int) int { return s.to - 1 - at })
		return i == len(plain) || plain[i].from >= to
	}
	e := newEncoder(ctx, t, true)
	return e.fragments(nil, t.marked.cutAt(&e.until, b.String(), func(s *special) func(from, to int) bool {
		if t.isSpelling(s.id) {
			return anywhere
		}
		return trusted
	}))
}

// span is a range of bytes of a text.
type span struct{ from, to int }
