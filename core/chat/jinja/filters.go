package jinja

import (
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
