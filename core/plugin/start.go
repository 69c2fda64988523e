package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/sluicehost/sluice/sdk/rpc"
)

func newProcess(o Options) *Process {
	p := &Process{opts: o, child: newChild(o), tail: &tail{}}
	relay := newRelay(o.Logger.Named("plugin").Named(o.Name))
	p.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  rpc.Handshake(),
		VersionedPlugins: rpc.Clients(o.Protocols),
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		GRPCDialOptions:  rpc.DialOptions(),
		StartTimeout:     o.StartTimeout + time.Minute, // ours ends it sooner, by killing
		Logger:           hushed{Logger: o.Logger, relay: relay, name: o.Name},
		Stderr:           p.tail,
		SyncStdout:       relay,
		SyncStderr:       relay,
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: socketFolder()},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, dir string) (runner.Runner, error) {
			p.child.prepare(cmd.Env, dir)
			return p.child, nil
		},
	})
	return p
}

// socketFolder is where socket paths stay under the 104 bytes that the
// strictest system allows.
func socketFolder() string {
	if dir := os.TempDir(); len(dir) < 50 {
		return dir
	}
	return "/tmp"
}

// start brings the process up to the point where it has said who it is.
func (p *Process) start(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, p.opts.StartTimeout)
	defer cancel()
	// go-plugin takes no context: what ends its waiting is the end of the process.
	defer context.AfterFunc(within, p.child.kill)()

	conn, err := p.client.Client()
	if err != nil {
		return p.startFailure(ctx, within, err)
	}
	if p.calls, err = rpc.Dispense(conn); err != nil {
		return p.startFailure(ctx, within, err)
	}
	about, err := p.calls.Describe(within)
	if err != nil {
		return p.callFailure(ctx, within, p.opts.StartTimeout, "Describe", err)
	}
	if err := p.introduced(about); err != nil {
		return err
	}
	// The connection stands; gone now, the socket can't be left behind later.
	p.child.removeSocket()
	return nil
}

// The most that a plugin may say of itself: bytes of a version or an architecture's name, and names.
const (
	maxWord          = 100
	maxArchitectures = 1000
)

func isWord(s string) bool {
	return len(s) <= maxWord && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// introduced compares what the plugin says of itself with the registry.
func (p *Process) introduced(about *rpc.DescribeReply) error {
	o := p.opts
	if about.GetName() != o.Name {
		return o.failure(fmt.Sprintf("calls itself %q", rpc.OneLine(about.GetName(), 100)),
			"fix the name or the command in the registry, and lock it again")
	}
	if v := about.GetVersion(); !isWord(v) {
		return o.failure(fmt.Sprintf("has the version %q, want a short one without control characters", rpc.OneLine(v, maxWord)), "report it to the plugin's author")
	}
	if n := len(about.GetArchitectures()); n > maxArchitectures {
		return o.failure(fmt.Sprintf("runs %d architectures, want at most %d", n, maxArchitectures), "report it to the plugin's author")
	}
	for _, name := range about.GetArchitectures() {
		if !isWord(name) {
			return o.failure(fmt.Sprintf("runs the architecture %q, want a short name without control characters", rpc.OneLine(name, maxWord)), "report it to the plugin's author")
		}
	}
	if got := int(about.GetProtocol()); got != p.client.NegotiatedVersion() {
		return o.failure(fmt.Sprintf("shook hands on protocol %d and describes protocol %d", p.client.NegotiatedVersion(), got),
			"rebuild it (make build)")
	}
	have, want := slices.Sorted(slices.Values(about.GetArchitectures())), slices.Sorted(slices.Values(o.Architectures))
	if o.Architectures != nil && !slices.Equal(have, want) {
		return o.failure(fmt.Sprintf("runs the architectures %s, the registry says %q", rpc.OneLine(fmt.Sprintf("%q", have), 200), want),
			"fix architectures in the registry, or rebuild the plugin (make build)")
	}
	return nil
}

// closeWait bounds the wait for a process that was killed.
const closeWait = 5 * time.Second

// Close kills the process and waits until it is gone. A plugin holds no state
// to save, so there is no friendlier way. It may be called more than once.
func (p *Process) Close() error {
	p.end.Do(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.child.kill()
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			p.client.Kill() // only tidies up: connection, goroutines, pipes
			p.child.wait()
		}()
		select {
		case <-gone:
		case <-time.After(closeWait):
			p.endErr = p.opts.failure(fmt.Sprintf("process %d is still there %v after it was killed", p.PID(), closeWait),
				"it may hang in the kernel: see ps -o stat,wchan")
		}
		p.child.removeSocket()
	})
	return p.endErr
}

// startFailure finds the most telling account of why there is no connection.
func (p *Process) startFailure(ctx, within context.Context, err error) error {
	c := p.child
	if ctx.Err() != nil {
		return fmt.Errorf("plugin %s: start: %w", p.opts.Name, ctx.Err())
	}
	if !c.started() {
		return p.opts.failure("does not start: "+err.Error(), notStarted(err))
	}
	line := c.first.line()
	shake, ok := parseHandshake(line)
	timedOut := errors.Is(within.Err(), context.DeadlineExceeded)
	c.kill()
	c.waitDrained(closeWait)
	exit, own := c.exit()
	what, do := "", ""
	switch {
	case ok && shake.core != goplugin.CoreProtocolVersion:
		what, do = fmt.Sprintf("was built with a go-plugin of core protocol %d, the host's has %d", shake.core, goplugin.CoreProtocolVersion), "rebuild it (make build)"
	case ok && !slices.Contains(p.opts.Protocols, shake.protocol):
		what, do = fmt.Sprintf("speaks protocol %d, the host speaks %v", shake.protocol, p.opts.Protocols), whoRebuilds(shake.protocol, p.opts.Protocols)
	case ok && shake.transport != string(goplugin.ProtocolGRPC):
		what, do = fmt.Sprintf("offers go-plugin's %s transport, want grpc", rpc.OneLine(shake.transport, 20)), "serve it by sdk.Serve"
	case !ok && line != "":
		what, do = fmt.Sprintf("printed %q instead of the handshake", rpc.OneLine(line, 100)),
			"if it is a plugin, print nothing on standard output before sdk.Serve"
	case timedOut && !own:
		what, do = fmt.Sprintf("did not answer within %v of its start", p.opts.StartTimeout), "call sdk.Serve first thing in main"
	case own && line == "":
		what, do = "exited at its start", "run it by hand, where a plugin only says what it is"
	case line == "":
		what, do = "closed its standard output without a handshake", "serve it by sdk.Serve"
	default:
		what, do = "can't be connected to: "+rpc.OneLine(err.Error(), 300), "rebuild it (make build)"
	}
	return p.withEnd(p.opts.failure(what, do), exit, own)
}
