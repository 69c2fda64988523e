package plugin

import (
	"encoding/json"
	"io"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/sluicehost/sluice/sdk/rpc"
)

// head reads on and keeps the first bytes, which hold the handshake.
type head struct {
	from io.Reader
	mu   sync.Mutex
	kept []byte
}

const headBytes = 4096

func (h *head) Read(p []byte) (int, error) {
	n, err := h.from.Read(p)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = append(h.kept, p[:min(n, headBytes-len(h.kept))]...)
	return n, err
}

// line is the first line, or what there is of it.
func (h *head) line() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, _, _ := strings.Cut(string(h.kept), "\n")
	return strings.TrimSpace(line)
}

// tail keeps the last lines written to standard error. After a Go panic it
// keeps the first lines from there on: they tell more than the end of a trace.
type tail struct {
	mu    sync.Mutex
	open  []byte // the line being written
	kept  []string
	panic bool
}

const (
	tailLines = 8
	tailWidth = 300      // bytes kept of a line
	tailOpen  = 64 << 10 // bytes read of a line
)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := p
	for {
		line, after, ended := strings.Cut(string(rest), "\n")
		t.open = append(t.open, line[:min(len(line), tailOpen-len(t.open))]...)
		if !ended {
			return len(p), nil
		}
		t.add(string(t.open))
		t.open = t.open[:0]
		rest = []byte(after)
	}
}

func (t *tail) add(line string) {
	line = rpc.OneLine(plain(line), tailWidth)
	if line == "" {
		return
	}
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "SIG") {
		t.panic, t.kept = true, nil
	}
	switch {
	case len(t.kept) < tailLines:
		t.kept = append(t.kept, line)
	case !t.panic:
		t.kept = append(t.kept[1:], line)
	}
}

// plain is the message of a line in hclog's JSON, and nothing for its chatter.
func plain(line string) string {
	var entry struct {
		Level   string `json:"@level"`
		Message string `json:"@message"`
	}
	if json.Unmarshal([]byte(line), &entry) != nil || entry.Message == "" {
		return line
	}
	if entry.Level == "debug" || entry.Level == "trace" {
		return ""
	}
	return entry.Level + ": " + entry.Message
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.kept...)
}

// hushed is the logger that go-plugin gets. What it has to say of a plugin's
// end is in our one error, and how its connections end depends on timing, so
// its own lines go to trace; what the plugin itself logs passes to relay.
type hushed struct {
	hclog.Logger
	relay hclog.Logger
	name  string
}

func (h hushed) Debug(msg string, args ...any) { h.Trace(msg, args...) }
func (h hushed) Info(msg string, args ...any)  { h.Trace(msg, args...) }
func (h hushed) Warn(msg string, args ...any)  { h.Trace(msg, args...) }
func (h hushed) Error(msg string, args ...any) { h.Trace(msg, args...) }

// Named is how go-plugin makes the logger of the plugin's standard error.
func (h hushed) Named(name string) hclog.Logger {
	if name == h.name {
		return h.relay
	}
	return hushed{Logger: h.Logger.Named(name), relay: h.relay, name: h.name}
}
