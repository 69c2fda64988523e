package program

import "fmt"

// maxBound is the most bindings that a kernel may declare.
const maxBound = 64

// wgslModule is what the scanner finds at module scope.
type wgslModule struct {
	bound         []*wgslVar
	shared        []wgslType // types of the var<workgroup> declarations
	structs       map[string][]wgslMember
	aliases       map[string]wgslType
	consts        map[string]*wgslConst
	entry         [][]wgslToken // arguments of fn main's @workgroup_size, nil without one
	numWorkgroups bool
	bodies        [][]wgslToken     // functions, private variables and constants: where types of an invocation's own are named
	sizes         map[string]uint64 // of structs, as far as they were asked for
}

// wgslVar is a module-scope variable with a @binding.
type wgslVar struct {
	name           string
	space          []string
	typ            wgslType
	group, binding uint64
}

type wgslMember struct {
	name string
	typ  wgslType
}

// wgslConst is a const or override declaration, evaluated when first asked for.
type wgslConst struct {
	expr  []wgslToken
	state byte // 0 not evaluated, 1 being evaluated, 2 has a value, 3 has none
	value uint64
}

// scanModule finds the declarations of a module. A declaration it does not
// know is passed over to its semicolon or block.
func scanModule(toks []wgslToken) (*wgslModule, error) {
	m := &wgslModule{structs: map[string][]wgslMember{}, aliases: map[string]wgslType{}, consts: map[string]*wgslConst{}, sizes: map[string]uint64{}}
	for _, t := range toks {
		m.numWorkgroups = m.numWorkgroups || t.text == "num_workgroups"
	}
	c := &cursor{toks: toks}
	for !c.done() {
		attrs := c.attributes()
		if err := m.declaration(c, attrs); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// declaration reads one declaration at module scope.
func (m *wgslModule) declaration(c *cursor, attrs map[string][]wgslToken) error {
	switch word := c.next().text; word {
	case "var":
		return m.variable(c, attrs)
	case "struct":
		return m.structure(c)
	case "const", "override":
		start := c.at
		defer func() { m.bodies = append(m.bodies, c.since(start)) }()
		name := c.next().text
		c.until("=;", true)
		if c.take("=") {
			m.consts[name] = &wgslConst{expr: c.until(";", false)}
		}
		c.take(";")
	case "alias":
		name := c.next().text
		c.take("=")
		m.aliases[name] = parseType(c.until(";", true))
		c.take(";")
	case "fn":
		return m.function(c, attrs)
	case ";", "":
	default: // enable, requires, diagnostic, const_assert, or no WGSL at all
		c.until(";{", false)
		if !c.take(";") {
			c.block()
		}
	}
	return nil
}

func (m *wgslModule) function(c *cursor, attrs map[string][]wgslToken) error {
	start := c.at
	name := c.next().text
	c.until("{", false)
	c.block()
	m.bodies = append(m.bodies, c.since(start))
	size, compute := attrs["workgroup_size"]
	if name != "main" || !compute {
		return nil
	}
	if m.entry != nil {
		return fmt.Errorf("wgsl: have two entry points main, want one")
	}
	m.entry = list(size, false)
	if len(m.entry) == 0 {
		return fmt.Errorf("wgsl: @workgroup_size of main has no arguments")
	}
	return nil
}

// variable reads what follows the word var.
func (m *wgslModule) variable(c *cursor, attrs map[string][]wgslToken) error {
	v := &wgslVar{}
	if c.take("<") {
		for _, s := range list(c.until(">", false), false) {
			v.space = append(v.space, joinTokens(s))
		}
		c.take(">")
	}
	start := c.at
	v.name = c.next().text
	if c.take(":") {
		v.typ = parseType(c.until("=;", true))
	}
	c.until(";", false)
	c.take(";")
	binding, bound := attrs["binding"]
	group, grouped := attrs["group"]
	if !bound && !grouped {
		if len(v.space) == 1 && v.space[0] == "workgroup" {
			m.shared = append(m.shared, v.typ)
		} else {
			m.bodies = append(m.bodies, c.since(start))
		}
		return nil
	}
	if !bound || !grouped {
		return fmt.Errorf("wgsl: variable %s: want both @group and @binding", clip(v.name))
	}
	g, okGroup := m.eval(group)
	b, okBinding := m.eval(binding)
	if !okGroup || !okBinding || g > maxBound || b > maxBound {
		return fmt.Errorf("wgsl: variable %s: have @group(%s) @binding(%s), want numbers up to %d",
			clip(v.name), clip(joinTokens(group)), clip(joinTokens(binding)), maxBound)
	}
	v.group, v.binding = g, b
	m.bound = append(m.bound, v)
	if len(m.bound) > maxBound {
		return fmt.Errorf("wgsl: have over %d bindings", maxBound)
	}
	return nil
}

// structure reads what follows the word struct.
func (m *wgslModule) structure(c *cursor) error {
	name := c.next().text
	members := []wgslMember{}
	for _, part := range list(c.block(), true) {
		p := &cursor{toks: part}
		attrs := p.attributes()
		member := wgslMember{name: p.next().text}
		p.take(":")
		member.typ = parseType(p.until("", true))
		_, align := attrs["align"]
		_, size := attrs["size"]
		if name == constantsType && (align || size) {
			return fmt.Errorf("wgsl: Constants.%s: want no @align or @size", clip(member.name))
		}
		members = append(members, member)
	}
	if _, twice := m.structs[name]; twice {
		return fmt.Errorf("wgsl: struct %s is declared twice", clip(name))
	}
	m.structs[name] = members
	return nil
}

// attributes reads the @name or @name(…) that stand before a declaration.
func (c *cursor) attributes() map[string][]wgslToken {
	var attrs map[string][]wgslToken
	for c.take("@") {
		name := c.next().text
		var args []wgslToken
		if c.take("(") {
			args = c.until(")", false)
			c.take(")")
		}
		if attrs == nil {
			attrs = map[string][]wgslToken{}
		}
		attrs[name] = args
	}
	return attrs
}
