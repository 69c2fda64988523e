package jinja

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	engine "github.com/ardanlabs/jinja"
)

var (
	none      = engine.None()
	undefined = engine.Undefined()
)

// maxValueDepth is how deep lists and dicts may lie in one another: a template
// can put a list into itself.
const maxValueDepth = 100

var errDeep = fmt.Errorf("have lists and dicts more than %d deep in one another", maxValueDepth)

// typeName is Python's.
func typeName(v engine.Value) string {
	switch {
	case v.IsUndefined():
		return "Undefined"
	case v.IsNone():
		return "NoneType"
	case v.IsBool():
		return "bool"
	case v.IsInt():
		return "int"
	case v.IsFloat():
		return "float"
	case v.IsString():
		return "str"
	case v.IsList():
		return "list"
	case v.IsDict():
		return "dict"
	}
	return "function"
}

// str is Python's str(): what an output tag prints.
func (r *run) str(v engine.Value) (string, error) {
	if v.IsString() {
		return v.AsString(), nil
	}
	if v.IsUndefined() {
		return "", nil
	}
	var b strings.Builder
	err := r.repr(&b, v, 0)
	return b.String(), err
}

// repr is Python's repr().
func (r *run) repr(b *strings.Builder, v engine.Value, depth int) error {
	if depth > maxValueDepth {
		return errDeep
	}
	before := b.Len()
	switch {
	case v.IsUndefined():
		b.WriteString("Undefined")
	case v.IsNone():
		b.WriteString("None")
	case v.IsBool():
		b.WriteString(map[bool]string{true: "True", false: "False"}[v.AsBool()])
	case v.IsInt():
		b.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		b.WriteString(floatText(v.AsFloat()))
	case v.IsString():
		quote(b, v.AsString())
	case v.IsList():
		b.WriteByte('[')
		for i, item := range v.AsList().Items {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := r.repr(b, item, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return r.spend(2)
	case v.IsDict():
		b.WriteByte('{')
		d := v.AsDict()
		for i, key := range d.Keys {
			if i > 0 {
				b.WriteString(", ")
			}
			quote(b, key)
			b.WriteString(": ")
			if err := r.repr(b, d.Data[key], depth+1); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return r.spend(2)
	default:
		b.WriteString("<function>")
	}
	return r.spend(b.Len() - before)
}

// quote writes Python's repr of a string.
func quote(b *strings.Builder, s string) {
	q := '\''
	if text := plain(s); strings.ContainsRune(text, '\'') && !strings.ContainsRune(text, '"') {
		q = '"'
	}
	b.WriteRune(q)
	for _, r := range runes(s) {
		c := r &^ fromMessage
		switch {
		case c == q || c == '\\':
			writeRune(b, '\\'|r&fromMessage)
			writeRune(b, r)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7F:
			fmt.Fprintf(b, `\x%02x`, c)
		case c >= 0x80 && !unicode.IsPrint(c):
			switch {
			case c < 0x100:
				fmt.Fprintf(b, `\x%02x`, c)
			case c < 0x10000:
				fmt.Fprintf(b, `\u%04x`, c)
			default:
				fmt.Fprintf(b, `\U%08x`, c)
			}
		default:
			writeRune(b, r)
		}
	}
	b.WriteRune(q)
}

// floatText is Python's repr of a float.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.Repeat("-", b2i(f < 0)) + "inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// equal is Python's ==: numbers and bools of equal value are equal.
func (r *run) equal(a, b engine.Value, depth int) (bool, error) {
	if depth > maxValueDepth {
		return false, errDeep
	}
	switch {
	case isNumber(a) && isNumber(b):
		if !a.IsFloat() && !b.IsFloat() {
			return integer(a) == integer(b), nil
		}
		return float(a) == float(b), nil
	case a.IsString() && b.IsString():
		x, y := a.AsString(), b.AsString()
		return plain(x) == plain(y), r.work(len(x) + len(y))
	case a.IsList() && b.IsList():
		x, y := a.AsList().Items, b.AsList().Items
		if len(x) != len(y) {
			return false, nil
		}
		for i := range x {
			if same, err := r.equal(x[i], y[i], depth+1); err != nil || !same {
				return false, err
			}
		}
		return true, r.work(valueSize * len(x))
	case a.IsDict() && b.IsDict():
		x, y := a.AsDict(), b.AsDict()
		if x.Len() != y.Len() {
			return false, nil
		}
		for _, k := range x.Keys {
			other, ok := lookup(y, k)
			if !ok {
				return false, nil
			}
			if same, err := r.equal(x.Data[k], other, depth+1); err != nil || !same {
				return false, err
			}
		}
		return true, r.work(valueSize * x.Len())
	}
	return a.IsNone() && b.IsNone() || a.IsUndefined() && b.IsUndefined(), nil
}

// order compares as Python's < does: numbers with numbers, strings with strings
// and lists with lists.
func (r *run) order(a, b engine.Value, depth int) (int, error) {
	if depth > maxValueDepth {
		return 0, errDeep
	}
	switch {
	case isNumber(a) && isNumber(b):
		x, y := float(a), float(b)
		if !a.IsFloat() && !b.IsFloat() {
			return sign(integer(a) < integer(b), integer(a) > integer(b)), nil
		}
		return sign(x < y, x > y), nil
	case a.IsString() && b.IsString():
		x, y := a.AsString(), b.AsString()
		return strings.Compare(plain(x), plain(y)), r.work(len(x) + len(y))
	case a.IsList() && b.IsList():
		x, y := a.AsList().Items, b.AsList().Items
		for i := range min(len(x), len(y)) {
			if c, err := r.order(x[i], y[i], depth+1); err != nil || c != 0 {
				return c, err
			}
		}
		return sign(len(x) < len(y), len(x) > len(y)), r.work(valueSize * len(x))
	}
	return 0, fmt.Errorf("'<' not supported between instances of %q and %q", typeName(a), typeName(b))
}

func sign(less, more bool) int {
	return b2i(more) - b2i(less)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// isNumber holds for bools, too, which are integers in Python.
func isNumber(v engine.Value) bool { return v.IsInt() || v.IsFloat() || v.IsBool() }

// integer is the value of an int or a bool.
func integer(v engine.Value) int64 {
	if v.IsBool() {
		return int64(b2i(v.AsBool()))
	}
	return v.AsInt()
}

func float(v engine.Value) float64 {
	if v.IsFloat() {
		return v.AsFloat()
	}
	return float64(integer(v))
}

// index is an argument that must be an integer.
func index(v engine.Value) (int, error) {
	if !v.IsInt() && !v.IsBool() {
		return 0, fmt.Errorf("have a %s, want an int", typeName(v))
	}
	n := integer(v)
	return int(max(min(n, math.MaxInt32), -math.MaxInt32)), nil
}

// lookup finds a key whether or not it is message text: the keys of a request's
// dicts are.
func lookup(d *engine.Dict, key string) (engine.Value, bool) {
	key = plain(key)
	if v, ok := d.Data[key]; ok {
		return v, true
	}
	v, ok := d.Data[mark(key)]
	return v, ok
}

// put sets a key. A key with any message text is message text.
func put(d *engine.Dict, key string, v engine.Value) {
	text := plain(key)
	marked := mark(text)
	if _, ok := d.Data[marked]; ok || hasMarks(key) {
		if _, ok := d.Data[text]; !ok {
			text = marked
		}
	}
	d.Set(text, v)
}

// items are what a loop over the value sees.
func (r *run) items(v engine.Value) ([]engine.Value, error) {
	switch {
	case v.IsList():
		return v.AsList().Items, r.work(valueSize * v.AsList().Len())
	case v.IsDict():
		d := v.AsDict()
		out := make([]engine.Value, d.Len())
		for i, k := range d.Keys {
			out[i] = engine.NewString(k)
		}
		return out, r.spend(valueSize * len(out))
	case v.IsString():
		s := v.AsString()
		if err := r.spend(valueSize * len(s)); err != nil {
			return nil, err
		}
		var out []engine.Value
		for s != "" {
			_, n := decode(s)
			out = append(out, engine.NewString(s[:n]))
			s = s[n:]
		}
		return out, nil
	case v.IsUndefined():
		return nil, nil
	}
	return nil, fmt.Errorf("%q object is not iterable", typeName(v))
}

var errUndefined = errors.New("value is undefined")

// want is a string argument.
func wantString(v engine.Value) (string, error) {
	if !v.IsString() {
		return "", fmt.Errorf("have a %s, want a str", typeName(v))
	}
	return v.AsString(), nil
}
