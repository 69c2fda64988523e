package program

import (
	"strings"

	"github.com/sluicehost/sluice/sdk/wgsl"
)

// A WGSL token is an identifier, a number or one punctuation character.
type wgslToken struct {
	text string
	kind byte // 'i' identifier, 'n' number, 'p' punctuation
}

// lexWGSL cuts src into tokens without its comments. Bytes that begin no token
// (a stray quote, say) are punctuation, so it can't fail.
func lexWGSL(src string) []wgslToken {
	var toks []wgslToken
	for from, to := wgsl.Next(src, 0); from < len(src); from, to = wgsl.Next(src, to) {
		kind := byte('p')
		switch c := src[from]; {
		case c >= '0' && c <= '9':
			kind = 'n'
		case wgsl.IsWord(c):
			kind = 'i'
		}
		toks = append(toks, wgslToken{src[from:to], kind})
	}
	return toks
}

// joinTokens is the tokens as text, for messages and type names.
func joinTokens(toks []wgslToken) string {
	var b strings.Builder
	for i, t := range toks {
		if i > 0 && t.kind != 'p' && toks[i-1].kind != 'p' {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// cursor walks tokens. Past the end it yields zero tokens.
type cursor struct {
	toks []wgslToken
	at   int
}

func (c *cursor) done() bool { return c.at >= len(c.toks) }

func (c *cursor) peek() wgslToken {
	if c.done() {
		return wgslToken{}
	}
	return c.toks[c.at]
}

func (c *cursor) next() wgslToken {
	t := c.peek()
	c.at++
	return t
}

// since is the tokens that the cursor has passed since it was at start.
func (c *cursor) since(start int) []wgslToken {
	return c.toks[min(start, len(c.toks)):min(c.at, len(c.toks))]
}

// take passes over the token text if it is next.
func (c *cursor) take(text string) bool {
	if c.peek().text != text {
		return false
	}
	c.at++
	return true
}

// until returns the tokens before the first of the stops outside any brackets
// and leaves the cursor on it. Angle brackets count only where angles is set:
// in an expression < compares.
func (c *cursor) until(stops string, angles bool) []wgslToken {
	start, depth := c.at, 0
	for ; !c.done(); c.at++ {
		t := c.toks[c.at]
		if t.kind != 'p' {
			continue
		}
		if depth == 0 && strings.Contains(stops, t.text) {
			break
		}
		switch {
		case strings.Contains("([{", t.text), angles && t.text == "<":
			depth++
		case strings.Contains(")]}", t.text), angles && t.text == ">":
			depth = max(depth-1, 0)
		}
	}
	return c.since(start)
}

// block passes over a { … } with everything in it.
func (c *cursor) block() []wgslToken {
	if !c.take("{") {
		return nil
	}
	body := c.until("}", false)
	c.take("}")
	return body
}

// list cuts tokens at the commas outside any brackets.
func list(toks []wgslToken, angles bool) [][]wgslToken {
	var out [][]wgslToken
	c := &cursor{toks: toks}
	for !c.done() {
		if part := c.until(",", angles); len(part) > 0 {
			out = append(out, part)
		}
		c.take(",")
	}
	return out
}
