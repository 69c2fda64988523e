package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	engine "github.com/ardanlabs/jinja"
)

// Value is what a template works with.
type Value struct {
	v    engine.Value
	size int // bytes of the JSON that it was
}

// Request reads the JSON object of a request: its keys keep their order, and all
// its strings, keys too, are message text. Objects and arrays may lie 100 deep
// in one another.
func Request(text []byte) (Value, error) { return read(text, mark) }

func read(text []byte, str func(string) string) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := readValue(d, str, 0)
	if err == nil {
		if _, e := d.Token(); e != io.EOF {
			err = errors.New("have something behind the end of the JSON value")
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return Value{v, len(text)}, err
}

func readValue(d *json.Decoder, str func(string) string, depth int) (engine.Value, error) {
	t, err := d.Token()
	if err != nil {
		return undefined, err
	}
	if depth > maxValueDepth {
		return undefined, errDeep
	}
	switch t := t.(type) {
	case nil:
		return none, nil
	case bool:
		return engine.NewBool(t), nil
	case string:
		return engine.NewString(str(t)), nil
	case json.Number:
		if n, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return engine.NewInt(n), nil
		}
		f, err := t.Float64()
		if err != nil {
			err = fmt.Errorf("have the number %.40s, want one that 64 bits hold", t)
		}
		return engine.NewFloat(f), err
	case json.Delim:
		if t == '[' {
			return readList(d, str, depth)
		}
		return readDict(d, str, depth)
	}
	return undefined, fmt.Errorf("BUG: have the JSON token %v", t)
}

func readList(d *json.Decoder, str func(string) string, depth int) (engine.Value, error) {
	var items []engine.Value
	for d.More() {
		v, err := readValue(d, str, depth+1)
		if err != nil {
			return undefined, err
		}
		items = append(items, v)
	}
	_, err := d.Token()
	return engine.NewList(items), err
}

func readDict(d *json.Decoder, str func(string) string, depth int) (engine.Value, error) {
	dict := engine.NewDict()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return undefined, err
		}
		v, err := readValue(d, str, depth+1)
		if err != nil {
			return undefined, err
		}
		dict.AsDict().Set(str(key.(string)), v)
	}
	_, err := d.Token()
	return dict, err
}

func fromJSON(r *run, a arguments) (engine.Value, error) {
	s, err := r.str(a.input())
	if err != nil {
		return undefined, err
	}
	str := func(s string) string { return s }
	if hasMarks(s) {
		str = mark
	}
	if err := r.spend(20 * len(s)); err != nil {
		return undefined, err
	}
	v, err := read([]byte(plain(s)), str)
	return v.v, err
}

// toJSON is json.dumps with ensure_ascii off, as Hugging Face has it.
func toJSON(r *run, a arguments) (engine.Value, error) {
	w := jsonWriter{run: r, item: ", ", key: ": "}
	if indent := a.arg(2, "indent", none); !indent.IsNone() {
		n, err := index(indent)
		if err != nil || n > 100 {
			return undefined, errors.Join(err, errors.New("tojson: want an indent of at most 100"))
		}
		w.indent, w.item = "\n"+strings.Repeat(" ", max(n, 0)), ","
	}
	if s := a.arg(3, "separators", none); s.IsList() && s.AsList().Len() == 2 && s.AsList().Items[0].IsString() && s.AsList().Items[1].IsString() {
		w.item, w.key = s.AsList().Items[0].AsString(), s.AsList().Items[1].AsString()
	}
	w.ascii = a.arg(1, "ensure_ascii", none).IsTruthy()
	w.sorted = a.arg(4, "sort_keys", none).IsTruthy()
	if err := w.write(a.input(), 0); err != nil {
		return undefined, err
	}
	return engine.NewString(w.out.String()), nil
}

type jsonWriter struct {
	*run
	out       strings.Builder
	item, key string
	indent    string // of one level, after its newline; empty for one line
	ascii     bool
	sorted    bool
}

func (w *jsonWriter) write(v engine.Value, depth int) error {
	if depth > maxValueDepth {
		return errDeep
	}
	if err := w.spend(8 + len(w.item) + len(w.key)); err != nil {
		return err
	}
	switch {
	case v.IsNone():
		w.out.WriteString("null")
	case v.IsBool():
		w.out.WriteString(strconv.FormatBool(v.AsBool()))
	case v.IsInt():
		w.out.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		w.out.WriteString(floatText(v.AsFloat()))
	case v.IsString():
		return w.string(v.AsString())
	case v.IsList():
		return w.list(v.AsList(), depth)
	case v.IsDict():
		return w.dict(v.AsDict(), depth)
	default:
		return fmt.Errorf("object of type %s is not JSON serializable", typeName(v))
	}
	return nil
}

// line begins a new one at a depth, if there are lines.
func (w *jsonWriter) line(depth int) error {
	if w.indent == "" {
		return nil
	}
	w.out.WriteString("\n" + strings.Repeat(w.indent[1:], depth))
	return w.spend(1 + depth*len(w.indent))
}

func (w *jsonWriter) list(l *engine.List, depth int) error {
	w.out.WriteByte('[')
	for i, v := range l.Items {
		if i > 0 {
			w.out.WriteString(w.item)
		}
		if err := w.line(depth + 1); err != nil {
			return err
		}
		if err := w.write(v, depth+1); err != nil {
			return err
		}
	}
	if len(l.Items) > 0 {
		if err := w.line(depth); err != nil {
			return err
		}
	}
	w.out.WriteByte(']')
	return nil
}

func (w *jsonWriter) dict(d *engine.Dict, depth int) error {
	keys := d.Keys
	if w.sorted {
		keys = sorted(d.Data)
	}
	w.out.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			w.out.WriteString(w.item)
		}
		if err := w.line(depth + 1); err != nil {
			return err
		}
		if err := w.string(k); err != nil {
			return err
		}
		w.out.WriteString(w.key)
		if err := w.write(d.Data[k], depth+1); err != nil {
			return err
		}
	}
	if len(keys) > 0 {
		if err := w.line(depth); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}

var jsonEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

// string writes one; escapes of message text are message text.
func (w *jsonWriter) string(s string) error {
	w.out.WriteByte('"')
	for _, r := range runes(s) {
		c, marks := r&^fromMessage, r&fromMessage
		e, ok := jsonEscapes[c]
		switch {
		case ok:
		case c < ' ' || c == 0x7F && w.ascii || c >= 0x80 && w.ascii && c < 0x10000:
			e = fmt.Sprintf(`\u%04x`, c)
		case c >= 0x10000 && w.ascii:
			e = fmt.Sprintf(`\u%04x\u%04x`, 0xD800+(c-0x10000)>>10, 0xDC00+(c-0x10000)&0x3FF)
		default:
			writeRune(&w.out, r)
			continue
		}
		for _, c := range e {
			writeRune(&w.out, c|marks)
		}
	}
	w.out.WriteByte('"')
	return w.spend(len(s))
}

// strftime formats a time as Python does; unknown verbs stand for themselves.
func strftime(t time.Time, layout string) string {
	verbs := map[byte]string{
		'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'B': "January", 'b': "Jan",
		'A': "Monday", 'a': "Mon", 'Z': "MST", 'z': "-0700", 'j': "002", 'F': "2006-01-02", 'T': "15:04:05", 'e': "_2", 'f': "000000",
		'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'D': "01/02/06",
	}
	var b strings.Builder
	for i := 0; i < len(layout); i++ {
		if layout[i] != '%' || i+1 == len(layout) {
			b.WriteByte(layout[i])
			continue
		}
		i++
		plain := layout[i] == '-' && i+1 < len(layout) // no leading zeros
		if plain {
			i++
		}
		verb, ok := verbs[layout[i]]
		text := t.Format(verb)
		switch {
		case layout[i] == 'f':
			text = fmt.Sprintf("%06d", t.Nanosecond()/1000)
		case layout[i] == '%':
			text = "%"
		case !ok:
			text = "%" + layout[i:i+1]
		}
		if plain {
			text = strings.TrimLeft(text, "0 ")
			if text == "" {
				text = "0"
			}
		}
		b.WriteString(text)
	}
	return b.String()
}
