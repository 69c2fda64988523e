package jinja

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	engine "github.com/ardanlabs/jinja"
)

// tests are Jinja's, by their names after "is".
var tests = map[string]func(r *run, a arguments) (bool, error){
	"defined":   is(func(v engine.Value) bool { return !v.IsUndefined() }),
	"undefined": is(engine.Value.IsUndefined), "none": is(engine.Value.IsNone), "boolean": is(engine.Value.IsBool),
	"true":    is(func(v engine.Value) bool { return v.IsBool() && v.AsBool() }),
	"false":   is(func(v engine.Value) bool { return v.IsBool() && !v.AsBool() }),
	"integer": is(engine.Value.IsInt), "float": is(engine.Value.IsFloat), "number": is(isNumber), "string": is(engine.Value.IsString),
	"mapping": is(engine.Value.IsDict), "callable": is(engine.Value.IsCallable),
	"iterable": is(func(v engine.Value) bool { return v.IsString() || v.IsList() || v.IsDict() || v.IsUndefined() }),
	"sequence": is(func(v engine.Value) bool { return v.IsString() || v.IsList() || v.IsDict() || v.IsUndefined() }),
	"odd":      divisible(2, 1), "even": divisible(2, 0),
	"divisibleby": func(r *run, a arguments) (bool, error) {
		v, err := modulo(r, arguments{list: []engine.Value{a.input(), a.arg(1, "num", undefined)}})
		return err == nil && !v.IsTruthy(), err
	},
	"eq": against(func(c int) bool { return c == 0 }), "equalto": against(func(c int) bool { return c == 0 }),
	"ne": against(func(c int) bool { return c != 0 }),
	"lt": ordered(func(c int) bool { return c < 0 }), "lessthan": ordered(func(c int) bool { return c < 0 }),
	"le": ordered(func(c int) bool { return c <= 0 }),
	"gt": ordered(func(c int) bool { return c > 0 }), "greaterthan": ordered(func(c int) bool { return c > 0 }),
	"ge": ordered(func(c int) bool { return c >= 0 }),
	"in": func(r *run, a arguments) (bool, error) { return r.contains(a.arg(1, "seq", undefined), a.input()) },
	"sameas": func(r *run, a arguments) (bool, error) {
		v := a.arg(1, "other", undefined)
		ok, err := r.equal(a.input(), v, 0)
		return ok && typeName(v) == typeName(a.input()), err
	},
	"upper": cased(unicode.IsLower), "lower": cased(unicode.IsUpper),
}

func is(f func(engine.Value) bool) func(*run, arguments) (bool, error) {
	return func(_ *run, a arguments) (bool, error) { return f(a.input()), nil }
}

func divisible(by, rest int64) func(*run, arguments) (bool, error) {
	return func(_ *run, a arguments) (bool, error) {
		v := a.input()
		if !v.IsInt() && !v.IsBool() {
			return false, fmt.Errorf("have a %s, want an int", typeName(v))
		}
		return (integer(v)%by+by)%by == rest, nil
	}
}

func against(holds func(int) bool) func(*run, arguments) (bool, error) {
	return func(r *run, a arguments) (bool, error) {
		ok, err := r.equal(a.input(), a.arg(1, "", undefined), 0)
		return holds(cmp.Compare(1, b2i(ok))), err
	}
}

func ordered(holds func(int) bool) func(*run, arguments) (bool, error) {
	return func(r *run, a arguments) (bool, error) {
		c, err := r.order(a.input(), a.arg(1, "", undefined), 0)
		return err == nil && holds(c), err
	}
}

// cased holds for strings with letters and none of the wrong case.
func cased(wrong func(rune) bool) func(*run, arguments) (bool, error) {
	return func(r *run, a arguments) (bool, error) {
		s, err := r.str(a.input())
		s = plain(s)
		return strings.IndexFunc(s, unicode.IsLetter) >= 0 && strings.IndexFunc(s, wrong) < 0, err
	}
}
