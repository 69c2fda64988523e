package gpu

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds on a kernel's source. The library's compiler recurses: over nesting of some thousand levels it overflows its stack,
// and the process dies.
const (
	maxWGSL    = 1 << 20
	maxNesting = 256
)

// checkWGSL refuses what the library stops the process over. (Not all of it: an array type that overflows 32 bits of size, or
// expressions of ten thousand terms, still do.)
func checkWGSL(s PipelineSpec) error {
	switch {
	case strings.ContainsRune(s.Label, 0) || !utf8.ValidString(s.Label):
		return fmt.Errorf("gpu: kernel %q: have a label with NUL or invalid UTF-8, want text", s.Label)
	case s.WGSL == "": // the binding would hand on a null pointer
		return fmt.Errorf("gpu: kernel %s: have no WGSL, want a function main", s.Label)
	case len(s.WGSL) > maxWGSL:
		return fmt.Errorf("gpu: kernel %s: have %d bytes of WGSL, want at most %d", s.Label, len(s.WGSL), maxWGSL)
	case strings.ContainsRune(s.WGSL, 0) || !utf8.ValidString(s.WGSL):
		return fmt.Errorf("gpu: kernel %s: have WGSL with NUL or invalid UTF-8, want text", s.Label)
	}
	depth, line := 0, 1
	for i := range len(s.WGSL) {
		switch s.WGSL[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(depth-1, 0)
		case '\n':
			line++
		}
		if depth > maxNesting {
			return fmt.Errorf("gpu: kernel %s: line %d: have brackets nested over %d deep, want fewer", s.Label, line, maxNesting)
		}
	}
	return nil
}

// wgslPlace finds the place in naga's messages ("┌─ wgsl:3:13"; after validation the label stands for wgsl).
var wgslPlace = regexp.MustCompile(`┌─ [^\n]*:(\d+):(\d+)`)

// wgslError is a shader compiler's message with the line it is about; line is 0 where the message names none.
func wgslError(source, msg string) (line int, text, why string) {
	m := wgslPlace.FindStringSubmatch(msg)
	if m == nil {
		return 0, "", libraryText(msg)
	}
	line, err := strconv.Atoi(m[1])
	if lines := strings.Split(source, "\n"); err == nil && line >= 1 && line <= len(lines) {
		text = strings.TrimSpace(lines[line-1])
	}
	head, drawing, _ := strings.Cut(msg, "┌─")
	why = strings.TrimRight(wgslHeading.ReplaceAllString(libraryText(head), ""), ": ")
	for _, note := range wgslNotes(drawing) {
		if !strings.Contains(why, note) {
			why += "; " + note
		}
	}
	return line, text, why
}

// wgslHeading is naga's first words before a parser's message.
var wgslHeading = regexp.MustCompile(`^Shader '[^']*' parsing error: `)

// wgslNotes collects what naga says under the source excerpt: remarks after "^^^" and "=", and the causes below.
func wgslNotes(drawing string) (notes []string) {
	_, drawing, _ = strings.Cut(drawing, "\n") // the rest of the place
	for line := range strings.Lines(drawing) {
		line = strings.TrimSpace(line)
		if _, after, ok := strings.Cut(line, "^ "); ok {
			line = after
		} else if after, ok := strings.CutPrefix(line, "= "); ok {
			line = strings.TrimPrefix(after, "note:")
		} else if strings.Contains(line, "│") {
			continue
		}
		if line = strings.TrimSpace(line); line != "" {
			notes = append(notes, line)
		}
	}
	return notes
}
