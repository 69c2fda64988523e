package jinja

import (
	"errors"
	"fmt"
	"strings"

	engine "github.com/ardanlabs/jinja"
)

// library is all that a template can reach, by the engine's name: operators as
// f_…, filters as f_filter_…, tests as t_…, functions as v_….
var library = func() map[string]function {
	m := map[string]function{
		"f_out": output, "f_step": step, "f_weigh": weigh, "f_enter": enter, "f_leave": leave, "f_list": list,
		"f_attr": attribute, "f_item": item, "f_slice": slice, "f_call": call, "f_callable": callable, "f_iter": iterate, "f_unpack": unpack,
		"f_dict": makeDict, "f_namespace": checkNamespace,
		"f_add": add, "f_sub": arithmetic('-'), "f_mul": multiply, "f_div": divide, "f_floordiv": arithmetic('/'), "f_mod": modulo, "f_pow": power,
		"f_neg": negate, "f_pos": positive, "f_concat": concat, "f_in": in(true), "f_notin": in(false), "f_eq": equals(true), "f_ne": equals(false),
		"f_lt": compared(func(c int) bool { return c < 0 }), "f_le": compared(func(c int) bool { return c <= 0 }),
		"f_gt": compared(func(c int) bool { return c > 0 }), "f_ge": compared(func(c int) bool { return c >= 0 }),
	}
	for name, f := range globals {
		m["v_"+name] = f
	}
	for name, f := range filters {
		m["f_filter_"+name] = f
	}
	for name, f := range tests {
		m["t_"+name] = func(r *run, a arguments) (engine.Value, error) {
			ok, err := f(r, a)
			return engine.NewBool(ok), err
		}
	}
	return m
}()

func output(r *run, a arguments) (engine.Value, error) {
	s, err := r.str(a.input())
	if err != nil {
		return undefined, err
	}
	return r.text(s)
}

var empty = engine.NewString("")

// step begins a turn of a loop, or a block that is called. Its input is how long the
// code is that now runs: much of that may be names, which call nothing of ours.
func step(r *run, a arguments) (engine.Value, error) {
	return empty, r.work(int(a.input().AsInt()))
}

// weigh gives its input, an expression's value, and notes how long the expression is.
func weigh(r *run, a arguments) (engine.Value, error) {
	return a.input(), r.work(int(a.list[1].AsInt()))
}

// enter is step for a macro.
func enter(r *run, a arguments) (engine.Value, error) {
	if r.calls++; r.calls > maxCalls {
		return undefined, fmt.Errorf("have more than %d macros inside one another", maxCalls)
	}
	return step(r, a)
}

func leave(r *run, _ arguments) (engine.Value, error) {
	r.calls--
	return empty, nil
}

// undefinedError says which part of the template is undefined: it is the last argument.
func undefinedError(a arguments) error {
	return fmt.Errorf("'%s' is undefined", a.list[len(a.list)-1].AsString())
}

// attribute is value.name: a method or an attribute, else an item.
func attribute(r *run, a arguments) (engine.Value, error) {
	v, name := a.list[0], a.list[1].AsString()
	if v.IsUndefined() {
		return undefined, undefinedError(a)
	}
	if f := r.method(v, name); f != nil {
		return r.callable(name, f), nil
	}
	if v.IsDict() {
		found, _ := lookup(v.AsDict(), name)
		return found, nil
	}
	return undefined, nil
}

// item is value[key]: an item, else a method.
func item(r *run, a arguments) (engine.Value, error) {
	v, key := a.list[0], a.list[1]
	switch {
	case v.IsUndefined():
		return undefined, undefinedError(a)
	case v.IsDict() && key.IsString():
		if found, ok := lookup(v.AsDict(), key.AsString()); ok {
			return found, nil
		}
	case v.IsList() && isNumber(key) && !key.IsFloat():
		items := v.AsList().Items
		if i, ok := position(integer(key), len(items)); ok {
			return items[i], nil
		}
	case v.IsString() && isNumber(key) && !key.IsFloat():
		rs := runes(v.AsString())
		if err := r.work(4 * len(rs)); err != nil {
			return undefined, err
		}
		if i, ok := position(integer(key), len(rs)); ok {
			return engine.NewString(fromRunes(rs[i : i+1])), nil
		}
	}
	if key.IsString() {
		if f := r.method(v, plain(key.AsString())); f != nil {
			return r.callable("method", f), nil
		}
	}
	return undefined, nil
}

func position(i int64, n int) (int, bool) {
	if i < 0 {
		i += int64(n)
	}
	return int(i), 0 <= i && i < int64(n)
}

func slice(r *run, a arguments) (engine.Value, error) {
	v := a.list[0]
	var rs []rune
	n := 0
	switch {
	case v.IsList():
		n = v.AsList().Len()
	case v.IsString():
		rs = runes(v.AsString())
		n = len(rs)
	default:
		return undefined, fmt.Errorf("%q object can't be sliced", typeName(v))
	}
	at, err := sliceIndices(a.list[1:], n)
	if err != nil {
		return undefined, err
	}
	if err := r.spend(valueSize * (len(at) + n/8)); err != nil {
		return undefined, err
	}
	if v.IsList() {
		out := make([]engine.Value, len(at))
		for i, j := range at {
			out[i] = v.AsList().Items[j]
		}
		return engine.NewList(out), nil
	}
	out := make([]rune, len(at))
	for i, j := range at {
		out[i] = rs[j]
	}
	return engine.NewString(fromRunes(out)), nil
}

// sliceIndices are those that start:stop:step takes of n, as in Python.
func sliceIndices(bounds []engine.Value, n int) (at []int, err error) {
	by := 1
	if !bounds[2].IsNone() {
		if by, err = index(bounds[2]); err != nil {
			return nil, err
		}
	}
	if by == 0 {
		return nil, errors.New("slice step cannot be zero")
	}
	low, high := 0, n // where a bound may be
	if by < 0 {
		low, high = -1, n-1
	}
	bound := func(v engine.Value, otherwise int) int {
		if v.IsNone() || err != nil {
			return otherwise
		}
		i, e := index(v)
		if err = e; i < 0 {
			i += n
		}
		return max(low, min(high, i))
	}
	from, to := low, high
	if by < 0 {
		from, to = high, low
	}
	from, to = bound(bounds[0], from), bound(bounds[1], to)
	for i := from; err == nil && (by > 0 && i < to || by < 0 && i > to); i += by {
		at = append(at, i)
	}
	return at, err
}

// call calls a macro, a function or a method.
func call(r *run, a arguments) (engine.Value, error) {
	if _, err := callable(r, arguments{list: a.list[:2]}); err != nil {
		return undefined, err
	}
	return a.list[0].AsCallable().Fn(a.list[2:], a.named)
}

func callable(_ *run, a arguments) (engine.Value, error) {
	switch fn := a.list[0]; {
	case fn.IsUndefined():
		return undefined, undefinedError(a)
	case !fn.IsCallable():
		return undefined, fmt.Errorf("'%s' is a %s, want a function", a.list[1].AsString(), typeName(fn))
	}
	return empty, nil
}

func iterate(r *run, a arguments) (engine.Value, error) {
	items, err := r.items(a.input())
	return engine.NewList(items), err
}

// unpack is the i-th of the n items that a value must have.
func unpack(r *run, a arguments) (engine.Value, error) {
	items, err := r.items(a.input())
	if err != nil {
		return undefined, err
	}
	if n := a.list[2].AsInt(); int64(len(items)) != n {
		return undefined, fmt.Errorf("have %d values to unpack, want %d", len(items), n)
	}
	return items[a.list[1].AsInt()], nil
}

// makeDict makes a dict of keys and values in turn.
func makeDict(r *run, a arguments) (engine.Value, error) {
	pairs := a.input().AsList().Items
	d := engine.NewDict()
	for i := 0; i+1 < len(pairs); i += 2 {
		key, err := r.str(pairs[i])
		if err != nil {
			return undefined, err
		}
		if err := r.spend(len(key) + 2*valueSize); err != nil {
			return undefined, err
		}
		put(d.AsDict(), key, pairs[i+1])
	}
	return d, nil
}

func checkNamespace(r *run, a arguments) (engine.Value, error) {
	if v := a.input(); !v.IsDict() || !r.namespaces[v.AsDict()] {
		return undefined, errors.New("cannot assign attribute on non-namespace object")
	}
	return empty, nil
}

// list is a list that the template writes out.
func list(r *run, a arguments) (engine.Value, error) {
	return a.input(), r.spend(valueSize * a.input().AsList().Len())
}

func concat(r *run, a arguments) (engine.Value, error) {
	x, err := r.str(a.list[0])
	if err != nil {
		return undefined, err
	}
	y, err := r.str(a.list[1])
	if err != nil {
		return undefined, err
	}
	if err := r.spend(len(x) + len(y)); err != nil {
		return undefined, err
	}
	return engine.NewString(x + y), nil
}

// in is "in", or "not in".
func in(want bool) function {
	return func(r *run, a arguments) (engine.Value, error) {
		found, err := r.contains(a.list[1], a.list[0])
		return engine.NewBool(found == want), err
	}
}

func (r *run) contains(container, v engine.Value) (bool, error) {
	switch {
	case container.IsString():
		if !v.IsString() {
			return false, fmt.Errorf("'in <string>' requires string as left operand, not %s", typeName(v))
		}
		s, part := container.AsString(), v.AsString()
		return strings.Contains(plain(s), plain(part)), r.work(len(s) + len(part))
	case container.IsDict():
		if !v.IsString() {
			return false, nil
		}
		_, ok := lookup(container.AsDict(), v.AsString())
		return ok, nil
	case container.IsList():
		for _, item := range container.AsList().Items {
			if same, err := r.equal(item, v, 0); err != nil || same {
				return same, err
			}
		}
		return false, r.work(valueSize * container.AsList().Len())
	case container.IsUndefined():
		return false, nil
	}
	return false, fmt.Errorf("argument of type %q is not iterable", typeName(container))
}

func equals(want bool) function {
	return func(r *run, a arguments) (engine.Value, error) {
		same, err := r.equal(a.list[0], a.list[1], 0)
		return engine.NewBool(same == want), err
	}
}

func compared(holds func(int) bool) function {
	return func(r *run, a arguments) (engine.Value, error) {
		c, err := r.order(a.list[0], a.list[1], 0)
		return engine.NewBool(holds(c)), err
	}
}
