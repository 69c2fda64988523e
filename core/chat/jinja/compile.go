package jinja

import (
	"fmt"
	"strconv"
	"strings"

	engine "github.com/ardanlabs/jinja"
)

// What a template may be. Real ones have some 20 KB, a dozen brackets inside
// one another and chains of twenty operations.
const (
	maxSource  = 1 << 20     // bytes
	maxNesting = 100         // brackets, expressions or statements inside one another
	maxDepth   = 1000        // operations one after the other in an expression
	maxCode    = 8 << 20     // bytes of what the template becomes
	maxMade    = 8 * maxCode // bytes of expressions made on the way, each within the next
)

// compiler turns a template into the engine's language: see code.
type compiler struct {
	parts     []part
	pos       int
	out       []byte
	constants map[string]engine.Value
	known     map[string]code // constants by kind and text
	idents    map[string]string
	scopes    []*scope
	count     int
	depth     int // of statements
	made      int // bytes of expressions
}

// scope is a loop, a macro or the template itself.
type scope struct {
	loop  bool
	names map[string]bool // that are assigned in it
}

func compile(source string) (t *Template, err error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("have a template of %d bytes, want at most %d", len(source), maxSource)
	}
	parts, err := scan(strings.ToValidUTF8(source, "\uFFFD"))
	if err != nil {
		return nil, err
	}
	c := &compiler{
		parts: parts, constants: map[string]engine.Value{}, known: map[string]code{}, idents: map[string]string{},
		scopes: []*scope{{names: map[string]bool{}}},
	}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(fault)
			if !ok {
				panic(r)
			}
			t, err = nil, f.error
		}
	}()
	c.body()
	if c.pos < len(c.parts) {
		p := c.expr(c.parts[c.pos])
		p.fail("unexpected %s", p.peek())
	}
	// A newline behind a statement goes. The engine looks for it up to the next text, however far that is.
	compiled, err := engine.Compile(strings.ReplaceAll(string(c.out), "%}", "%}\n"))
	if err != nil {
		return nil, fmt.Errorf("BUG: the engine refuses what we made of the template: %w", err)
	}
	return &Template{compiled, c.constants}, nil
}

func (c *compiler) write(parts ...any) {
	for _, part := range parts {
		switch part := part.(type) {
		case code:
			c.out = append(c.out, part.text...)
		case string:
			c.out = append(c.out, part...)
		}
	}
	if len(c.out) > maxCode {
		panic(fault{fmt.Errorf("have a template that becomes more than %d bytes of code", maxCode)})
	}
}

// constant is a name for a value; equal values share one.
func (c *compiler) constant(v engine.Value) code {
	key := v.String()
	if v.IsInt() || v.IsFloat() {
		key = fmt.Sprintf("%t %s", v.IsInt(), key)
	}
	if k, ok := c.known[key]; ok {
		return k
	}
	k := code{"k_" + strconv.Itoa(len(c.constants)), 1}
	c.constants[k.text] = v
	c.known[key] = k
	return k
}

// length is the constant of how long code is.
func (c *compiler) length(code ...string) code {
	n := 0
	for _, part := range code {
		n += len(part)
	}
	return c.constant(engine.NewInt(int64(n)))
}

// ident is the engine's name for a name of the template.
func (c *compiler) ident(name string) string {
	if name == "loop" || name == "caller" {
		return name
	}
	if ascii(name) {
		return "v_" + name
	}
	id, ok := c.idents[name]
	if !ok {
		id = "w_" + strconv.Itoa(len(c.idents))
		c.idents[name] = id
	}
	return id
}

func ascii(name string) bool {
	for i := range len(name) {
		if name[i] >= 0x80 {
			return false
		}
	}
	return true
}

// fresh is a new name of our own.
func (c *compiler) fresh() string {
	c.count++
	return "u_" + strconv.Itoa(c.count)
}

func (c *compiler) expr(p part) *exprParser {
	return &exprParser{compiler: c, tokens: p.tokens, line: p.line}
}

// assign notes that a name is given a value in this scope.
func (c *compiler) assign(name string) string {
	c.scopes[len(c.scopes)-1].names[name] = true
	return c.ident(name)
}

// body compiles up to a statement that begins with one of the words, which it
// leaves, or to the end.
func (c *compiler) body(until ...string) {
	for ; c.pos < len(c.parts); c.pos++ {
		p := c.parts[c.pos]
		switch p.kind {
		case textPart:
			c.write("{{", c.constant(engine.NewString(p.text)), "|f_out}}")
		case outputPart:
			e := c.expr(p)
			v := e.list(e.expression)
			e.end()
			c.write("{{", v, "|f_out}}")
		case statementPart:
			e := c.expr(p)
			word := e.peek()
			for _, u := range until {
				if word.is(nameToken, u) {
					return
				}
			}
			c.statement(e)
		}
	}
}

// block is a body that must end with one of the words. The parser of that
// statement is given, with its first word taken.
func (c *compiler) block(owner *exprParser, until ...string) (*exprParser, string) {
	c.pos++
	c.body(until...)
	if c.pos == len(c.parts) {
		owner.fail("have no end of this block, want %s", strings.Join(until, " or "))
	}
	e := c.expr(c.parts[c.pos])
	word := e.name()
	if word != "elif" {
		e.end()
	}
	return e, word
}

// inScope compiles something in a scope of its own, apart, and gives it.
func (c *compiler) inScope(s *scope, compile func()) string {
	outer := c.out
	c.out = nil
	c.scopes = append(c.scopes, s)
	compile()
	c.scopes = c.scopes[:len(c.scopes)-1]
	inner := string(c.out)
	c.out = outer
	return inner
}
