package jinja

import (
	"fmt"
	"strings"
	"unicode"
)

// part is a piece of a template: text, an output tag or a statement tag.
// Comments are gone and the whitespace is cut.
type part struct {
	kind   partKind
	text   string
	tokens []token
	line   int
}

type partKind uint8

const (
	textPart partKind = iota
	outputPart
	statementPart
)

// scanner cuts a template into parts, as Jinja's lexer does with trim_blocks
// and lstrip_blocks: a newline after a statement or comment goes, and so do the
// blanks before it on its line.
type scanner struct {
	src       string
	parts     []part
	lineAt    int // an offset whose line is known
	lineCount int
	lineStart bool // what came before ended a line
}

// scan normalizes newlines and drops one at the end, as Jinja does.
func scan(source string) ([]part, error) {
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	s := &scanner{src: strings.TrimSuffix(source, "\n"), lineStart: true, lineCount: 1}
	for i := 0; i < len(s.src); {
		next, err := s.tag(i)
		if err != nil {
			return nil, err
		}
		i = next
	}
	return s.parts, nil
}

func (s *scanner) errorf(at int, format string, args ...any) error {
	return fmt.Errorf("line %d: %w", s.line(at), fmt.Errorf(format, args...))
}

// line is the line of an offset.
func (s *scanner) line(at int) int {
	if at < s.lineAt {
		s.lineAt, s.lineCount = 0, 1
	}
	s.lineCount += strings.Count(s.src[s.lineAt:at], "\n")
	s.lineAt = at
	return s.lineCount
}

// tag takes the text from an offset up to the next tag, and the tag.
func (s *scanner) tag(from int) (next int, err error) {
	at := from
	for {
		i := strings.IndexByte(s.src[at:], '{')
		if i < 0 || at+i+1 >= len(s.src) {
			s.addText(s.src[from:])
			return len(s.src), nil
		}
		at += i
		if c := s.src[at+1]; c == '{' || c == '%' || c == '#' {
			break
		}
		at++
	}
	kind := s.src[at+1]
	inside := at + 2
	var sign byte
	if inside < len(s.src) && (s.src[inside] == '-' || s.src[inside] == '+' && kind != '{') {
		sign = s.src[inside]
		inside++
	}
	s.addText(s.before(s.src[from:at], sign, kind != '{'))
	switch kind {
	case '#':
		return s.comment(at, inside)
	case '{':
		return s.output(inside)
	}
	return s.statement(inside)
}

// before is the text before a tag with this sign, less its last whitespace.
func (s *scanner) before(text string, sign byte, block bool) string {
	if sign == '-' {
		return strings.TrimRightFunc(text, unicode.IsSpace)
	}
	if sign == '+' || !block {
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || s.lineStart) && strings.TrimSpace(text[line:]) == "" {
		return text[:line]
	}
	return text
}

// after is the offset behind the whitespace that goes with the end of a tag.
func (s *scanner) after(end int, sign byte, block bool) int {
	next := end
	switch {
	case sign == '-':
		next = len(s.src) - len(strings.TrimLeftFunc(s.src[end:], unicode.IsSpace))
	case block && sign == 0 && strings.HasPrefix(s.src[end:], "\n"):
		next++
	}
	s.lineStart = next > 0 && s.src[next-1] == '\n'
	return next
}

func (s *scanner) addText(text string) {
	if text != "" {
		s.parts = append(s.parts, part{kind: textPart, text: text})
	}
}

func (s *scanner) comment(at, inside int) (int, error) {
	i := strings.Index(s.src[inside:], "#}")
	if i < 0 {
		return 0, s.errorf(at, "have a comment without its end, want #}")
	}
	end, sign := inside+i, byte(0)
	if i > 0 && (s.src[end-1] == '-' || s.src[end-1] == '+') {
		sign = s.src[end-1]
	}
	return s.after(end+2, sign, true), nil
}

func (s *scanner) output(inside int) (int, error) {
	line := s.line(inside)
	tokens, end, sign, err := s.lexTag(inside, "}}")
	if err != nil {
		return 0, err
	}
	s.parts = append(s.parts, part{kind: outputPart, tokens: tokens, line: line})
	return s.after(end, sign, false), nil
}

func (s *scanner) statement(inside int) (int, error) {
	if word := strings.TrimLeftFunc(s.src[inside:], unicode.IsSpace); strings.HasPrefix(word, "raw") {
		begin := strings.TrimLeftFunc(word[3:], unicode.IsSpace)
		strip := strings.HasPrefix(begin, "-%}")
		if strip || strings.HasPrefix(begin, "%}") {
			return s.raw(len(s.src)-len(begin), strip)
		}
	}
	line := s.line(inside)
	tokens, end, sign, err := s.lexTag(inside, "%}")
	if err != nil {
		return 0, err
	}
	s.parts = append(s.parts, part{kind: statementPart, tokens: tokens, line: line})
	return s.after(end, sign, true), nil
}

// raw takes the text up to endraw as it is; at is where its begin tag ends.
func (s *scanner) raw(at int, strip bool) (int, error) {
	from := at + 2
	if strip {
		from = len(s.src) - len(strings.TrimLeftFunc(s.src[at+3:], unicode.IsSpace))
	}
	s.lineStart = from > 0 && s.src[from-1] == '\n'
	for i := from; ; i += 2 {
		k := strings.Index(s.src[i:], "{%")
		if k < 0 {
			return 0, s.errorf(at, "have a raw block without its end, want endraw")
		}
		i += k
		inside, sign := i+2, byte(0)
		if inside < len(s.src) && (s.src[inside] == '-' || s.src[inside] == '+') {
			sign = s.src[inside]
			inside++
		}
		word := strings.TrimLeftFunc(s.src[inside:], unicode.IsSpace)
		if !strings.HasPrefix(word, "endraw") {
			continue
		}
		end := strings.TrimLeftFunc(word[len("endraw"):], unicode.IsSpace)
		for _, close := range []struct {
			text string
			sign byte
		}{{"%}", 0}, {"-%}", '-'}, {"+%}", '+'}} {
			if strings.HasPrefix(end, close.text) {
				s.addText(s.before(s.src[from:i], sign, true))
				return s.after(len(s.src)-len(end)+len(close.text), close.sign, true), nil
			}
		}
	}
}
