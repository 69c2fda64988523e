package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sluicehost/sluice/sdk/rpc"
)

// failure is the one error of a plugin that did not do its part.
type failure struct {
	name, path string
	what, do   string
	exit       string   // how the process ended by itself, or empty
	stderr     []string // its last lines
	cause      error
}

func (o Options) failure(what, do string) *failure {
	return &failure{name: o.Name, path: o.Path, what: what, do: do}
}

func (f *failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin %s: %s: %s", f.name, f.path, f.what)
	if f.exit != "" {
		fmt.Fprintf(&b, " (%s)", f.exit)
	}
	fmt.Fprintf(&b, ": %s", f.do)
	if len(f.stderr) > 0 {
		b.WriteString("\n  its standard error ends:")
		for _, line := range f.stderr {
			b.WriteString("\n  | " + line)
		}
	}
	return b.String()
}

func (f *failure) Unwrap() error { return f.cause }

// withEnd adds how the process ended and what it last wrote.
func (p *Process) withEnd(f *failure, exit string, own bool) *failure {
	if own {
		f.exit = exit
	}
	f.stderr = p.tail.lines()
	return f
}

// callFailure makes the error of a failed call, and gives the process up where
// it can't be relied on any more. ctx is the caller's, within has our limit.
func (p *Process) callFailure(ctx, within context.Context, limit time.Duration, method string, err error) error {
	var refusal *rpc.Refusal
	if errors.As(err, &refusal) {
		return fmt.Errorf("plugin %s: %w", p.opts.Name, refusal)
	}
	code, text := codes.Unknown, err.Error()
	var fault *rpc.Fault
	if errors.As(err, &fault) {
		code = fault.Code
	}
	if down := p.down(); down != nil { // closed, or given up by another call
		return down
	}
	late := code == codes.DeadlineExceeded || code == codes.Canceled
	if late { // gRPC's server knows the limit too, and may call it out a moment before us
		select {
		case <-within.Done():
		case <-time.After(time.Second):
		}
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("plugin %s: %s: %w", p.opts.Name, method, ctx.Err())
	case late || within.Err() != nil:
		f := p.opts.failure(fmt.Sprintf("gave no answer to %s within %v and was stopped", method, limit),
			"report it to the plugin's author, with the model file")
		f.stderr, f.cause = p.tail.lines(), context.DeadlineExceeded
		return p.giveUp(f)
	case code == codes.Unavailable:
		return p.giveUp(p.lost(method))
	}
	return p.opts.failure(strings.TrimPrefix(text, "plugin "+p.opts.Name+" "), adviceFor(code))
}

// adviceFor is what to do about a call that failed while the plugin lives on.
func adviceFor(code codes.Code) string {
	switch code {
	case codes.InvalidArgument:
		return "the model's header does not fit the contract: report it with the file"
	case codes.Aborted:
		return "report it to the plugin's author; the log has the stack"
	case codes.ResourceExhausted:
		return "report it to the plugin's author: plans and programs hold no weights"
	}
	return "rebuild the plugin (make build), or report it to its author"
}

// lost tells how a connection broke: mostly by the end of the process.
func (p *Process) lost(method string) *failure {
	c := p.child
	if !c.waitDrained(closeWait / 2) {
		f := p.opts.failure("closed its connection during "+method, "report it to the plugin's author")
		f.stderr = p.tail.lines()
		return f
	}
	exit, own := c.exit()
	do := "report it to the plugin's author, with the model file"
	if strings.Contains(exit, "killed") {
		do = "someone killed it, or the system ran out of memory: see dmesg"
	}
	return p.withEnd(p.opts.failure("ended during "+method, do), exit, own)
}

// handshake is go-plugin's first line: core|protocol|network|address|transport|certificate.
type handshake struct {
	core, protocol int
	transport      string
}

func parseHandshake(line string) (h handshake, ok bool) {
	parts := strings.Split(strings.TrimSpace(line), "|")
	if len(parts) < 4 {
		return h, false
	}
	var err1, err2 error
	h.core, err1 = strconv.Atoi(parts[0])
	h.protocol, err2 = strconv.Atoi(parts[1])
	h.transport = "netrpc" // as old servers that don't say
	if len(parts) > 4 {
		h.transport = parts[4]
	}
	return h, err1 == nil && err2 == nil
}

func whoRebuilds(plugin int, host []int) string {
	if plugin > slices.Max(host) {
		return "the host is older: rebuild the host, or the plugin with the host's sdk (make build)"
	}
	return "the plugin is older: rebuild the plugin with the host's sdk (make build)"
}

func notStarted(err error) string {
	if p := new(fs.PathError); errors.As(err, &p) && p.Op != "fork/exec" {
		return "its socket needs a folder for temporary files that can be written: set TMPDIR to one"
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "the file is there, so its dynamic loader is missing: build it with CGO_ENABLED=0"
	}
	if errors.Is(err, fs.ErrPermission) {
		return "check its permissions, and that its file system is not mounted noexec"
	}
	return "rebuild it (make build)"
}
