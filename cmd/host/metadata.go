package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/sluicehost/sluice/core/gguf"
)

// metadata prints a file's key/value table as a JSON object in the file's order.
type metadata struct{ *gguf.Metadata }

// MarshalJSON writes every value whole. Numbers that JSON has none for become strings.
func (m metadata) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, key := range m.Keys() {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := e.Encode(key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		v, _ := m.Value(key)
		if err := e.Encode(jsonable(v)); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// jsonable is v without what JSON can't hold: NaN, infinities, and bytes that json would
// write in base64.
func jsonable(v any) any {
	switch v := v.(type) {
	case float32:
		return number(v, 32)
	case float64:
		return number(v, 64)
	case []float32:
		return each(v, func(x float32) any { return number(x, 32) })
	case []float64:
		return each(v, func(x float64) any { return number(x, 64) })
	case []uint8:
		return each(v, func(x uint8) any { return int(x) })
	case []any:
		return each(v, jsonable)
	}
	return v
}

func each[T any](values []T, convert func(T) any) []any {
	out := make([]any, len(values))
	for i, x := range values {
		out[i] = convert(x)
	}
	return out
}

func number[T float32 | float64](v T, bits int) any {
	if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, bits)
	}
	return v
}

// How much of a value is shown in text.
const (
	shownText   = 100 // bytes of a string
	shownValues = 8   // of an array
)

// short is a value for people: on one line, with long ones cut.
func short(v any) string {
	switch v := v.(type) {
	case string:
		if len(v) > shownText {
			return fmt.Sprintf("%s... (%s)", strconv.Quote(clip(v, shownText)), plural(len(v), "byte"))
		}
		return strconv.Quote(v)
	case []string:
		return shortList(v)
	case []any:
		return shortList(v)
	case []uint8:
		return shortList(v)
	case []int8:
		return shortList(v)
	case []uint16:
		return shortList(v)
	case []int16:
		return shortList(v)
	case []uint32:
		return shortList(v)
	case []int32:
		return shortList(v)
	case []uint64:
		return shortList(v)
	case []int64:
		return shortList(v)
	case []float32:
		return shortList(v)
	case []float64:
		return shortList(v)
	case []bool:
		return shortList(v)
	}
	return fmt.Sprint(v)
}

func shortList[T any](values []T) string {
	var parts []string
	for _, v := range values[:min(len(values), shownValues)] {
		parts = append(parts, short(v))
	}
	if len(values) <= shownValues {
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprintf("[%s ...] (%s)", strings.Join(parts, " "), plural(len(values), "value"))
}

// typeName is the GGUF type of a value.
func typeName(v any) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", v), "[]")
	if name == "interface {}" {
		name = "array"
	}
	if strings.HasPrefix(fmt.Sprintf("%T", v), "[]") {
		return "[]" + name
	}
	return name
}

// quoted is a file's own word: as it is where it is plain, so that a file can't write control
// characters to a terminal.
func quoted(s string) string {
	plain := s != "" && utf8.ValidString(s)
	for _, r := range s {
		plain = plain && unicode.IsGraphic(r) && r != ' '
	}
	if plain {
		return s
	}
	return strconv.Quote(s)
}

// clip is s cut to at most n bytes at a character's edge.
func clip(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func count(n uint64) string { return humanize.Comma(int64(min(n, math.MaxInt64))) }
