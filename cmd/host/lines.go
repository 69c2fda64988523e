package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// maxLine bounds a line of JSON input, or a prompt, in bytes; a longer one is an error of its own.
const maxLine = 64 << 20

// errLineTooLong is that error.
var errLineTooLong = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// line is one line of input without its end, or why it could not be read.
type line struct {
	text []byte
	err  error // errLineTooLong, io.EOF or a failure to read
}

// readLine reads the next line. A line that is too long is passed over.
func readLine(r *bufio.Reader) line {
	var text []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(text)+len(part) > maxLine; !long {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil, errors.Is(err, io.EOF) && (len(text) > 0 || long):
			if long {
				return line{err: errLineTooLong}
			}
			return line{text: bytes.TrimRight(text, "\r\n")}
		}
		return line{err: err}
	}
}

// lines reads the input line by line, up to one that says why there are no more, or until the context ends: so a reader can
// heed it while it waits for input.
func (a *app) lines() <-chan line {
	lines := make(chan line)
	go func() {
		r := bufio.NewReaderSize(a.in, 64<<10)
		for {
			l := readLine(r)
			select {
			case lines <- l:
			case <-a.ctx.Done():
				return
			}
			if l.err != nil && !errors.Is(l.err, errLineTooLong) {
				return
			}
		}
	}()
	return lines
}

// eachLine answers every line of input by one line of JSON, in order and flushed at once.
// answer returns what to print and whether it is an error. Any error makes eachLine return
// one in the end. It heeds the context even while it waits for input.
func (a *app) eachLine(answer func(context.Context, line) (any, bool)) error {
	lines := a.lines()
	out := bufio.NewWriter(a.out)
	failed, total := 0, 0
	for {
		var l line
		select {
		case l = <-lines:
		case <-a.ctx.Done():
			return a.ctx.Err()
		}
		switch {
		case errors.Is(l.err, io.EOF):
			if failed > 0 {
				return fmt.Errorf("%d of %s failed: see their \"error\"", failed, plural(total, "line"))
			}
			return nil
		case l.err != nil && !errors.Is(l.err, errLineTooLong):
			return fmt.Errorf("reading the input: %w", l.err)
		}
		v, bad := answer(a.ctx, l)
		if err := a.ctx.Err(); err != nil {
			return err
		}
		total++
		if bad {
			failed++
		}
		if err := printLine(out, v); err != nil {
			return err
		}
	}
}

// printLine writes v as one line.
func printLine(w *bufio.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	return w.Flush()
}

// parse reads a line as one JSON object into v. Unknown fields are errors: a misspelt one
// would silently give other results.
func parse(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the line is empty, want a JSON object")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON object is cut off")
	case err != nil:
		if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
			return fmt.Errorf("unknown field %s, want one of %s", name, strings.Join(fieldNames(v), ", "))
		}
		return jsonFault(err)
	}
	// Not d.More: that one takes a stray } for the end of an object that is open.
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the line goes on after the JSON object")
	}
	return nil
}

// fieldNames lists the JSON names of the fields of the struct that v points to.
func fieldNames(v any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// jsonFault says what is wrong with JSON from outside, without Go's names of types.
func jsonFault(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("have a JSON %.60s, want %s", kind.Value, wanted(kind.Type.Kind()))
	case errors.As(err, &kind):
		return fmt.Errorf("field %q: have a JSON %.60s, want %s", kind.Field, kind.Value, wanted(kind.Type.Kind()))
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %w", err)
	}
	return fmt.Errorf("not as it should be: %w", err)
}

// wanted says a kind of Go value in JSON's terms.
func wanted(k reflect.Kind) string {
	switch k {
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number that fits 64 bits"
	case reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct:
		return "an object"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Map:
		return "an object of strings"
	}
	return "something else"
}

// idList is a JSON array of token ids. Null among them is an error, not 0.
type idList []int32

// UnmarshalJSON reads the array; null itself is no list.
func (l *idList) UnmarshalJSON(data []byte) error {
	const null = "null"
	if string(data) == null {
		*l = nil
		return nil
	}
	// In an array of numbers the word stands for nothing else.
	if bytes.Contains(data, []byte(null)) {
		return errors.New("token ids: have null among them, want whole numbers")
	}
	err := json.Unmarshal(data, (*[]int32)(l))
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("token ids: have a JSON %.60s, want a list of whole numbers that fit 32 bits", kind.Value)
	}
	return err
}
