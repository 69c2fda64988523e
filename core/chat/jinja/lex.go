package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a word of the language inside a tag.
type token struct {
	kind tokenKind
	text string // of a name or an operator; the value of a string
	line int
}

type tokenKind uint8

const (
	endToken tokenKind = iota
	nameToken
	stringToken
	intToken
	floatToken
	operatorToken
)

func (t token) String() string {
	switch t.kind {
	case endToken:
		return "the end of the tag"
	case stringToken:
		return strconv.Quote(t.text)
	}
	return t.text
}

// operators of two characters come before those of one.
var operators = []string{
	"**", "//", "==", "!=", "<=", ">=",
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", "<", ">", "=", ".", ":", "|", ",", ";",
}

var closing = map[string]string{"(": ")", "[": "]", "{": "}"}

// lexTag reads the tokens of a tag whose inside begins at from, up to its end
// ("%}" or "}}"), and gives the offset after the end and its sign: '-', '+' or
// 0. As in Jinja, an end inside of brackets or strings is none.
func (s *scanner) lexTag(from int, end string) (tokens []token, next int, sign byte, err error) {
	src, open := s.src, []string(nil)
	for i := from; ; {
		for i < len(src) && isBlank(src[i]) {
			i++
		}
		if i >= len(src) {
			return nil, 0, 0, s.errorf(from, "unexpected end of template, want %s", end)
		}
		if len(open) == 0 {
			if strings.HasPrefix(src[i:], end) {
				return tokens, i + len(end), 0, nil
			}
			if (src[i] == '-' || src[i] == '+' && end == "%}") && strings.HasPrefix(src[i+1:], end) {
				return tokens, i + 1 + len(end), src[i], nil
			}
		}
		t, n, err := s.lexToken(i)
		if err != nil {
			return nil, 0, 0, err
		}
		if t.kind == operatorToken {
			if c, ok := closing[t.text]; ok {
				if open = append(open, c); len(open) > maxNesting {
					return nil, 0, 0, s.errorf(i, "have more than %d brackets inside one another", maxNesting)
				}
			} else if t.text == ")" || t.text == "]" || t.text == "}" {
				if len(open) == 0 || open[len(open)-1] != t.text {
					return nil, 0, 0, s.errorf(i, "unexpected %q", t.text)
				}
				open = open[:len(open)-1]
			}
		}
		tokens = append(tokens, t)
		i += n
	}
}

func isBlank(b byte) bool {
	return b == ' ' || b == '\t' || b == '\n' || b == '\r' || b == '\v' || b == '\f'
}

// lexToken reads one token at an offset.
func (s *scanner) lexToken(i int) (token, int, error) {
	rest, line := s.src[i:], s.line(i)
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case r == '\'' || r == '"':
		value, n, err := unquote(rest)
		if err != nil {
			return token{}, 0, s.errorf(i, "%w", err)
		}
		return token{stringToken, value, line}, n, nil
	case '0' <= r && r <= '9':
		kind, n := number(rest)
		return token{kind, strings.ReplaceAll(rest[:n], "_", ""), line}, n, nil
	case r == '_' || unicode.IsLetter(r):
		n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(rest)
		}
		return token{nameToken, rest[:n], line}, n, nil
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			return token{operatorToken, op, line}, len(op), nil
		}
	}
	return token{}, 0, s.errorf(i, "unexpected character %q", r)
}

// number gives the kind and the length of a number.
func number(s string) (tokenKind, int) {
	if len(s) > 2 && s[0] == '0' && strings.ContainsRune("xXoObB", rune(s[1])) {
		n := 2
		for n < len(s) && (isHex(s[n]) || s[n] == '_') {
			n++
		}
		return intToken, n
	}
	n, kind := digits(s, 0), intToken
	if n+1 < len(s) && s[n] == '.' && isDigit(s[n+1]) {
		n, kind = digits(s, n+1), floatToken
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		e := n + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if e < len(s) && isDigit(s[e]) {
			n, kind = digits(s, e), floatToken
		}
	}
	return kind, n
}

func digits(s string, n int) int {
	for n < len(s) && (isDigit(s[n]) || s[n] == '_') {
		n++
	}
	return n
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isHex(b byte) bool { return isDigit(b) || 'a' <= b|0x20 && b|0x20 <= 'f' }

// escapes are Python's one-letter ones.
var escapes = map[byte]string{
	'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '\n': "",
}

// unquote reads a string literal of Python and gives its length in the source.
func unquote(s string) (value string, n int, err error) {
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); {
		switch c := s[i]; {
		case c == quote:
			return b.String(), i + 1, nil
		case c != '\\':
			b.WriteByte(c)
			i++
		default:
			size, text := unescape(s[i:])
			if size == 0 {
				return "", 0, fmt.Errorf("have a string that ends in a backslash")
			}
			b.WriteString(text)
			i += size
		}
	}
	return "", 0, fmt.Errorf("have a string without its closing %c", quote)
}

// unescape reads what begins with a backslash. An unknown escape stands for
// itself, as in Python.
func unescape(s string) (size int, text string) {
	if len(s) < 2 {
		return 0, ""
	}
	c := s[1]
	if e, ok := escapes[c]; ok {
		return 2, e
	}
	width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if width > 0 && len(s) >= 2+width {
		if r, err := strconv.ParseUint(s[2:2+width], 16, 32); err == nil {
			return 2 + width, string(rune(r))
		}
	}
	if '0' <= c && c <= '7' {
		n := 1
		for n < 4 && n < len(s) && '0' <= s[n] && s[n] <= '7' {
			n++
		}
		r, _ := strconv.ParseUint(s[1:n], 8, 32)
		return n, string(rune(r))
	}
	_, w := utf8.DecodeRuneInString(s[1:])
	return 1 + w, s[:1+w]
}
