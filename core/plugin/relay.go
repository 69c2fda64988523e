package plugin

import (
	"strings"
	"sync"
	"unicode"

	"github.com/hashicorp/go-hclog"
)

// maxLog bounds how much of a plugin's log is shown, in bytes of those lines that the host's level lets pass.
const maxLog = 256 << 10

// relay is the logger of what a plugin writes. It ends what is endless, and cleans what could dress up a terminal.
type relay struct {
	hclog.Logger
	said *allowance
}

// allowance is what may still be shown.
type allowance struct {
	mu   sync.Mutex
	left int
}

func newRelay(l hclog.Logger) relay { return relay{l, &allowance{left: maxLog}} }

func (r relay) Trace(msg string, args ...any) { r.pass(hclog.Trace, msg, args) }
func (r relay) Debug(msg string, args ...any) { r.pass(hclog.Debug, msg, args) }
func (r relay) Info(msg string, args ...any)  { r.pass(hclog.Info, msg, args) }
func (r relay) Warn(msg string, args ...any)  { r.pass(hclog.Warn, msg, args) }

func (r relay) Error(msg string, args ...any) {
	level := hclog.Error
	if msg == "reading plugin stderr" { // go-plugin's own: a child of the plugin's holds the other end
		level = hclog.Trace
	}
	r.pass(level, msg, args)
}

// Write is a line that the plugin printed.
func (r relay) Write(p []byte) (int, error) {
	r.Debug(strings.TrimRight(string(p), " \t\r\n"))
	return len(p), nil
}

// pass logs a line if it may still be shown.
func (r relay) pass(level hclog.Level, msg string, args []any) {
	if level < r.GetLevel() {
		return
	}
	size := len(msg) + 1
	msg = clean(msg)
	for i, a := range args {
		if s, ok := a.(string); ok {
			size += len(s)
			args[i] = clean(s)
		}
	}
	switch show, first := r.said.spend(size); {
	case show:
		r.Log(level, msg, args...)
	case first:
		r.Logger.Warn("the plugin writes more than is shown: the rest of its log is left out", "bytes", maxLog)
	}
}

// spend takes n bytes and says whether they may be shown; if not, whether that is so for the first time.
func (a *allowance) spend(n int) (show, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first = a.left > 0
	a.left -= min(n, a.left)
	return a.left > 0, first
}

// clean replaces control characters of a text that may have several lines.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
