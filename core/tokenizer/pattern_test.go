package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The patterns as the families' tokenizer.json files give them, but for the
// case folding of (?i:…), written out.
const (
	contractions = `'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]`
	llama3       = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2        = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	bailingmoe2  = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	qwen35       = contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	gemma4       = `[^\n]+|[\n]+`
)

// TestSplit compares the scanners with the patterns, which a plain
// backtracking matcher reads (pattern, below): at every start of random texts.
func TestSplit(t *testing.T) {
	rnd := random(t)
	for _, c := range []struct{ pre, pattern string }{
		{"lfm2", llama3},
		{"bailingmoe2", bailingmoe2},
		{"qwen2", qwen2},
		{"qwen35", qwen35},
		{"gemma4", gemma4},
	} {
		t.Run(c.pre, func(t *testing.T) {
			r, err := readRules(meta{keyModel: "gpt2", keyPre: c.pre})
			if err != nil {
				t.Fatal(err)
			}
			p := parsePattern(c.pattern)
			check := func(text string) {
				for i := range text {
					have, want := r.split(text[i:]), len(string(p.first(text[i:])))
					if have != want {
						t.Fatalf("%q: have %q, want %q", text[i:], text[i:i+have], text[i:i+want])
					}
				}
			}
			check(sample)
			for range 1000 {
				check(randomText(rnd, 24))
			}
			// Every run of four of the characters that matter most.
			few := []rune(" \n\rs'1.a\u0301\u2028")
			for n := range 10000 {
				var b strings.Builder
				for ; n > 0; n /= 10 {
					b.WriteRune(few[n%10])
				}
				check(b.String())
			}
		})
	}
}

// TestWhitespace pins \s: the 25 characters of Unicode's White_Space, which
// are llama.cpp's, and not those that some call blank.
func TestWhitespace(t *testing.T) {
	want := []rune{
		9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006,
		0x2007, 0x2008, 0x2009, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
	}
	var have []rune
	for r := range unicode.MaxRune + 1 {
		if classOf(r)&space != 0 {
			have = append(have, r)
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("have %x, want %x", have, want)
	}
}

// A pattern is a regular expression as a tree of functions: each calls then
// with the ends of its matches, best first, until that returns true.
type pattern func(s []rune, i int, then func(int) bool) bool

// first is the match at the start of s, or nothing.
func (p pattern) first(text string) []rune {
	s := []rune(text)
	end := 0
	p(s, 0, func(i int) bool { end = i; return true })
	return s[:end]
}

// parsePattern knows what the patterns above use: alternatives, literals,
// classes, \r \n \s \S \p{X}, the quantifiers ? * + {a,b} and (?!…).
func parsePattern(src string) pattern {
	p := &parser{src: []rune(src)}
	out := p.alternatives()
	if p.at < len(p.src) {
		panic(fmt.Sprintf("pattern %q: cannot read from %d", src, p.at))
	}
	return out
}

type parser struct {
	src []rune
	at  int
}

func (p *parser) more(c rune) bool { return p.at < len(p.src) && p.src[p.at] == c }

func (p *parser) take(text string) bool {
	if !strings.HasPrefix(string(p.src[p.at:]), text) {
		return false
	}
	p.at += len([]rune(text))
	return true
}

func (p *parser) alternatives() pattern {
	all := []pattern{p.sequence()}
	for p.take("|") {
		all = append(all, p.sequence())
	}
	return func(s []rune, i int, then func(int) bool) bool {
		for _, a := range all {
			if a(s, i, then) {
				return true
			}
		}
		return false
	}
}

func (p *parser) sequence() pattern {
	out := pattern(func(_ []rune, i int, then func(int) bool) bool { return then(i) })
	for p.at < len(p.src) && !p.more('|') && !p.more(')') {
		left, right := out, p.quantified()
		out = func(s []rune, i int, then func(int) bool) bool {
			return left(s, i, func(j int) bool { return right(s, j, then) })
		}
	}
	return out
}

func (p *parser) quantified() pattern {
	if p.take("(?!") {
		inner := p.alternatives()
		p.take(")")
		return func(s []rune, i int, then func(int) bool) bool {
			return !inner(s, i, func(int) bool { return true }) && then(i)
		}
	}
	one := p.set()
	low, high := 1, 1
	switch {
	case p.take("?"):
		low = 0
	case p.take("*"):
		low, high = 0, 1<<30
	case p.take("+"):
		high = 1 << 30
	case p.take("{1,3}"):
		high = 3
	}
	return func(s []rune, i int, then func(int) bool) bool {
		end := i
		for end < len(s) && end-i < high && one(s[end]) {
			end++
		}
		for ; end >= i+low; end-- {
			if then(end) {
				return true
			}
		}
		return false
	}
}

// set reads one character or a class of them.
func (p *parser) set() func(rune) bool {
	if !p.take("[") {
		return p.single()
	}
	not := p.take("^")
	var any []func(rune) bool
	for !p.take("]") {
		any = append(any, p.single())
	}
	return func(r rune) bool {
		return not != slices.ContainsFunc(any, func(in func(rune) bool) bool { return in(r) })
	}
}

func (p *parser) single() func(rune) bool {
	table := func(t ...*unicode.RangeTable) func(rune) bool {
		return func(r rune) bool { return unicode.In(r, t...) }
	}
	extensionI := &unicode.RangeTable{R32: []unicode.Range32{{Lo: 0x2EBF0, Hi: 0x2EE5D, Stride: 1}}}
	switch {
	case p.take(`\p{L}`):
		return table(unicode.L, extensionI)
	case p.take(`\p{N}`):
		return table(unicode.N)
	case p.take(`\p{M}`):
		return table(unicode.M)
	case p.take(`\s`):
		return table(unicode.White_Space)
	case p.take(`\S`):
		return func(r rune) bool { return !unicode.Is(unicode.White_Space, r) }
	case p.take(`\r`):
		return func(r rune) bool { return r == '\r' }
	case p.take(`\n`):
		return func(r rune) bool { return r == '\n' }
	}
	c := p.src[p.at]
	p.at++
	return func(r rune) bool { return r == c }
}
