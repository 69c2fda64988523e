package main

import (
	"bytes"
	"io"
	"os"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// terminal is a stream to a terminal. Text of models, files and plugins goes there, which must not move the cursor, rename the
// window or answer for the user: of control characters only line ends, tabs and the host's own sequences pass, U+FFFD
// stands for the others. Each Write is to end with a whole character. What is no terminal gets the bytes as they are.
type terminal struct{ file io.Writer }

// The host's own sequences. They must be in one Write.
const (
	dimmed    = "\x1b[2m"
	normal    = "\x1b[0m"
	clearLine = "\r\x1b[K"
)

// forTerminal is the stream itself, but for a terminal.
func forTerminal(f *os.File) io.Writer {
	if isTerminal(f) {
		return &terminal{f}
	}
	return f
}

// isTerminal says whether a stream is a terminal.
func isTerminal(stream any) bool {
	if _, ok := stream.(*terminal); ok {
		return true
	}
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// helpTo is where a stream's help goes: to the terminal itself, which is asked how wide it is.
func helpTo(w io.Writer) io.Writer {
	if t, ok := w.(*terminal); ok {
		return t.file
	}
	return w
}

// Write writes what may be shown of p. It returns len(p), or 0 and an error.
func (t *terminal) Write(p []byte) (int, error) {
	if _, err := t.file.Write(shown(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// shown is a text with replacements for what a terminal would obey.
func shown(p []byte) []byte {
	out := make([]byte, 0, len(p))
	for len(p) > 0 {
		n := ownSequence(p)
		if n == 0 {
			var r rune
			if r, n = utf8.DecodeRune(p); unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' || r == utf8.RuneError {
				out, p = utf8.AppendRune(out, utf8.RuneError), p[n:]
				continue
			}
		}
		out, p = append(out, p[:n]...), p[n:]
	}
	return out
}

// ownSequence is the length of the host's own sequence that p begins with, or 0.
func ownSequence(p []byte) int {
	for _, s := range []string{dimmed, normal, clearLine} {
		if bytes.HasPrefix(p, []byte(s)) {
			return len(s)
		}
	}
	return 0
}
