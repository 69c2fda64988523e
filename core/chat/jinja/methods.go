package jinja

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	engine "github.com/ardanlabs/jinja"
)

// method finds a method of a value, or nil. Namespaces have none.
func (r *run) method(v engine.Value, name string) function {
	var table map[string]function
	switch {
	case v.IsString():
		table = stringMethods
	case v.IsList():
		table = listMethods
	case v.IsDict() && !r.namespaces[v.AsDict()]:
		table = dictMethods
	}
	f := table[name]
	if f == nil {
		return nil
	}
	return func(r *run, a arguments) (engine.Value, error) {
		out, err := f(r, arguments{append([]engine.Value{v}, a.list...), a.named})
		if err != nil {
			err = fmt.Errorf("%s.%s: %w", typeName(v), name, err)
		}
		return out, err
	}
}

// stringMethods get the string as their first argument.
var stringMethods = map[string]function{
	"strip": strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
	"split": split(false), "rsplit": split(true), "splitlines": splitLines,
	"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
	"removeprefix": removeAffix(true), "removesuffix": removeAffix(false),
	"replace": replace, "join": joinMethod, "format": format, "partition": partition,
	"upper": mapped(unicode.ToUpper), "lower": mapped(unicode.ToLower), "title": mappedText(title), "capitalize": mappedText(capitalize),
	"count": countMethod, "find": find(false, -1), "index": find(false, 0), "rfind": find(true, -1),
	"isdigit": allRunes(unicode.IsDigit), "isalpha": allRunes(unicode.IsLetter), "isspace": allRunes(isSpace),
	"isalnum": allRunes(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
	"isupper": allRunes(func(c rune) bool { return !unicode.IsLower(c) }), "islower": allRunes(func(c rune) bool { return !unicode.IsUpper(c) }),
}

// isSpace is whitespace of Python's strings.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1C <= r && r <= 0x1F }

// own is the string that a method belongs to. Looking at it is work.
func (r *run) own(a arguments) (string, error) {
	s := a.list[0].AsString()
	return s, r.work(len(s))
}

func strip(left, right bool) function {
	return func(r *run, a arguments) (engine.Value, error) {
		s, err := r.str(a.list[0])
		if err != nil {
			return undefined, err
		}
		cut := isSpace
		if chars := a.arg(1, "chars", none); !chars.IsNone() {
			set, err := wantString(chars)
			if err != nil {
				return undefined, err
			}
			in := map[rune]bool{}
			for _, c := range plain(set) {
				in[c] = true
			}
			cut = func(c rune) bool { return in[c] }
		}
		rs := runes(s)
		from, to := 0, len(rs)
		for left && from < to && cut(rs[from]&^fromMessage) {
			from++
		}
		for right && to > from && cut(rs[to-1]&^fromMessage) {
			to--
		}
		if to-from == len(rs) {
			return engine.NewString(s), r.work(4 * len(rs))
		}
		return engine.NewString(fromRunes(rs[from:to])), r.spend(len(s))
	}
}

// affix is startswith or endswith, of one string or any of several.
func affix(has func(s, affix string) bool) function {
	return func(r *run, a arguments) (engine.Value, error) {
		s, err := r.own(a)
		if err != nil {
			return undefined, err
		}
		s = plain(s)
		wants := []engine.Value{a.arg(1, "", undefined)}
		if wants[0].IsList() {
			wants = wants[0].AsList().Items
		}
		for _, w := range wants {
			text, err := wantString(w)
			if err != nil {
				return undefined, err
			}
			if has(s, plain(text)) {
				return engine.NewBool(true), nil
			}
		}
		return engine.NewBool(false), r.work(len(wants))
	}
}

func removeAffix(prefix bool) function {
	return func(r *run, a arguments) (engine.Value, error) {
		s, err := r.own(a)
		if err != nil {
			return undefined, err
		}
		text, err := wantString(a.arg(1, "", undefined))
		if err != nil {
			return undefined, err
		}
		p, t := plain(s), plain(text)
		switch {
		case prefix && strings.HasPrefix(p, t):
			s = s[markedLen(s, len(t)):]
		case !prefix && strings.HasSuffix(p, t):
			s = s[:markedLen(s, len(p)-len(t))]
		}
		return engine.NewString(s), nil
	}
}

func replace(r *run, a arguments) (engine.Value, error) {
	s, err := r.str(a.list[0])
	if err != nil {
		return undefined, err
	}
	old, err := r.str(a.arg(1, "old", undefined))
	if err != nil {
		return undefined, err
	}
	by, err := r.str(a.arg(2, "new", undefined))
	if err != nil {
		return undefined, err
	}
	limit := -1
	if n := a.arg(3, "count", none); !n.IsNone() {
		if limit, err = index(n); err != nil {
			return undefined, err
		}
	}
	var at [][2]int
	if old == "" {
		for i := 0; limit < 0 || len(at) < limit; {
			at = append(at, [2]int{i, i})
			if i == len(s) {
				break
			}
			_, n := decode(s[i:])
			i += n
		}
	} else {
		at = occurrences(s, old, limit)
	}
	if err := r.spend(len(s) + len(at)*(len(by)+16)); err != nil {
		return undefined, err
	}
	var b strings.Builder
	from := 0
	for _, o := range at {
		b.WriteString(s[from:o[0]])
		b.WriteString(by)
		from = o[1]
	}
	b.WriteString(s[from:])
	return engine.NewString(b.String()), nil
}

func joinMethod(r *run, a arguments) (engine.Value, error) {
	items, err := r.items(a.arg(1, "", undefined))
	if err != nil {
		return undefined, err
	}
	for i, item := range items {
		if !item.IsString() {
			return undefined, fmt.Errorf("sequence item %d: expected str instance, %s found", i, typeName(item))
		}
	}
	return r.join(items, a.list[0].AsString())
}

func (r *run) join(items []engine.Value, sep string) (engine.Value, error) {
	parts := make([]string, len(items))
	for i, item := range items {
		s, err := r.str(item)
		if err != nil {
			return undefined, err
		}
		if err := r.spend(len(s) + len(sep)); err != nil {
			return undefined, err
		}
		parts[i] = s
	}
	return engine.NewString(strings.Join(parts, sep)), nil
}

// mapped changes character by character.
func mapped(f func(rune) rune) function {
	return mappedText(func(rs []rune) {
		for i, c := range rs {
			rs[i] = f(c&^fromMessage) | c&fromMessage
		}
	})
}

func mappedText(f func([]rune)) function {
	return func(r *run, a arguments) (engine.Value, error) {
		s, err := r.str(a.input())
		if err != nil {
			return undefined, err
		}
		if err := r.spend(5 * len(s)); err != nil {
			return undefined, err
		}
		rs := runes(s)
		f(rs)
		return engine.NewString(fromRunes(rs)), nil
	}
}

func capitalize(rs []rune) {
	for i, c := range rs {
		f := unicode.ToLower
		if i == 0 {
			f = unicode.ToUpper
		}
		rs[i] = f(c&^fromMessage) | c&fromMessage
	}
}

func title(rs []rune) {
	inWord := false
	for i, c := range rs {
		f := unicode.ToUpper
		if inWord {
			f = unicode.ToLower
		}
		rs[i] = f(c&^fromMessage) | c&fromMessage
		inWord = unicode.IsLetter(c &^ fromMessage)
	}
}

func countMethod(r *run, a arguments) (engine.Value, error) {
	s, err := r.own(a)
	if err != nil {
		return undefined, err
	}
	text, err := wantString(a.arg(1, "", undefined))
	return engine.NewInt(int64(strings.Count(plain(s), plain(text)))), err
}

// find gives where a text begins, in characters; -1 or an error if nowhere.
func find(last bool, missing int64) function {
	return func(r *run, a arguments) (engine.Value, error) {
		s, err := r.own(a)
		if err != nil {
			return undefined, err
		}
		text, err := wantString(a.arg(1, "", undefined))
		if err != nil {
			return undefined, err
		}
		s, at := plain(s), -1
		if last {
			at = strings.LastIndex(s, plain(text))
		} else {
			at = strings.Index(s, plain(text))
		}
		if at < 0 {
			if missing < 0 {
				return engine.NewInt(missing), nil
			}
			return undefined, errors.New("substring not found")
		}
		return engine.NewInt(int64(length(s[:at]))), nil
	}
}

// allRunes is whether there are characters, all of this kind.
func allRunes(is func(rune) bool) function {
	return func(r *run, a arguments) (engine.Value, error) {
		s, err := r.own(a)
		s = plain(s)
		return engine.NewBool(s != "" && strings.IndexFunc(s, func(c rune) bool { return !is(c) }) < 0), err
	}
}
