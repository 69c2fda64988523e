package registry

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// form is what a text in a registry must look like.
type form struct {
	ok   func(string) bool
	want string
}

var (
	nameForm         = pattern(`^[a-z0-9][a-z0-9._-]{0,63}$`, "1 to 64 of a-z 0-9 . _ -, first a letter or digit")
	architectureForm = pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`, "a value of general.architecture")
	versionForm      = pattern(`^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$`, "a version as 0.1.0")
	repoForm         = pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`, "owner/name")
	revisionForm     = pattern(`^[0-9a-f]{40}$`, "a commit: 40 lower-case hex digits")
	sha256Form       = pattern(`^[0-9a-f]{64}$`, "64 lower-case hex digits")
	platformForm     = pattern(`^[a-z0-9]{1,32}/[a-z0-9]{1,32}$`, "GOOS/GOARCH")
	verifiedForm     = pattern(`^(none|golden|synthetic|real)$`, "one of none, golden, synthetic, real")
	pathForm         = form{isPath, "a relative path with / that stays in its folder"}
	noteForm         = form{isNote, "one line of at most 1000 bytes without control characters"}
)

// pattern is the form of the texts that an anchored regular expression matches.
func pattern(expr, want string) form {
	return form{regexp.MustCompile(expr).MatchString, want}
}

// isNote keeps terminal escapes and line breaks out of what is printed.
func isNote(s string) bool {
	return s != "" && len(s) <= 1000 && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// isPath reports whether p is a slash-separated path that stays below its
// folder, on every system.
func isPath(p string) bool {
	return isNote(p) && len(p) <= 512 && p != "." && fs.ValidPath(p) &&
		!strings.ContainsAny(p, `\:`) && filepath.IsLocal(filepath.FromSlash(p))
}

// word reads text that has the form. Empty after a fault.
func (s *source) word(n *yaml.Node, what string, f form) string {
	text, ok := s.text(n, what)
	if ok && !f.ok(text) {
		s.fault(n, "%s: have %s, want %s", what, clip(text), f.want)
		return ""
	}
	return text
}

// into is a field that stores a word.
func (s *source) into(to *string, what string, f form) func(*yaml.Node) {
	return func(n *yaml.Node) { *to = s.word(n, what, f) }
}
