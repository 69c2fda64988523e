package jinja

import (
	"slices"
	"strings"

	engine "github.com/ardanlabs/jinja"
)

// statement compiles one statement with all that belongs to it, and leaves the
// position on its last part.
func (c *compiler) statement(e *exprParser) {
	if c.depth++; c.depth > maxNesting {
		e.fail("have more than %d statements inside one another", maxNesting)
	}
	defer func() { c.depth-- }()
	switch word := e.name(); word {
	case "if":
		c.ifStatement(e)
	case "for":
		c.forStatement(e)
	case "set":
		c.setStatement(e)
	case "macro":
		c.macro(e)
	case "call":
		c.callBlock(e)
	case "filter":
		c.filterBlock(e)
	case "with":
		c.with(e)
	case "generation": // marks what a model is trained on
		e.end()
		c.block(e, "endgeneration")
	case "break", "continue":
		e.end()
		if !c.scopes[len(c.scopes)-1].loop {
			e.fail("have %s outside of a loop", word)
		}
		c.write("{%", word, "%}")
	default:
		e.fail("unknown statement %q", word)
	}
}

func (c *compiler) ifStatement(e *exprParser) {
	word := "if"
	for {
		cond := e.expression()
		e.end()
		c.write("{%", word, " ", cond, "%}")
		if e, word = c.block(e, "elif", "else", "endif"); word != "elif" {
			break
		}
	}
	if word == "else" {
		c.write("{%else%}")
		c.block(e, "endif")
	}
	c.write("{%endif%}")
}

// targets are the names that a loop or a set assigns to, or one attribute of a
// namespace.
func (e *exprParser) targets() (names []string, attr string) {
	bracket := e.skip(operatorToken, "(")
	names = []string{e.name()}
	if !bracket && e.skip(operatorToken, ".") {
		return names, e.asciiName()
	}
	for e.skip(operatorToken, ",") {
		if e.peek().kind != nameToken || e.peek().is(nameToken, "in") {
			break
		}
		names = append(names, e.name())
	}
	if bracket {
		e.expect(")")
	}
	if slices.Contains(names, "loop") || slices.Contains(names, "caller") {
		e.fail("can't assign to loop or caller")
	}
	return names, ""
}

// forStatement: the engine keeps what a turn assigns for the next one, which
// Jinja does not, so that each turn begins with what the names were outside.
func (c *compiler) forStatement(e *exprParser) {
	names, attr := e.targets()
	if attr != "" || !e.skip(nameToken, "in") {
		e.fail("have a loop without names and in")
	}
	iter := e.apply(e.list(e.or), "f_iter")
	item := c.ident(names[0])
	unpacked := map[string]code{}
	if len(names) > 1 {
		item = c.fresh()
		n := c.constant(engine.NewInt(int64(len(names))))
		for i, name := range names {
			unpacked[name] = e.apply(code{item, 1}, "f_unpack", c.constant(engine.NewInt(int64(i))), n)
		}
	}
	cond := ""
	if e.skip(nameToken, "if") {
		e.renamed = unpacked
		c := e.expression()
		cond = " if " + e.apply(c, "f_weigh", e.length(c.text)).text
	}
	if e.peek().is(nameToken, "recursive") {
		e.fail("have a recursive loop, want one that is not")
	}
	e.end()

	s := &scope{loop: true, names: map[string]bool{}}
	var after *exprParser
	var word string
	body := c.inScope(s, func() { after, word = c.block(e, "else", "endfor") })
	var kept, reset strings.Builder
	for _, name := range sorted(s.names) {
		if !slices.Contains(names, name) {
			k := c.fresh()
			kept.WriteString("{%set " + k + "=" + c.ident(name) + "%}")
			reset.WriteString("{%set " + c.ident(name) + "=" + k + "%}")
		}
	}
	c.write(kept.String(), "{%for ", item, " in ", iter, cond, "%}{{", c.length(body, reset.String()), "|f_step}}", reset.String())
	for _, name := range names {
		if v, ok := unpacked[name]; ok {
			c.write("{%set ", c.ident(name), "=", v, "%}")
		}
	}
	c.write(body)
	if word == "else" {
		c.write("{%else%}")
		c.block(after, "endfor")
	}
	c.write("{%endfor%}")
}

func (c *compiler) setStatement(e *exprParser) {
	names, attr := e.targets()
	if e.skip(operatorToken, "=") {
		value := e.list(e.expression)
		e.end()
		c.store(e, names, attr, value)
		return
	}
	if len(names) > 1 || attr != "" {
		e.fail("have a block set to several names or an attribute, want one name")
	}
	c.captured(e, "endset", func(v code) { c.store(e, names, "", v) })
}

// captured is the rest of a tag with filters and the block after it: its text
// goes through the filters to store.
func (c *compiler) captured(e *exprParser, end string, store func(code)) {
	name := c.fresh()
	v := code{name, 1}
	for e.skip(operatorToken, "|") {
		v = e.filter(v)
	}
	e.end()
	c.write("{%set ", name, "%}")
	c.block(e, end)
	c.write("{%endset%}")
	store(v)
}

// store assigns a value.
func (c *compiler) store(e *exprParser, names []string, attr string, v code) {
	switch {
	case attr != "":
		ns := c.ident(names[0])
		c.write("{{", ns, "|f_namespace}}{%set ", ns, ".", attr, "=", v, "%}")
	case len(names) == 1:
		c.write("{%set ", c.assign(names[0]), "=", v, "%}")
	default:
		all := c.fresh()
		n := c.constant(engine.NewInt(int64(len(names))))
		c.write("{%set ", all, "=", v, "%}")
		for i, name := range names {
			c.write("{%set ", c.assign(name), "=", e.apply(code{all, 1}, "f_unpack", c.constant(engine.NewInt(int64(i))), n), "%}")
		}
	}
}

// macro: the engine can't read defaults with commas, so they are set inside.
func (c *compiler) macro(e *exprParser) {
	name := c.assign(e.asciiName())
	e.expect("(")
	var params []string
	var defaults strings.Builder
	for n := 0; !e.skip(operatorToken, ")"); n++ {
		if n > 0 {
			e.expect(",")
		}
		param := "v_" + e.asciiName()
		params = append(params, param)
		if e.skip(operatorToken, "=") {
			defaults.WriteString("{%if " + param + "|t_undefined%}{%set " + param + "=" + e.expression().text + "%}{%endif%}")
		}
	}
	e.end()
	body := c.inScope(&scope{names: map[string]bool{}}, func() { c.block(e, "endmacro") })
	c.write("{%macro ", name, "(", strings.Join(params, ","), ")%}{{", c.length(defaults.String(), body), "|f_enter}}", defaults.String(), body, "{{k_leave|f_leave}}{%endmacro%}")
}

// callBlock gives a macro its body as caller.
func (c *compiler) callBlock(e *exprParser) {
	var params []string
	if e.skip(operatorToken, "(") {
		for n := 0; !e.skip(operatorToken, ")"); n++ {
			if n > 0 {
				e.expect(",")
			}
			params = append(params, "v_"+e.asciiName())
		}
	}
	from := e.pos
	fn := e.variable(e.name())
	src := e.source(from)
	e.expect("(")
	args := e.make(e.arguments(false)...)
	e.end()
	body := c.inScope(&scope{names: map[string]bool{}}, func() { c.block(e, "endcall") })
	c.write("{{", fn, "|f_callable(", src, ")}}{%call(", strings.Join(params, ","), ") ", fn, "(", args, ")%}{{", c.length(body), "|f_step}}", body, "{%endcall%}")
}

func (c *compiler) filterBlock(e *exprParser) {
	e.tokens, e.pos = append([]token{{kind: operatorToken, text: "|"}}, e.tokens[e.pos:]...), 0
	c.captured(e, "endfilter", func(v code) { c.write("{{", v, "|f_out}}") })
}

// with assigns names for the length of a block.
func (c *compiler) with(e *exprParser) {
	var set, restore strings.Builder
	for e.peek().kind != endToken {
		if set.Len() > 0 {
			e.expect(",")
		}
		name := e.name()
		e.expect("=")
		kept, id := c.fresh(), c.assign(name)
		set.WriteString("{%set " + kept + "=" + id + "%}{%set " + id + "=" + e.expression().text + "%}")
		restore.WriteString("{%set " + id + "=" + kept + "%}")
	}
	c.write(set.String())
	c.block(e, "endwith")
	c.write(restore.String())
}
