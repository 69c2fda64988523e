package jinja

import (
	"errors"

	engine "github.com/ardanlabs/jinja"
)

// listMethods get the list as their first argument.
var listMethods = map[string]function{
	"append": func(r *run, a arguments) (engine.Value, error) {
		if len(a.list) != 2 {
			return undefined, errors.New("want one argument")
		}
		a.list[0].AsList().Append(a.list[1])
		return none, r.spend(valueSize)
	},
	"extend": func(r *run, a arguments) (engine.Value, error) {
		items, err := r.items(a.arg(1, "", undefined))
		if err != nil {
			return undefined, err
		}
		l := a.list[0].AsList()
		l.Items = append(l.Items, items...)
		return none, r.spend(valueSize * len(items))
	},
	"insert": func(r *run, a arguments) (engine.Value, error) {
		if len(a.list) != 3 {
			return undefined, errors.New("want two arguments")
		}
		i, err := index(a.list[1])
		if err != nil {
			return undefined, err
		}
		l := a.list[0].AsList()
		if i < 0 {
			i += len(l.Items)
		}
		i = min(max(i, 0), len(l.Items))
		items := append(append(append([]engine.Value{}, l.Items[:i]...), a.list[2]), l.Items[i:]...)
		l.Items = items
		return none, r.spend(valueSize * len(items))
	},
	"pop": func(r *run, a arguments) (engine.Value, error) {
		l := a.list[0].AsList()
		i, err := index(a.arg(1, "index", engine.NewInt(-1)))
		if err != nil {
			return undefined, err
		}
		at, ok := position(int64(i), len(l.Items))
		if !ok {
			return undefined, errors.New("pop index out of range")
		}
		v := l.Items[at]
		l.Items = append(append([]engine.Value{}, l.Items[:at]...), l.Items[at+1:]...)
		return v, r.spend(valueSize * len(l.Items))
	},
	"index": func(r *run, a arguments) (engine.Value, error) {
		for i, item := range a.list[0].AsList().Items {
			if same, err := r.equal(item, a.arg(1, "", undefined), 0); err != nil || same {
				return engine.NewInt(int64(i)), err
			}
		}
		return undefined, errors.New("value is not in list")
	},
	"count": func(r *run, a arguments) (engine.Value, error) {
		n := 0
		for _, item := range a.list[0].AsList().Items {
			same, err := r.equal(item, a.arg(1, "", undefined), 0)
			if err != nil {
				return undefined, err
			}
			n += b2i(same)
		}
		return engine.NewInt(int64(n)), nil
	},
	"copy": func(r *run, a arguments) (engine.Value, error) {
		return r.values(append([]engine.Value{}, a.list[0].AsList().Items...))
	},
}

// dictMethods get the dict as their first argument.
var dictMethods = map[string]function{
	"items": func(r *run, a arguments) (engine.Value, error) { return r.pairs(a.list[0].AsDict()) },
	"keys": func(r *run, a arguments) (engine.Value, error) {
		keys, err := r.items(a.list[0])
		return engine.NewList(keys), err
	},
	"values": func(r *run, a arguments) (engine.Value, error) {
		d := a.list[0].AsDict()
		out := make([]engine.Value, d.Len())
		for i, k := range d.Keys {
			out[i] = d.Data[k]
		}
		return r.values(out)
	},
	"get": func(r *run, a arguments) (engine.Value, error) {
		if key := a.arg(1, "", undefined); key.IsString() {
			if v, ok := lookup(a.list[0].AsDict(), key.AsString()); ok {
				return v, nil
			}
		}
		return a.arg(2, "", none), nil
	},
	"update": func(r *run, a arguments) (engine.Value, error) {
		other := a.arg(1, "", engine.NewDict())
		if !other.IsDict() {
			return undefined, errors.New("want a dict")
		}
		d := a.list[0].AsDict()
		for _, k := range other.AsDict().OrderedKeys() {
			put(d, k, other.AsDict().Data[k])
		}
		for k, v := range a.named {
			put(d, k[len("v_"):], v)
		}
		return none, r.spend(2 * valueSize * (other.AsDict().Len() + len(a.named)))
	},
	"pop": func(r *run, a arguments) (engine.Value, error) {
		d := a.list[0].AsDict()
		key := a.arg(1, "", undefined)
		if !key.IsString() {
			return a.arg(2, "", none), nil
		}
		text := plain(key.AsString())
		for i, k := range d.Keys {
			if plain(k) == text {
				v := d.Data[k]
				delete(d.Data, k)
				d.Keys = append(append([]string{}, d.Keys[:i]...), d.Keys[i+1:]...)
				return v, r.spend(valueSize * d.Len())
			}
		}
		if len(a.list) < 3 {
			return undefined, errors.New("have no such key")
		}
		return a.list[2], nil
	},
	"copy": func(r *run, a arguments) (engine.Value, error) {
		d := engine.NewDict()
		for _, k := range a.list[0].AsDict().Keys {
			d.AsDict().Set(k, a.list[0].AsDict().Data[k])
		}
		return d, r.spend(2 * valueSize * d.AsDict().Len())
	},
}

// pairs are a dict's keys and values.
func (r *run) pairs(d *engine.Dict) (engine.Value, error) {
	out := make([]engine.Value, d.Len())
	for i, k := range d.Keys {
		out[i] = engine.NewList([]engine.Value{engine.NewString(k), d.Data[k]})
	}
	return engine.NewList(out), r.spend(4 * valueSize * len(out))
}

// globals are the functions of templates.
var globals = map[string]function{
	"range": rangeFunction, "dict": dictFunction, "namespace": namespaceFunction, "joiner": joinerFunction, "cycler": cyclerFunction,
	"raise_exception": func(r *run, a arguments) (engine.Value, error) {
		s, err := r.str(a.arg(0, "message", undefined))
		if err != nil {
			return undefined, err
		}
		return undefined, Raised{plain(s)}
	},
	"strftime_now": func(r *run, a arguments) (engine.Value, error) {
		s, err := wantString(a.arg(0, "format", undefined))
		if err != nil {
			return undefined, err
		}
		text := strftime(r.now, plain(s))
		if hasMarks(s) {
			text = mark(text)
		}
		return r.text(text)
	},
}

func rangeFunction(r *run, a arguments) (engine.Value, error) {
	bounds := []int{0, 0, 1}
	switch len(a.list) {
	case 1, 2, 3:
	default:
		return undefined, errors.New("range: want one to three numbers")
	}
	for i, v := range a.list {
		n, err := index(v)
		if err != nil {
			return undefined, err
		}
		if len(a.list) == 1 {
			i = 1
		}
		bounds[i] = n
	}
	from, to, by := bounds[0], bounds[1], bounds[2]
	if by == 0 {
		return undefined, errors.New("range: step must not be zero")
	}
	n := max((to-from+by-sign(by < 0, by > 0))/by, 0)
	if err := r.spend(valueSize * n); err != nil {
		return undefined, err
	}
	out := make([]engine.Value, n)
	for i := range out {
		out[i] = engine.NewInt(int64(from + i*by))
	}
	return engine.NewList(out), nil
}

func dictFunction(r *run, a arguments) (engine.Value, error) {
	d := engine.NewDict()
	if v := a.input(); v.IsDict() {
		for _, k := range v.AsDict().Keys {
			d.AsDict().Set(k, v.AsDict().Data[k])
		}
	}
	for _, k := range sorted(a.named) {
		put(d.AsDict(), k[len("v_"):], a.named[k])
	}
	return d, r.spend(2 * valueSize * (1 + d.AsDict().Len()))
}

func namespaceFunction(r *run, a arguments) (engine.Value, error) {
	d, err := dictFunction(r, a)
	if err == nil {
		r.namespaces[d.AsDict()] = true
	}
	return d, err
}

func joinerFunction(r *run, a arguments) (engine.Value, error) {
	sep, used := a.arg(0, "sep", engine.NewString(", ")), false
	return r.callable("joiner", func(*run, arguments) (engine.Value, error) {
		if used {
			return sep, nil
		}
		used = true
		return empty, nil
	}), nil
}

func cyclerFunction(r *run, a arguments) (engine.Value, error) {
	if len(a.list) == 0 {
		return undefined, errors.New("cycler: want at least one item")
	}
	d := engine.NewDict()
	r.namespaces[d.AsDict()] = true
	at := 0
	d.AsDict().Set("current", a.list[0])
	d.AsDict().Set("next", r.callable("next", func(*run, arguments) (engine.Value, error) {
		v := a.list[at]
		at = (at + 1) % len(a.list)
		d.AsDict().Set("current", a.list[at])
		return v, nil
	}))
	d.AsDict().Set("reset", r.callable("reset", func(*run, arguments) (engine.Value, error) {
		at = 0
		d.AsDict().Set("current", a.list[0])
		return none, nil
	}))
	return d, nil
}
