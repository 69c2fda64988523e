package jinja

import (
	"strings"
	"unicode/utf8"
)

// A string of a template is the template's own text, text of a message, or both.
// Message text is written so that it can't be taken for anything else, whatever
// is done with the string: each of its characters is five bytes, 0xFF and four
// of 0x80 to 0xBF with six bits each. No UTF-8 has a byte 0xFF, and every
// operation of this package works on whole characters, so the mark stays with
// its character through slices, splits and joins. Comparisons and searches look
// at the characters alone.

// fromMessage is set in a rune of message text.
const fromMessage rune = 1 << 30

const (
	markByte   = 0xFF
	markedSize = 5
)

// mark is a text as message text.
func mark(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 4*utf8.RuneCountInString(s))
	for _, r := range s {
		writeRune(&b, r|fromMessage)
	}
	return b.String()
}

func writeRune(b *strings.Builder, r rune) {
	if r&fromMessage == 0 {
		b.WriteRune(r)
		return
	}
	r &^= fromMessage
	b.Write([]byte{markByte, 0x80 | byte(r>>18), 0x80 | byte(r>>12&63), 0x80 | byte(r>>6&63), 0x80 | byte(r&63)})
}

func hasMarks(s string) bool { return strings.IndexByte(s, markByte) >= 0 }

// decode gives the first character of s, which is not empty, and its size.
func decode(s string) (rune, int) {
	if s[0] == markByte && len(s) >= markedSize {
		return rune(s[1]&63)<<18 | rune(s[2]&63)<<12 | rune(s[3]&63)<<6 | rune(s[4]&63) | fromMessage, markedSize
	}
	return utf8.DecodeRuneInString(s)
}

// runes are the characters of a string, with their marks.
func runes(s string) []rune {
	if !hasMarks(s) {
		return []rune(s)
	}
	out := make([]rune, 0, len(s)/markedSize+1)
	for s != "" {
		r, n := decode(s)
		out = append(out, r)
		s = s[n:]
	}
	return out
}

func fromRunes(rs []rune) string {
	var b strings.Builder
	b.Grow(len(rs))
	for _, r := range rs {
		writeRune(&b, r)
	}
	return b.String()
}

// length counts characters.
func length(s string) int {
	if !hasMarks(s) {
		return utf8.RuneCountInString(s)
	}
	n := 0
	for s != "" {
		_, size := decode(s)
		s = s[size:]
		n++
	}
	return n
}

// plain is a string without its marks.
func plain(s string) string {
	if !hasMarks(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) / 2)
	for s != "" {
		r, n := decode(s)
		b.WriteRune(r &^ fromMessage)
		s = s[n:]
	}
	return b.String()
}

// occurrences are where old stands in s, as offsets of s, from left to right
// without overlaps, at most limit (less than 0: all). old is not empty.
func occurrences(s, old string, limit int) (at [][2]int) {
	text, want := plain(s), plain(old)
	from, in := 0, 0 // the same place in text and in s
	for limit < 0 || len(at) < limit {
		i := strings.Index(text[from:], want)
		if i < 0 {
			return at
		}
		start := in + markedLen(s[in:], i)
		end := start + markedLen(s[start:], len(want))
		at = append(at, [2]int{start, end})
		from, in = from+i+len(want), end
	}
	return at
}

// markedLen is the length of the start of s that is n bytes without its marks.
func markedLen(s string, n int) int {
	size := 0
	for n > 0 && size < len(s) {
		r, w := decode(s[size:])
		size += w
		n -= utf8.RuneLen(r &^ fromMessage)
	}
	return size
}

// Piece is a part of a rendered text.
type Piece struct {
	Text    string
	Message bool // text of the request, not the template's own
}

// pieces cuts a string where its marks begin and end.
func pieces(s string) (out []Piece) {
	for s != "" {
		marked := s[0] == markByte
		n := 0
		for n < len(s) && (s[n] == markByte) == marked {
			if !marked {
				if n = strings.IndexByte(s, markByte); n < 0 {
					n = len(s)
				}
				break
			}
			n += markedSize
		}
		out = append(out, Piece{Text: plain(s[:n]), Message: marked})
		s = s[n:]
	}
	return out
}
