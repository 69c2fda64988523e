package jinja

import (
	"errors"

	engine "github.com/ardanlabs/jinja"
)

func split(fromRight bool) function {
	return func(r *run, a arguments) (engine.Value, error) {
		s, err := r.own(a)
		if err != nil {
			return undefined, err
		}
		limit := -1
		if m := a.arg(2, "maxsplit", none); !m.IsNone() {
			if limit, err = index(m); err != nil {
				return undefined, err
			}
		}
		sep := a.arg(1, "sep", none)
		if sep.IsNone() {
			return r.fields(s, limit, fromRight)
		}
		by, err := wantString(sep)
		if err != nil {
			return undefined, err
		}
		if by == "" {
			return undefined, errors.New("empty separator")
		}
		at := occurrences(s, by, -1)
		if limit >= 0 && len(at) > limit {
			if fromRight {
				at = at[len(at)-limit:]
			} else {
				at = at[:limit]
			}
		}
		return r.cut(s, at)
	}
}

// cut gives what lies between these places of a string.
func (r *run) cut(s string, at [][2]int) (engine.Value, error) {
	out := make([]engine.Value, 0, len(at)+1)
	from := 0
	for _, o := range at {
		out = append(out, engine.NewString(s[from:o[0]]))
		from = o[1]
	}
	return r.values(append(out, engine.NewString(s[from:])))
}

// fields splits at whitespace.
func (r *run) fields(s string, limit int, fromRight bool) (engine.Value, error) {
	rs := runes(s)
	var at [][2]int // of words
	for i := 0; i < len(rs); {
		if isSpace(rs[i] &^ fromMessage) {
			i++
			continue
		}
		from := i
		for i < len(rs) && !isSpace(rs[i]&^fromMessage) {
			i++
		}
		at = append(at, [2]int{from, i})
	}
	if limit >= 0 && len(at) > limit+1 {
		if fromRight {
			at[len(at)-limit-1][0] = at[0][0]
			at = at[len(at)-limit-1:]
		} else {
			at[limit][1] = at[len(at)-1][1]
			at = at[:limit+1]
		}
	}
	out := make([]engine.Value, len(at))
	for i, w := range at {
		out[i] = engine.NewString(fromRunes(rs[w[0]:w[1]]))
	}
	if err := r.spend(len(s) + 4*len(rs)); err != nil {
		return undefined, err
	}
	return r.values(out)
}

func lines(s string) []string {
	var at [][2]int
	for i := 0; i < len(s); {
		c, n := decode(s[i:])
		switch c &^ fromMessage {
		case '\r':
			end := i + n
			if end < len(s) {
				if d, m := decode(s[end:]); d&^fromMessage == '\n' {
					end += m
				}
			}
			at = append(at, [2]int{i, end})
			i = end
			continue
		case '\n', '\v', '\f', 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029:
			at = append(at, [2]int{i, i + n})
		}
		i += n
	}
	var out []string
	from := 0
	for _, o := range at {
		out = append(out, s[from:o[0]])
		from = o[1]
	}
	if from < len(s) {
		out = append(out, s[from:])
	}
	return out
}

func splitLines(r *run, a arguments) (engine.Value, error) {
	s, err := r.own(a)
	if err != nil {
		return undefined, err
	}
	var out []engine.Value
	for _, l := range lines(s) {
		out = append(out, engine.NewString(l))
	}
	return r.values(out)
}

func partition(r *run, a arguments) (engine.Value, error) {
	s, err := r.own(a)
	if err != nil {
		return undefined, err
	}
	sep, err := wantString(a.arg(1, "sep", undefined))
	if err != nil || sep == "" {
		return undefined, errors.Join(err, errors.New("want a separator"))
	}
	parts := [3]string{s, "", ""}
	if at := occurrences(s, sep, 1); len(at) > 0 {
		parts = [3]string{s[:at[0][0]], s[at[0][0]:at[0][1]], s[at[0][1]:]}
	}
	return r.values([]engine.Value{engine.NewString(parts[0]), engine.NewString(parts[1]), engine.NewString(parts[2])})
}
