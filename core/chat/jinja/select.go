package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	engine "github.com/ardanlabs/jinja"
)

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
		if err := r.work(64 + len(name)); err != nil {
			return undefined, err
		}
		next, err := item(r, arguments{list: []engine.Value{v, key, engine.NewString(path)}})
		if err != nil {
			return undefined, err
		}
		v = next
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
		if ok {
			if out[i], err = r.attrOf(v, attr); out[i].IsUndefined() {
				out[i] = a.arg(len(a.list), "default", undefined)
			}
		} else {
			out[i], err = r.apply(f, arguments{append([]engine.Value{v}, a.list[2:]...), a.named})
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
				ok, err := r.apply(f, arguments{append([]engine.Value{v}, args...), nil})
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
