package jinja

import (
	"strconv"

	engine "github.com/ardanlabs/jinja"
)

func (p *exprParser) postfix(c code, from int) code {
	for {
		switch t := p.peek(); {
		case t.is(operatorToken, "."):
			src := p.source(from)
			p.pos++
			attr := p.next()
			if attr.kind == intToken {
				n, _ := strconv.ParseInt(attr.text, 0, 64)
				c = p.apply(c, "f_item", p.constant(engine.NewInt(n)), src)
				continue
			}
			if attr.kind != nameToken {
				p.fail("have %s, want a name", attr)
			}
			c = p.apply(c, "f_attr", p.constant(engine.NewString(attr.text)), src)
		case t.is(operatorToken, "["):
			c = p.subscript(c, from)
		case t.is(operatorToken, "("):
			c = p.call(c, from)
		default:
			return c
		}
	}
}

func (p *exprParser) subscript(c code, from int) code {
	src := p.source(from)
	p.pos++
	none := p.constant(engine.None())
	var bounds []code
	for {
		b := none
		if t := p.peek(); !t.is(operatorToken, ":", "]") {
			b = p.expression()
		} else if len(bounds) == 0 && t.is(operatorToken, "]") {
			p.fail("unexpected ]")
		}
		if bounds = append(bounds, b); len(bounds) == 3 || !p.skip(operatorToken, ":") {
			break
		}
	}
	p.expect("]")
	if len(bounds) == 1 {
		return p.apply(c, "f_item", bounds[0], src)
	}
	if len(bounds) == 2 {
		bounds = append(bounds, none)
	}
	return p.apply(c, "f_slice", bounds...)
}

// call is f_call on what is called: with its source, and its arguments.
func (p *exprParser) call(c code, from int) code {
	src := p.source(from)
	p.pos++
	parts := []any{c, "|f_call(", src}
	return p.make(append(append(parts, p.arguments(true)...), ")")...)
}

// arguments are read up to the closing bracket; each is given with a comma
// before it, but for the first if there is nothing before.
func (p *exprParser) arguments(more bool) (parts []any) {
	for n := 0; !p.skip(operatorToken, ")"); n++ {
		if n > 0 {
			p.expect(",")
			if p.skip(operatorToken, ")") {
				break
			}
		}
		if t := p.peek(); t.is(operatorToken, "*", "**") {
			p.fail("have arguments from %s, want each written out", t)
		}
		if more || n > 0 {
			parts = append(parts, ",")
		}
		if p.peek().kind == nameToken && p.pos+1 < len(p.tokens) && p.tokens[p.pos+1].is(operatorToken, "=") {
			parts = append(parts, "v_"+p.asciiName(), "=")
			p.pos++
		}
		parts = append(parts, p.expression())
	}
	return parts
}

// asciiName is a name that becomes part of the engine's language.
func (p *exprParser) asciiName() string {
	name := p.name()
	if !ascii(name) {
		p.fail("have the name %q, want letters of ASCII", name)
	}
	return name
}

// filters are filters and tests, which bind alike.
func (p *exprParser) filters(c code, from int) code {
	for {
		switch t := p.peek(); {
		case t.is(operatorToken, "|"):
			p.pos++
			c = p.filter(c)
		case t.is(nameToken, "is"):
			p.pos++
			c = p.test(c)
		case t.is(operatorToken, "("):
			c = p.call(c, from)
		default:
			return c
		}
	}
}

func (p *exprParser) filter(c code) code {
	name := p.name()
	if _, ok := filters[name]; !ok {
		p.fail("no filter named %q", name)
	}
	parts := []any{c, "|f_filter_", name}
	if p.skip(operatorToken, "(") {
		parts = append(append(append(parts, "("), p.arguments(false)...), ")")
	}
	return p.make(parts...)
}

func (p *exprParser) test(c code) code {
	negated := p.skip(nameToken, "not")
	name := p.name()
	if _, ok := tests[name]; !ok {
		p.fail("no test named %q", name)
	}
	parts := []any{c, "|t_", name}
	t := p.peek()
	switch {
	case p.skip(operatorToken, "("):
		parts = append(append(append(parts, "("), p.arguments(false)...), ")")
	case t.is(nameToken, "is"):
		p.fail("can't chain tests with is")
	case t.kind == nameToken && !t.is(nameToken, "else", "or", "and", "if", "in", "not") || t.kind == stringToken || t.kind == intToken ||
		t.kind == floatToken || t.is(operatorToken, "[", "{"):
		from := p.pos
		parts = append(parts, "(", p.postfix(p.primary(), from), ")")
	}
	c = p.make(parts...)
	if negated {
		c = p.make("(not ", c, ")")
	}
	return c
}
