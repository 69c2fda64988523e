package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestReadLine(t *testing.T) {
	long := strings.Repeat("x", maxLine-1) // and its end: as long as may be
	for name, c := range map[string]struct {
		in   string
		want []string // "!" is a line that is too long
	}{
		"none":             {"", nil},
		"one":              {"a\n", []string{"a"}},
		"no end":           {"a\nb", []string{"a", "b"}},
		"windows":          {"a\r\nb\r\n", []string{"a", "b"}},
		"empty lines":      {"\n\na\n", []string{"", "", "a"}},
		"long":             {long + "\na\n", []string{long, "a"}},
		"too long":         {long + "xx\na\n", []string{"!", "a"}},
		"too long, no end": {long + "xx", []string{"!"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := bufio.NewReader(strings.NewReader(c.in))
			for i, want := range c.want {
				l := readLine(r)
				if want == "!" && !errors.Is(l.err, errLineTooLong) || want != "!" && (l.err != nil || string(l.text) != want) {
					t.Fatalf("line %d: have %d bytes, %v", i, len(l.text), l.err)
				}
			}
			if l := readLine(r); !errors.Is(l.err, io.EOF) {
				t.Errorf("have %.20q, %v, want the end", l.text, l.err)
			}
		})
	}
}

func testApp(ctx context.Context, in io.Reader) (*app, *bytes.Buffer) {
	var out bytes.Buffer
	return &app{ctx: ctx, in: in, out: &out, err: io.Discard, log: hclog.NewNullLogger()}, &out
}

// echo answers a line by its length, and fails where it is empty.
func echo(_ context.Context, l line) (any, bool) { return len(l.text), len(l.text) == 0 }

func TestEachLine(t *testing.T) {
	a, out := testApp(t.Context(), strings.NewReader("a\nbb\n\nccc"))
	err := a.eachLine(echo)
	if err == nil || err.Error() != `1 of 4 lines failed: see their "error"` || out.String() != "1\n2\n0\n3\n" {
		t.Errorf("have %q, %v", out, err)
	}
	a, _ = testApp(t.Context(), iotest.ErrReader(errors.New("broken")))
	if err := a.eachLine(echo); err == nil || err.Error() != "reading the input: broken" {
		t.Errorf("reader that fails: have %v", err)
	}
	a, _ = testApp(t.Context(), strings.NewReader("a\n"))
	a.out = failing{}
	if err := a.eachLine(echo); err == nil || err.Error() != "full" {
		t.Errorf("writer that fails: have %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestEachLineFlushes: an answer is there before the next line is written.
func TestEachLineFlushes(t *testing.T) {
	in, write := io.Pipe()
	read, out := io.Pipe()
	a, _ := testApp(t.Context(), in)
	a.out = out
	done := make(chan error, 1)
	go func() { done <- a.eachLine(echo) }()
	answers := bufio.NewReader(read)
	for i := 1; i < 4; i++ {
		fmt.Fprintln(write, strings.Repeat("x", i))
		if got, err := answers.ReadString('\n'); err != nil || got != fmt.Sprintln(i) {
			t.Fatalf("have %q, %v, want %d", got, err, i)
		}
	}
	write.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestEachLineInterrupted: waiting for input ends with the context.
func TestEachLineInterrupted(t *testing.T) {
	in, write := io.Pipe()
	defer write.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	a, _ := testApp(ctx, in)
	if err := a.eachLine(echo); !errors.Is(err, context.Canceled) {
		t.Errorf("have %v, want the context's error", err)
	}
}

var badLines = map[string]struct{ text, want string }{
	"empty":             {``, "the line is empty, want a JSON object"},
	"blank":             {`  `, "the line is empty"},
	"no JSON":           {`hello`, "invalid character"},
	"cut off":           {`{"id":1`, "cut off"},
	"array":             {`[1]`, "have a JSON array, want an object"},
	"number":            {`7`, "have a JSON number, want an object"},
	"two":               {`{"tokens":[1]}{"tokens":[1]}`, "goes on after the JSON object"},
	"trailing":          {`{"tokens":[1]} x`, "goes on after the JSON object"},
	"stray brace":       {`{"tokens":[1]}}`, "goes on after the JSON object"},
	"unknown field":     {`{"tokens":[1],"greddy":3}`, `unknown field "greddy", want one of id, tokens, prompt, parse_special, add_special, greedy, top, last`},
	"string for number": {`{"tokens":[1],"greedy":"3"}`, `field "greedy": have a JSON string, want a whole number`},
	"fraction":          {`{"tokens":[1],"greedy":1.5}`, `field "greedy": have a JSON number 1.5`},
	"huge number":       {`{"tokens":[1],"top":1e999}`, `field "top": have a JSON number 1e999`},
	"huge integer":      {`{"tokens":[1],"top":99999999999999999999}`, `field "top": have a JSON number 9999`},
	"token too large":   {`{"tokens":[1,4294967296]}`, "token ids: have a JSON number 4294967296, want"},
	"token a fraction":  {`{"tokens":[1.5]}`, "token ids: have a JSON number 1.5"},
	"token a string":    {`{"tokens":["a"]}`, "token ids: have a JSON string"},
	"token null":        {`{"tokens":[1,null]}`, "token ids: have null among them"},
	"token an array":    {`{"tokens":[[1]]}`, "token ids: have a JSON array"},
	"tokens a number":   {`{"tokens":1}`, "token ids: have a JSON number"},
	"prompt a number":   {`{"prompt":1}`, `field "prompt": have a JSON number, want a string`},
	"bool a number":     {`{"prompt":"a","add_special":1}`, `field "add_special": have a JSON number, want true or false`},
	"deep":              {`{"id":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "exceeded max depth"},
}

func TestParseRefuses(t *testing.T) {
	for name, c := range badLines {
		if err := parse([]byte(c.text), &evalLine{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: have %v, want %q", name, err, c.want)
		}
	}
}

// FuzzLine: no line, however odd, makes the reading of requests panic, and what is taken is what
// encoding/json takes for an object.
func FuzzLine(f *testing.F) {
	for _, c := range badLines {
		f.Add([]byte(c.text))
	}
	f.Add([]byte(`{"id":"a","tokens":[1,2],"greedy":4,"top":3,"last":2}`))
	f.Add([]byte(`{"id":null,"prompt":"\ud800","parse_special":false,"add_special":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var q evalLine
		var l tokenizeLine
		for _, v := range []any{&q, &l} {
			if err := parse(text, v); err != nil {
				continue
			}
			var any map[string]json.RawMessage
			if err := json.Unmarshal(text, &any); err != nil {
				t.Errorf("%q: taken, but no JSON object: %v", text, err)
			}
		}
		if greedy, top, last, err := q.counts(); err == nil && (greedy < 0 || top < 0 || last < 0) {
			t.Errorf("%q: have counts %d, %d, %d", text, greedy, top, last)
		}
	})
}

// endless is input that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestPromptTooLong: a prompt is bounded, as a line is.
func TestPromptTooLong(t *testing.T) {
	_, err := new(runCmd).prompt(&app{ctx: t.Context(), in: endless{}, err: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("have %v, want an error", err)
	}
}
