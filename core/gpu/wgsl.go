package gpu

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluicehost/sluice/sdk/wgsl"
)

// Bounds on a kernel's source. The library's compiler and drivers recurse: over nesting, expressions or chains of else of some
// thousand levels they overflow their stack, and the process dies.
const (
	maxWGSL      = 1 << 20
	maxNesting   = 256
	maxStatement = 2048 // words and signs between two of ; { }
	maxElses     = 1024
)

// checkWGSL refuses what the library stops the process over.
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
	return checkShape(s)
}

// checkShape refuses source over which the library or a driver recurses too deep.
func checkShape(s PipelineSpec) error {
	depth, tokens, elses := 0, 0, 0
	for i, to := wgsl.Next(s.WGSL, 0); i < len(s.WGSL); i, to = wgsl.Next(s.WGSL, to) {
		token := s.WGSL[i:to]
		if strings.TrimSpace(token) == "" { // WGSL's rarer blanks
			continue
		}
		tokens++
		switch token {
		case "(", "[":
			depth++
		case ")", "]":
			depth = max(depth-1, 0)
		case "{":
			depth++
			tokens = 0
		case "}":
			depth = max(depth-1, 0)
			tokens = 0
		case ";":
			tokens = 0
		case "else":
			elses++
		}
		what := ""
		switch {
		case depth > maxNesting:
			what = fmt.Sprintf("brackets nested over %d deep", maxNesting)
		case tokens > maxStatement:
			what = fmt.Sprintf("a statement of over %d words and signs", maxStatement)
		case elses > maxElses:
			what = fmt.Sprintf("over %d times else", maxElses)
		}
		if what != "" {
			return fmt.Errorf("gpu: kernel %s: line %d: have %s, want fewer", s.Label, 1+strings.Count(s.WGSL[:i], "\n"), what)
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
