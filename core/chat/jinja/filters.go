package jinja

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	engine "github.com/ardanlabs/jinja"
)

// filters are Jinja's, but for those of HTML and of random choice.
var filters = map[string]function{
	"abs": absFilter, "attr": attrFilter, "batch": batchFilter, "capitalize": mappedText(capitalize), "count": lengthFilter,
	"d": defaultFilter, "default": defaultFilter, "dictsort": dictsortFilter, "e": escapeFilter, "escape": escapeFilter,
	"first": endFilter(0), "float": floatFilter, "format": func(r *run, a arguments) (engine.Value, error) {
		s, err := r.str(a.input())
		if err != nil {
			return undefined, err
		}
		return r.percent(s, engine.NewList(a.list[1:]))
	},
	"from_json": fromJSON, "fromjson": fromJSON,
	"groupby": groupbyFilter, "indent": indentFilter, "int": intFilter, "items": itemsFilter, "join": joinFilter, "last": endFilter(-1),
	"length": lengthFilter, "list": listFilter, "lower": mapped(unicode.ToLower), "map": mapFilter, "max": extremeFilter(1), "min": extremeFilter(-1),
	"reject": selectFilter(false, false), "rejectattr": selectFilter(true, false), "replace": replace, "reverse": reverseFilter,
	"round": roundFilter, "safe": same, "select": selectFilter(false, true), "selectattr": selectFilter(true, true), "sort": sortFilter,
	"string": output, "sum": sumFilter, "title": mappedText(title), "tojson": toJSON, "trim": strip(true, true), "unique": uniqueFilter,
	"upper": mapped(unicode.ToUpper), "wordcount": wordcountFilter,
}

func same(_ *run, a arguments) (engine.Value, error) { return a.input(), nil }

// sorted are a map's keys in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func absFilter(r *run, a arguments) (engine.Value, error) {
	v := a.input()
	if !isNumber(v) {
		return undefined, fmt.Errorf("abs: have a %s, want a number", typeName(v))
	}
	if float(v) < 0 {
		return negate(r, a)
	}
	return v, nil
}

func attrFilter(r *run, a arguments) (engine.Value, error) {
	name, err := wantString(a.arg(1, "name", undefined))
	if err != nil {
		return undefined, err
	}
	return r.path(a.input(), plain(name))
}

// path is value.a.b, as the filters with attribute= read it.
func (r *run) path(v engine.Value, path string) (engine.Value, error) {
	for name := range strings.SplitSeq(path, ".") {
		key := engine.NewString(name)
		if n, err := strconv.Atoi(name); err == nil {
			key = engine.NewInt(int64(n))
		}
		next, err := item(r, arguments{list: []engine.Value{v, key, engine.NewString(path)}})
		if err != nil {
			return undefined, err
		}
		v = next
	}
	return v, nil
}

func batchFilter(r *run, a arguments) (engine.Value, error) {
	items, err := r.items(a.input())
	if err != nil {
		return undefined, err
	}
	n, err := index(a.arg(1, "linecount", undefined))
	if err != nil || n <= 0 {
		return undefined, errors.Join(err, errors.New("batch: want a count of at least 1"))
	}
	fill := a.arg(2, "fill_with", none)
	var out []engine.Value
	for row := range slices.Chunk(items, n) {
		row = slices.Clone(row)
		if !fill.IsNone() {
			if err := r.spend(valueSize * n); err != nil {
				return undefined, err
			}
			for len(row) < n {
				row = append(row, fill)
			}
		}
		out = append(out, engine.NewList(row))
	}
	if err := r.spend(valueSize * len(items)); err != nil {
		return undefined, err
	}
	return r.values(out)
}

func lengthFilter(r *run, a arguments) (engine.Value, error) {
	v, n := a.input(), 0
	switch {
	case v.IsString():
		n = length(v.AsString())
	case v.IsList():
		n = v.AsList().Len()
	case v.IsDict():
		n = v.AsDict().Len()
	case !v.IsUndefined():
		return undefined, fmt.Errorf("object of type %q has no len()", typeName(v))
	}
	return engine.NewInt(int64(n)), r.work(n)
}

func defaultFilter(_ *run, a arguments) (engine.Value, error) {
	v := a.input()
	if v.IsUndefined() || a.arg(2, "boolean", engine.NewBool(false)).IsTruthy() && !v.IsTruthy() {
		return a.arg(1, "default_value", empty), nil
	}
	return v, nil
}

// sortKey is what strings are sorted by, unless case counts.
func sortKey(v engine.Value, caseSensitive bool) engine.Value {
	if v.IsString() && !caseSensitive {
		return engine.NewString(strings.ToLower(plain(v.AsString())))
	}
	return v
}

// sortBy sorts by keys, stable.
func (r *run) sortBy(items []engine.Value, reverse bool, key func(engine.Value) (engine.Value, error)) ([]engine.Value, error) {
	type pair struct{ key, item engine.Value }
	pairs := make([]pair, len(items))
	var failed error
	for i, v := range items {
		k, err := key(v)
		if err != nil {
			return nil, err
		}
		if k.IsString() {
			failed = r.spend(len(k.AsString()))
		}
		pairs[i] = pair{k, v}
	}
	slices.SortStableFunc(pairs, func(x, y pair) int {
		if failed != nil {
			return 0
		}
		c, err := r.order(x.key, y.key, 0)
		if failed = err; reverse {
			c = -c
		}
		return c
	})
	out := make([]engine.Value, len(items))
	for i, p := range pairs {
		out[i] = p.item
	}
	if failed == nil {
		failed = r.spend(3 * valueSize * len(items))
	}
	return out, failed
}

func dictsortFilter(r *run, a arguments) (engine.Value, error) {
	v := a.input()
	if !v.IsDict() {
		return undefined, fmt.Errorf("dictsort: have a %s, want a dict", typeName(v))
	}
	pairs, err := r.pairs(v.AsDict())
	if err != nil {
		return undefined, err
	}
	sensitive := a.arg(1, "case_sensitive", engine.NewBool(false)).IsTruthy()
	by := 0
	if s := a.arg(2, "by", none); s.IsString() && plain(s.AsString()) == "value" {
		by = 1
	}
	items, err := r.sortBy(pairs.AsList().Items, a.arg(3, "reverse", none).IsTruthy(), func(p engine.Value) (engine.Value, error) {
		return sortKey(p.AsList().Items[by], sensitive), nil
	})
	return engine.NewList(items), err
}

func sortFilter(r *run, a arguments) (engine.Value, error) {
	items, err := r.items(a.input())
	if err != nil {
		return undefined, err
	}
	sensitive := a.arg(2, "case_sensitive", none).IsTruthy()
	attr := a.arg(3, "attribute", none)
	items, err = r.sortBy(items, a.arg(1, "reverse", none).IsTruthy(), func(v engine.Value) (engine.Value, error) {
		v, err := r.attrOf(v, attr)
		return sortKey(v, sensitive), err
	})
	return engine.NewList(items), err
}

// attrOf is the attribute that a filter's argument names, or the value itself.
func (r *run) attrOf(v, attr engine.Value) (engine.Value, error) {
	switch {
	case attr.IsNone():
		return v, nil
	case attr.IsInt():
		return item(r, arguments{list: []engine.Value{v, attr, engine.NewString("item")}})
	}
	name, err := wantString(attr)
	if err != nil {
		return undefined, err
	}
	return r.path(v, plain(name))
}

func groupbyFilter(r *run, a arguments) (engine.Value, error) {
	items, err := r.items(a.input())
	if err != nil {
		return undefined, err
	}
	attr := a.arg(1, "attribute", none)
	key := func(v engine.Value) (engine.Value, error) { return r.attrOf(v, attr) }
	if items, err = r.sortBy(items, false, key); err != nil {
		return undefined, err
	}
	var out []engine.Value
	for _, v := range items {
		k, err := key(v)
		if err != nil {
			return undefined, err
		}
		if n := len(out); n > 0 {
			group := out[n-1].AsList()
			if same, err := r.equal(group.Items[0], k, 0); err != nil {
				return undefined, err
			} else if same {
				group.Items[1].AsList().Append(v)
				continue
			}
		}
		out = append(out, engine.NewList([]engine.Value{k, engine.NewList([]engine.Value{v})}))
	}
	return r.values(out)
}

func escapeFilter(r *run, a arguments) (engine.Value, error) {
	v := a.input()
	for _, e := range [][2]string{{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {`"`, "&#34;"}} {
		next, err := replace(r, arguments{list: []engine.Value{v, engine.NewString(e[0]), engine.NewString(e[1])}})
		if err != nil {
			return undefined, err
		}
		v = next
	}
	return v, nil
}

// endFilter is the first or last item.
func endFilter(at int64) function {
	return func(r *run, a arguments) (engine.Value, error) {
		items, err := r.items(a.input())
		if err != nil {
			return undefined, err
		}
		if i, ok := position(at, len(items)); ok {
			return items[i], nil
		}
		return undefined, nil
	}
}

func floatFilter(_ *run, a arguments) (engine.Value, error) {
	v := a.input()
	if v.IsString() {
		if f, err := strconv.ParseFloat(strings.TrimSpace(plain(v.AsString())), 64); err == nil {
			return engine.NewFloat(f), nil
		}
	} else if isNumber(v) {
		return engine.NewFloat(float(v)), nil
	}
	return a.arg(1, "default", engine.NewFloat(0)), nil
}

func intFilter(_ *run, a arguments) (engine.Value, error) {
	v := a.input()
	switch {
	case v.IsString():
		s := strings.TrimSpace(plain(v.AsString()))
		base, err := index(a.arg(2, "base", engine.NewInt(10)))
		if err != nil || base < 2 || base > 36 {
			return undefined, errors.New("int: want a base of 2 to 36")
		}
		if n, err := strconv.ParseInt(s, base, 64); err == nil {
			return engine.NewInt(n), nil
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<63 {
			return engine.NewInt(int64(f)), nil
		}
	case v.IsFloat() && math.Abs(v.AsFloat()) < 1<<63:
		return engine.NewInt(int64(v.AsFloat())), nil
	case v.IsInt() || v.IsBool():
		return engine.NewInt(integer(v)), nil
	}
	return a.arg(1, "default", engine.NewInt(0)), nil
}

func itemsFilter(r *run, a arguments) (engine.Value, error) {
	v := a.input()
	switch {
	case v.IsDict():
		return r.pairs(v.AsDict())
	case v.IsUndefined():
		return engine.NewList(nil), nil
	}
	return undefined, errors.New("can only get item pairs from a mapping")
}

func joinFilter(r *run, a arguments) (engine.Value, error) {
	items, err := r.items(a.input())
	if err != nil {
		return undefined, err
	}
	if attr := a.arg(2, "attribute", none); !attr.IsNone() {
		items = slices.Clone(items)
		for i := range items {
			if items[i], err = r.attrOf(items[i], attr); err != nil {
				return undefined, err
			}
		}
	}
	sep, err := r.str(a.arg(1, "d", empty))
	if err != nil {
		return undefined, err
	}
	return r.join(items, sep)
}

func listFilter(r *run, a arguments) (engine.Value, error) {
	items, err := r.items(a.input())
	if err != nil {
		return undefined, err
	}
	return r.values(slices.Clone(items))
}

// mapFilter applies a filter to each item, or takes an attribute of it.
func mapFilter(r *run, a arguments) (engine.Value, error) {
	items, err := r.items(a.input())
	if err != nil {
		return undefined, err
	}
	attr, ok := a.named["v_attribute"]
	var f function
	if !ok {
		name, err := wantString(a.arg(1, "", undefined))
		if err != nil {
			return undefined, err
		}
		if f = r.library["f_filter_"+plain(name)]; f == nil {
			return undefined, fmt.Errorf("no filter named %q", plain(name))
		}
	}
	out := make([]engine.Value, len(items))
	for i, v := range items {
		if err := r.work(64); err != nil {
			return undefined, err
		}
		if ok {
			if out[i], err = r.attrOf(v, attr); out[i].IsUndefined() {
				out[i] = a.arg(len(a.list), "default", undefined)
			}
		} else {
			out[i], err = f(r, arguments{append([]engine.Value{v}, a.list[2:]...), a.named})
		}
		if err != nil {
			return undefined, err
		}
	}
	return r.values(out)
}

// selectFilter keeps the items, or those with an attribute, that pass a test, or
// that fail it.
func selectFilter(byAttr, want bool) function {
	return func(r *run, a arguments) (engine.Value, error) {
		items, err := r.items(a.input())
		if err != nil {
			return undefined, err
		}
		rest, attr := a.list[1:], none
		if byAttr {
			if len(rest) == 0 {
				return undefined, errors.New("want the name of an attribute")
			}
			attr, rest = rest[0], rest[1:]
		}
		test := func(v engine.Value, _ []engine.Value) (bool, error) { return v.IsTruthy(), nil }
		if len(rest) > 0 {
			name, err := wantString(rest[0])
			if err != nil {
				return undefined, err
			}
			f := r.library["t_"+plain(name)]
			if f == nil {
				f = r.library[map[string]string{"==": "f_eq", "!=": "f_ne", "<": "f_lt", "<=": "f_le", ">": "f_gt", ">=": "f_ge"}[plain(name)]]
			}
			if f == nil {
				return undefined, fmt.Errorf("no test named %q", plain(name))
			}
			test = func(v engine.Value, args []engine.Value) (bool, error) {
				ok, err := f(r, arguments{append([]engine.Value{v}, args...), nil})
				return ok.IsTruthy(), err
			}
		}
		var out []engine.Value
		for _, v := range items {
			if err := r.work(64); err != nil {
				return undefined, err
			}
			of, err := r.attrOf(v, attr)
			if err != nil {
				return undefined, err
			}
			ok, err := test(of, rest[min(1, len(rest)):])
			if err != nil {
				return undefined, err
			}
			if ok == want {
				out = append(out, v)
			}
		}
		return r.values(out)
	}
}

func extremeFilter(side int) function {
	return func(r *run, a arguments) (engine.Value, error) {
		items, err := r.items(a.input())
		if err != nil || len(items) == 0 {
			return undefined, err
		}
		sensitive, attr := a.arg(1, "case_sensitive", none).IsTruthy(), a.arg(2, "attribute", none)
		best, bestKey := undefined, undefined
		for i, v := range items {
			key, err := r.attrOf(v, attr)
			if err != nil {
				return undefined, err
			}
			key = sortKey(key, sensitive)
			c := side
			if i > 0 {
				if c, err = r.order(key, bestKey, 0); err != nil {
					return undefined, err
				}
			}
			if c == side {
				best, bestKey = v, key
			}
		}
		return best, nil
	}
}

func reverseFilter(r *run, a arguments) (engine.Value, error) {
	if v := a.input(); v.IsString() {
		rs := runes(v.AsString())
		slices.Reverse(rs)
		return r.text(fromRunes(rs))
	}
	items, err := r.items(a.input())
	if err != nil {
		return undefined, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	return r.values(items)
}

func roundFilter(_ *run, a arguments) (engine.Value, error) {
	v := a.input()
	n, err := index(a.arg(1, "precision", engine.NewInt(0)))
	if err != nil || !isNumber(v) {
		return undefined, errors.Join(err, fmt.Errorf("round: have a %s, want a number", typeName(v)))
	}
	scale := math.Pow10(max(min(n, 300), -300))
	f := map[string]func(float64) float64{"common": math.RoundToEven, "ceil": math.Ceil, "floor": math.Floor}
	method, err := wantString(a.arg(2, "method", engine.NewString("common")))
	if err != nil || f[plain(method)] == nil {
		return undefined, errors.New("round: want the method common, ceil or floor")
	}
	return engine.NewFloat(f[plain(method)](float(v)*scale) / scale), nil
}

func sumFilter(r *run, a arguments) (engine.Value, error) {
	items, err := r.items(a.input())
	if err != nil {
		return undefined, err
	}
	attr, total := a.arg(1, "attribute", none), a.arg(2, "start", engine.NewInt(0))
	for _, v := range items {
		if v, err = r.attrOf(v, attr); err != nil {
			return undefined, err
		}
		if total, err = add(r, arguments{list: []engine.Value{total, v}}); err != nil {
			return undefined, err
		}
	}
	return total, nil
}

func uniqueFilter(r *run, a arguments) (engine.Value, error) {
	items, err := r.items(a.input())
	if err != nil {
		return undefined, err
	}
	sensitive, attr := a.arg(1, "case_sensitive", none).IsTruthy(), a.arg(2, "attribute", none)
	seen := map[string]bool{}
	var out []engine.Value
	for _, v := range items {
		of, err := r.attrOf(v, attr)
		if err != nil {
			return undefined, err
		}
		var b strings.Builder
		if err := r.repr(&b, sortKey(of, sensitive), 0); err != nil {
			return undefined, err
		}
		if key := plain(b.String()); !seen[key] {
			seen[key] = true
			out = append(out, v)
		}
	}
	return r.values(out)
}

func wordcountFilter(r *run, a arguments) (engine.Value, error) {
	s, err := r.str(a.input())
	return engine.NewInt(int64(len(strings.FieldsFunc(plain(s), func(c rune) bool {
		return c != '_' && !unicode.IsLetter(c) && !unicode.IsNumber(c)
	})))), err
}

func indentFilter(r *run, a arguments) (engine.Value, error) {
	s, err := r.str(a.input())
	if err != nil {
		return undefined, err
	}
	width, pad := a.arg(1, "width", engine.NewInt(4)), ""
	if width.IsString() {
		pad = width.AsString()
	} else {
		n, err := index(width)
		if err != nil {
			return undefined, err
		}
		if err := r.spend(max(n, 0)); err != nil {
			return undefined, err
		}
		pad = strings.Repeat(" ", max(n, 0))
	}
	first, blank := a.arg(2, "first", none).IsTruthy(), a.arg(3, "blank", none).IsTruthy()
	all := lines(s + "\n")
	if err := r.spend(len(s) + len(all)*(len(pad)+16)); err != nil {
		return undefined, err
	}
	for i, line := range all {
		if i > 0 && (line != "" || blank) || i == 0 && first {
			all[i] = pad + line
		}
	}
	return engine.NewString(strings.Join(all, "\n")), nil
}

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
