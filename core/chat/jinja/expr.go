package jinja

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	engine "github.com/ardanlabs/jinja"
)

// code is an expression in the engine's language that binds as tight as a name:
// it may be followed by a filter. Every operator, attribute, item, call, filter
// and test of the template has become a filter of ours (operators.go), for the
// engine takes what Python refuses and can't be bounded. Names of the template
// begin with v_, constants are names that begin with k_, ours with f_ and t_: a
// template can reach nothing else.
type code struct {
	text  string
	depth int
}

// exprParser reads the expressions of one tag, by Jinja's grammar.
type exprParser struct {
	*compiler
	tokens  []token
	pos     int
	line    int
	nesting int
	renamed map[string]code // names that stand for something else
}

func (p *exprParser) peek() token {
	if p.pos < len(p.tokens) {
		return p.tokens[p.pos]
	}
	return token{kind: endToken, line: p.line}
}

func (p *exprParser) next() token {
	t := p.peek()
	p.pos++
	return t
}

func (t token) is(kind tokenKind, texts ...string) bool {
	return t.kind == kind && slices.Contains(texts, t.text)
}

// skip takes the next token if it is this operator or keyword.
func (p *exprParser) skip(kind tokenKind, text string) bool {
	if p.peek().is(kind, text) {
		p.pos++
		return true
	}
	return false
}

// fault is how parsing stops: the statements catch it.
type fault struct{ error }

func (p *exprParser) fail(format string, args ...any) {
	panic(fault{fmt.Errorf("line %d: %w", p.line, fmt.Errorf(format, args...))})
}

func (p *exprParser) expect(text string) {
	if t := p.next(); !t.is(operatorToken, text) {
		p.fail("have %s, want %q", t, text)
	}
}

func (p *exprParser) name() string {
	t := p.next()
	if t.kind != nameToken {
		p.fail("have %s, want a name", t)
	}
	return t.text
}

// end refuses what is left of the tag.
func (p *exprParser) end() {
	if t := p.peek(); t.kind != endToken {
		p.fail("unexpected %s", t)
	}
}

// make builds an expression out of text and of others.
func (p *exprParser) make(parts ...any) code {
	var c code
	size := 0
	for _, part := range parts {
		switch part := part.(type) {
		case code:
			c.depth = max(c.depth, part.depth)
			size += len(part.text)
		case string:
			size += len(part)
		}
	}
	if c.depth++; c.depth > maxDepth || size > maxCode {
		p.fail("have an expression of more than %d operations or %d bytes", maxDepth, maxCode)
	}
	if p.made += size; p.made > maxMade {
		p.fail("have expressions that become more than %d bytes of code", maxMade)
	}
	var b strings.Builder
	b.Grow(size)
	for _, part := range parts {
		switch part := part.(type) {
		case code:
			b.WriteString(part.text)
		case string:
			b.WriteString(part)
		}
	}
	c.text = b.String()
	return c
}

// apply is filter(on, args...).
func (p *exprParser) apply(on code, filter string, args ...code) code {
	parts := []any{on, "|", filter}
	for i, a := range args {
		parts = append(parts, []string{"(", ","}[min(i, 1)], a)
	}
	if len(args) > 0 {
		parts = append(parts, ")")
	}
	return p.make(parts...)
}

// source is what the template says from a token on, for messages.
func (p *exprParser) source(from int) code {
	var b strings.Builder
	for _, t := range p.tokens[from:min(p.pos, len(p.tokens))] {
		if t.kind == stringToken {
			b.WriteString("'" + t.text + "'")
		} else {
			b.WriteString(t.text)
		}
		if b.Len() > 60 {
			break
		}
	}
	return p.constant(engine.NewString(b.String()))
}

// expression is a condition: a if b else c.
func (p *exprParser) expression() code {
	if p.nesting++; p.nesting > maxNesting {
		p.fail("have more than %d expressions inside one another", maxNesting)
	}
	defer func() { p.nesting-- }()
	c := p.or()
	for p.skip(nameToken, "if") {
		cond := p.or()
		if !p.skip(nameToken, "else") {
			c = p.make("(", c, " if ", cond, ")")
			continue
		}
		c = p.make("(", c, " if ", cond, " else ", p.expression(), ")")
	}
	return c
}

// list is one expression, or several with commas as a tuple. It ends before a
// token that can't begin an expression.
func (p *exprParser) list(one func() code) code {
	first := one()
	if !p.peek().is(operatorToken, ",") {
		return first
	}
	parts := []any{"[", first}
	for p.skip(operatorToken, ",") {
		if t := p.peek(); t.kind == endToken || t.is(operatorToken, ")") {
			break
		}
		parts = append(parts, ",", one())
	}
	return p.apply(p.make(append(parts, "]")...), "f_list")
}

func (p *exprParser) or() code {
	c := p.and()
	for p.skip(nameToken, "or") {
		c = p.make("(", c, " or ", p.and(), ")")
	}
	return c
}

func (p *exprParser) and() code {
	c := p.not()
	for p.skip(nameToken, "and") {
		c = p.make("(", c, " and ", p.not(), ")")
	}
	return c
}

func (p *exprParser) not() code {
	n := 0
	for p.skip(nameToken, "not") {
		n++
	}
	c := p.compare()
	for ; n > 0; n-- {
		c = p.make("(not ", c, ")")
	}
	return c
}

var comparisons = map[string]string{"==": "f_eq", "!=": "f_ne", "<": "f_lt", "<=": "f_le", ">": "f_gt", ">=": "f_ge"}

// compare is a chain: a < b < c is a < b and b < c.
func (p *exprParser) compare() code {
	left := p.sum()
	var chain code
	for n := 0; ; n++ {
		filter, t := "", p.peek()
		switch {
		case t.kind == operatorToken:
			filter = comparisons[t.text]
		case t.is(nameToken, "in"):
			filter = "f_in"
		case t.is(nameToken, "not") && p.pos+1 < len(p.tokens) && p.tokens[p.pos+1].is(nameToken, "in"):
			filter = "f_notin"
			p.pos++
		}
		if filter == "" {
			if n == 0 {
				return left
			}
			return chain
		}
		p.pos++
		right := p.sum()
		if link := p.apply(left, filter, right); n == 0 {
			chain = link
		} else {
			chain = p.make("(", chain, " and ", link, ")")
		}
		left = right
	}
}

// binary is a chain of operators, grouped from the left.
func (p *exprParser) binary(filters map[string]string, operand func() code) code {
	c := operand()
	for {
		t := p.peek()
		filter := filters[t.text]
		if t.kind != operatorToken || filter == "" {
			return c
		}
		p.pos++
		c = p.apply(c, filter, operand())
	}
}

func (p *exprParser) sum() code {
	return p.binary(map[string]string{"+": "f_add", "-": "f_sub"}, p.concat)
}

func (p *exprParser) concat() code {
	return p.binary(map[string]string{"~": "f_concat"}, p.product)
}

func (p *exprParser) product() code {
	return p.binary(map[string]string{"*": "f_mul", "/": "f_div", "//": "f_floordiv", "%": "f_mod"}, p.power)
}

func (p *exprParser) power() code {
	return p.binary(map[string]string{"**": "f_pow"}, func() code { return p.unary(true) })
}

func (p *exprParser) unary(filters bool) code {
	if p.nesting++; p.nesting > maxNesting {
		p.fail("have more than %d expressions inside one another", maxNesting)
	}
	defer func() { p.nesting-- }()
	from := p.pos
	var c code
	switch {
	case p.skip(operatorToken, "-"):
		c = p.apply(p.unary(false), "f_neg")
	case p.skip(operatorToken, "+"):
		c = p.apply(p.unary(false), "f_pos")
	default:
		c = p.primary()
	}
	c = p.postfix(c, from)
	if filters {
		c = p.filters(c, from)
	}
	return c
}

func (p *exprParser) primary() code {
	t := p.next()
	switch {
	case t.kind == nameToken:
		switch t.text {
		case "true", "True", "false", "False":
			return p.constant(engine.NewBool(t.text[0]|0x20 == 't'))
		case "none", "None":
			return p.constant(engine.None())
		}
		return p.variable(t.text)
	case t.kind == stringToken:
		texts := []string{t.text}
		for p.peek().kind == stringToken {
			texts = append(texts, p.next().text)
		}
		return p.constant(engine.NewString(strings.Join(texts, "")))
	case t.kind == intToken:
		n, err := strconv.ParseInt(t.text, 0, 64)
		if err != nil {
			p.fail("have the number %s, want at most %d", t.text, int64(math.MaxInt64))
		}
		return p.constant(engine.NewInt(n))
	case t.kind == floatToken:
		f, _ := strconv.ParseFloat(t.text, 64)
		return p.constant(engine.NewFloat(f))
	case t.is(operatorToken, "("):
		if p.skip(operatorToken, ")") {
			return code{"[]", 1}
		}
		c := p.list(p.expression)
		p.expect(")")
		return c
	case t.is(operatorToken, "["):
		return p.items("]")
	case t.is(operatorToken, "{"):
		return p.dict()
	}
	p.fail("unexpected %s", t)
	return code{}
}

// variable is a name of the template.
func (p *exprParser) variable(name string) code {
	if c, ok := p.renamed[name]; ok {
		return c
	}
	return code{p.ident(name), 1}
}

// items are expressions up to a bracket.
func (p *exprParser) items(end string) code {
	parts := []any{"["}
	for !p.skip(operatorToken, end) {
		if len(parts) > 1 {
			p.expect(",")
			if p.skip(operatorToken, end) {
				break
			}
			parts = append(parts, ",")
		}
		parts = append(parts, p.expression())
	}
	return p.apply(p.make(append(parts, "]")...), "f_list")
}

func (p *exprParser) dict() code {
	parts := []any{"["}
	for !p.skip(operatorToken, "}") {
		if len(parts) > 1 {
			p.expect(",")
			if p.skip(operatorToken, "}") {
				break
			}
			parts = append(parts, ",")
		}
		key := p.expression()
		p.expect(":")
		parts = append(parts, key, ",", p.expression())
	}
	return p.apply(p.make(append(parts, "]")...), "f_dict")
}
