package tokenizer

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// replacement stands for bytes that are no UTF-8 and for ids that are no token.
const replacement = string(utf8.RuneError)

// Decode gives the text of tokens. Control and unknown tokens have none unless
// special is set. Invalid UTF-8 becomes U+FFFD, one for each maximal start of
// a character (the practice of Unicode and of Python's errors="replace"); so
// does an id outside the vocabulary. Apart from that decoding undoes encoding,
// but for gemma4's ▁, which is a space.
func (t *Tokenizer) Decode(ids []int32, special bool) string {
	s := t.Stream(special)
	return s.Push(ids...) + s.Flush()
}

// Piece is the bytes of one token, whatever its type: not always whole
// characters. It is nil for an id outside the vocabulary.
func (t *Tokenizer) Piece(id int32) []byte {
	if !t.has(id) {
		return nil
	}
	return t.appendPiece(nil, id)
}

// appendPiece appends the bytes of a token of the vocabulary. Special tokens
// are written in the file as they are, the others in the vocabulary's form.
func (t *Tokenizer) appendPiece(dst []byte, id int32) []byte {
	text := t.tokens[id]
	switch t.types[id] {
	case Control, Unknown, UserDefined:
		return append(dst, text...)
	case Byte:
		if b, ok := parseByte(text); ok {
			return append(dst, b)
		}
	}
	if t.rules.byteLevel {
		return appendBytes(dst, text)
	}
	return append(dst, strings.ReplaceAll(text, underscore, " ")...)
}

// parseByte reads <0xXX>.
func parseByte(text string) (byte, bool) {
	if len(text) != 6 || text[:3] != "<0x" || text[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(text[3:5], 16, 8)
	return byte(b), err == nil
}

// Stream decodes tokens as they come. What it has given out is always whole
// characters: bytes that may be the start of one wait for the tokens that
// bring the rest. One goroutine may use it at a time.
type Stream struct {
	t       *Tokenizer
	special bool
	rest    []byte // at most 3 bytes between calls
}

// Stream starts a text; special renders control tokens, too.
func (t *Tokenizer) Stream(special bool) *Stream { return &Stream{t: t, special: special} }

// Push takes tokens and gives the text that they complete. All that Push and
// Flush give is together what Decode gives, wherever the tokens are divided.
func (s *Stream) Push(ids ...int32) string {
	for _, id := range ids {
		switch {
		case !s.t.has(id):
			s.rest = append(s.rest, replacement...)
		case s.special || !s.t.types[id].hidden():
			s.rest = s.t.appendPiece(s.rest, id)
		}
	}
	return s.take(false)
}

// Flush gives what still waits, as U+FFFD: the start of a character that never
// came. The stream is as new afterwards.
func (s *Stream) Flush() string { return s.take(true) }

// take removes all whole characters from rest, and at the end what remains.
func (s *Stream) take(end bool) string {
	var out strings.Builder
	b := s.rest
	for len(b) > 0 {
		n := validLen(b)
		out.Write(b[:n])
		if b = b[n:]; len(b) == 0 || !end && !utf8.FullRune(b) {
			break
		}
		out.WriteString(replacement)
		b = b[illFormed(b):]
	}
	s.rest = append(s.rest[:0], b...)
	return out.String()
}

// validLen is the length of the longest start of b that is valid UTF-8.
func validLen(b []byte) int {
	if utf8.Valid(b) {
		return len(b)
	}
	n := 0
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return n
}

// illFormed is the length of what one U+FFFD replaces at the start of b, which
// is not valid there: the longest start that might have become a character, or
// one byte. FullRune is false of just such starts.
func illFormed(b []byte) int {
	n := 1
	for n < len(b) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}
