package program

import (
	"strconv"
	"strings"
)

// maxUniform is the largest uniform binding that every WebGPU device has, in bytes.
const maxUniform = 64 << 10

// maxTypeDepth bounds how deep types, aliases, structs and constants may refer to each other.
const maxTypeDepth = 16

// maxTypeNodes bounds the names in one type with its aliases replaced.
const maxTypeNodes = 64

// wgslType is a type as written: a name and its template arguments, of which
// the last of an array may be an expression.
type wgslType struct {
	name string
	args []wgslType
	expr []wgslToken // the argument as an expression, where it is not just a name
}

func parseType(toks []wgslToken) wgslType { return parseTypeDepth(toks, 0) }

func parseTypeDepth(toks []wgslToken, depth int) wgslType {
	c := &cursor{toks: toks}
	t := wgslType{name: c.peek().text, expr: toks}
	if c.next().kind != 'i' || depth > maxTypeDepth {
		t.name = joinTokens(toks)
		return t
	}
	if c.take("<") {
		for _, arg := range list(c.until(">", true), true) {
			t.args = append(t.args, parseTypeDepth(arg, depth+1))
		}
	}
	return t
}

// String is the type without spaces.
func (t wgslType) String() string {
	if len(t.args) == 0 {
		return t.name
	}
	args := make([]string, len(t.args))
	for i, a := range t.args {
		args[i] = a.String()
	}
	return t.name + "<" + strings.Join(args, ",") + ">"
}

// The shorthands for vectors, by suffix.
var vectorSuffix = map[string]string{"u": "u32", "i": "i32", "f": "f32"}

// resolve replaces aliases and shorthands (vec4u) and evaluates array lengths.
// A type that takes more than maxTypeNodes steps comes back half resolved.
func (m *wgslModule) resolve(t wgslType) wgslType {
	steps := maxTypeNodes
	return m.resolveSteps(t, &steps)
}

func (m *wgslModule) resolveSteps(t wgslType, steps *int) wgslType {
	if *steps--; *steps < 0 {
		return t
	}
	if a, ok := m.aliases[t.name]; ok && len(t.args) == 0 {
		return m.resolveSteps(a, steps)
	}
	if len(t.name) == 5 && strings.HasPrefix(t.name, "vec") {
		if elem, ok := vectorSuffix[t.name[4:]]; ok {
			return wgslType{name: t.name[:4], args: []wgslType{{name: elem}}}
		}
	}
	args := make([]wgslType, len(t.args))
	for i, a := range t.args {
		args[i] = m.resolveSteps(a, steps)
	}
	if t.name == "array" && len(args) == 2 {
		if n, ok := m.eval(t.args[1].expr); ok {
			args[1] = wgslType{name: strconv.FormatUint(n, 10)}
		}
	}
	return wgslType{name: t.name, args: args, expr: t.expr}
}

// layout is a type's alignment and size in bytes.
type layout struct{ align, size uint64 }

// maxLayout bounds sizes so that sums of them can't overflow.
const maxLayout = 1 << 40

// The alignment in bytes of the vector of each length.
var vectorAlign = map[string]layout{"vec2": {8, 8}, "vec3": {16, 12}, "vec4": {16, 16}}

func isScalar(name string) bool { return name == "u32" || name == "i32" || name == "f32" }

// layout is the layout of a resolved type outside uniforms; false where it is
// not one of fixed size that this scanner knows.
func (m *wgslModule) layout(t wgslType, depth int) (layout, bool) {
	switch {
	case depth > maxTypeDepth:
		return layout{}, false
	case isScalar(t.name) || t.name == "bool" || t.name == "atomic":
		return layout{4, 4}, true
	case len(t.args) == 1 && isScalar(t.args[0].name):
		l, ok := vectorAlign[t.name]
		return l, ok
	case t.name == "array" && len(t.args) == 2:
		n, err := strconv.ParseUint(t.args[1].name, 10, 32)
		l, ok := m.layout(t.args[0], depth+1)
		if err != nil || !ok || n == 0 || l.size > maxLayout/n {
			return layout{}, false
		}
		return layout{l.align, n * roundUp(l.size, l.align)}, true
	}
	return layout{}, false
}

// uniformLayout is the layout of a field of struct Constants.
func (m *wgslModule) uniformLayout(t wgslType) (layout, bool) {
	plain := isScalar(t.name) || len(t.args) == 1 && isScalar(t.args[0].name) && vectorAlign[t.name].align > 0
	rows := t.name == "array" && len(t.args) == 2 && t.args[0].name == "vec4" // whose stride is 16, as uniforms want
	if !plain && !rows {
		return layout{}, false
	}
	return m.layout(t, 0)
}

// roundUp is the least multiple of align that is not below n; align is a power of two.
func roundUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }
