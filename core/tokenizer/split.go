package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// words splits as the patterns of Llama 3 and Qwen 2 and 3.5 do:
//
//	'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]
//	|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
//	|\s*[\r\n]+|\s+(?!\S)|\s+
//
// by hand, because Go's regexp has no lookahead.
type words struct {
	// digits is how many numbers make one piece at most: 3 in \p{N}{1,3}.
	digits int
	// marks counts combining marks as letters: [\p{L}\p{M}]+ for \p{L}+, and
	// [^\s\p{L}\p{M}\p{N}]+ for the symbols.
	marks bool
}

// next gives the length of the first match at the start of s, which is not
// empty. Each if is one alternative of the pattern, in its order.
func (w words) next(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	word := letter
	if w.marks {
		word |= mark
	}
	r, size := utf8.DecodeRuneInString(s)
	c := classOf(r)
	if c&word != 0 {
		return size + run(s[size:], word)
	}
	if c&(number|newline) == 0 {
		if n := run(s[size:], word); n > 0 {
			return size + n
		}
	}
	if c&number != 0 {
		return atMost(s, number, w.digits)
	}
	start := 0
	if r == ' ' {
		start = 1
	}
	if n := runOutside(s[start:], space|number|word); n > 0 {
		end := start + n
		return end + run(s[end:], newline)
	}
	return whitespace(s)
}

// contraction matches the English endings, of either case.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 { // ASCII to lower case
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2]|0x20 == 'l' {
			return 3
		}
	}
	return 0
}

// whitespace matches \s*[\r\n]+|\s+(?!\S)|\s+: up to the last newline of the
// run; else all of it at the end of the text; else all but the last character,
// which goes to the word that follows, unless it is the only one.
func whitespace(s string) int {
	end, last, afterNewline := len(s), 0, 0
	for i, r := range s {
		c := classOf(r)
		if c&space == 0 {
			end = i
			break
		}
		last = i
		if c&newline != 0 {
			afterNewline = i + 1
		}
	}
	switch {
	case afterNewline > 0:
		return afterNewline
	case end < len(s) && last > 0:
		return last
	}
	return end
}

// lines splits as gemma4 does: [^\n]+|[\n]+.
func lines(s string) int {
	if s[0] == '\n' {
		return len(s) - len(strings.TrimLeft(s, "\n"))
	}
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n
	}
	return len(s)
}

// class is a set of the properties that the patterns ask for.
type class uint8

const (
	letter  class = 1 << iota // \p{L}
	mark                      // \p{M}
	number                    // \p{N}
	space                     // \s, Unicode's White_Space
	newline                   // [\r\n]
)

// classOf is by Unicode 15.1, which is llama.cpp's: Go's tables, which are of
// 15.0, and the only letters that 15.1 adds (CJK extension I).
func classOf(r rune) class {
	if r < utf8.RuneSelf {
		return ascii(r)
	}
	switch {
	case unicode.IsLetter(r) || 0x2EBF0 <= r && r <= 0x2EE5D:
		return letter
	case unicode.IsMark(r):
		return mark
	case unicode.IsNumber(r):
		return number
	case unicode.Is(unicode.White_Space, r):
		return space
	}
	return 0
}

func ascii(r rune) class {
	switch {
	case 'a' <= r|0x20 && r|0x20 <= 'z':
		return letter
	case '0' <= r && r <= '9':
		return number
	case r == '\n' || r == '\r':
		return space | newline
	case r == ' ' || r == '\t' || r == '\v' || r == '\f':
		return space
	}
	return 0
}

// run is the length of the longest start of s that has only these classes.
func run(s string, of class) int {
	for i, r := range s {
		if classOf(r)&of == 0 {
			return i
		}
	}
	return len(s)
}

// runOutside is the length of the longest start of s without these classes.
func runOutside(s string, of class) int {
	for i, r := range s {
		if classOf(r)&of != 0 {
			return i
		}
	}
	return len(s)
}

// atMost is run for n characters at most.
func atMost(s string, of class, n int) int {
	for i, r := range s {
		if n == 0 || classOf(r)&of == 0 {
			return i
		}
		n--
	}
	return len(s)
}
