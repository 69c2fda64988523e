package main

import (
	"bytes"
	"testing"
)

// TestTerminal: what models, files and plugins say reaches a terminal as text alone.
func TestTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"plain ä 语 👍🏽\ttab\r\nline\n", "plain ä 语 👍🏽\ttab\r\nline\n"},
		{"\x1b[31mred\x1b]0;title\x07\x1b[2J", "\uFFFD[31mred\uFFFD]0;title\uFFFD\uFFFD[2J"},
		{"\u009b31m\u0085\x7f\b\x00", "\uFFFD31m\uFFFD\uFFFD\uFFFD\uFFFD"},
		{"cut \xc2", "cut \uFFFD"},
		{"\x9b2J", "\uFFFD2J"},
		{dimmed + "thought" + normal + clearLine, dimmed + "thought" + normal + clearLine},
		{"\x1b", "\uFFFD"},
		{"", ""},
	} {
		var out bytes.Buffer
		w := &terminal{&out}
		if n, err := w.Write([]byte(c.in)); n != len(c.in) || err != nil || out.String() != c.want {
			t.Errorf("%q: have %q, %d bytes written, %v; want %q", c.in, out.String(), n, err, c.want)
		}
	}
	if !isTerminal(&terminal{}) || isTerminal(&bytes.Buffer{}) {
		t.Error("a terminal is not known for one")
	}
}
