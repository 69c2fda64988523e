package jinja

import (
	"errors"
	"fmt"
	"strings"

	engine "github.com/ardanlabs/jinja"
)

// format is str.format, with {}, {0} and {name} and no format after a colon.
func format(r *run, a arguments) (engine.Value, error) {
	s := a.list[0].AsString()
	var b strings.Builder
	for auto := 1; s != ""; {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		if i+1 < len(s) && s[i+1] == s[i] {
			b.WriteByte(s[i])
			s = s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 0 {
			return undefined, errors.New("have a single brace")
		}
		field := s[i+1 : i+end]
		s = s[i+end+1:]
		v, err := a.field(field, &auto)
		if err != nil {
			return undefined, err
		}
		text, err := r.str(v)
		if err != nil {
			return undefined, err
		}
		b.WriteString(text)
		if err := r.spend(len(text) + i); err != nil {
			return undefined, err
		}
	}
	return r.text(b.String())
}

// field is what a field of format names.
func (a arguments) field(name string, auto *int) (engine.Value, error) {
	if v, ok := a.named["v_"+plain(name)]; ok {
		return v, nil
	}
	n := *auto
	if name == "" {
		*auto++
	} else if _, err := fmt.Sscanf(name, "%d", &n); err != nil {
		return undefined, fmt.Errorf("have no argument %q", plain(name))
	} else {
		n++
	}
	if n < 1 || n >= len(a.list) {
		return undefined, fmt.Errorf("have no argument %d", n-1)
	}
	return a.list[n], nil
}

// percent is text % values, with %s, %d and %%.
func (r *run) percent(s string, v engine.Value) (engine.Value, error) {
	values := []engine.Value{v}
	if v.IsList() {
		values = v.AsList().Items
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			b.WriteString(s)
			return r.text(b.String())
		}
		b.WriteString(s[:i])
		if i+1 == len(s) {
			return undefined, errors.New("incomplete format")
		}
		switch verb := s[i+1]; verb {
		case '%':
			b.WriteByte('%')
		case 's', 'd', 'i':
			if len(values) == 0 {
				return undefined, errors.New("not enough arguments for format string")
			}
			text, err := r.str(values[0])
			if err != nil {
				return undefined, err
			}
			if verb != 's' && !isNumber(values[0]) {
				return undefined, fmt.Errorf("%%d format: a number is required, not %s", typeName(values[0]))
			}
			b.WriteString(text)
			values = values[1:]
			if err := r.spend(len(text)); err != nil {
				return undefined, err
			}
		default:
			return undefined, fmt.Errorf("have the format %%%c, want %%s or %%d", verb)
		}
		s = s[i+2:]
	}
}
