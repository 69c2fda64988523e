// Package plugin starts architecture plugins as processes of their own, checks
// that they are what the registry promised, and asks them for plans and
// programs. It is used while a model loads and never while tokens are made. It
// does not know the registry (a caller passes plain Options), nor what a plan
// means: sdk/program validates that.
//
// The main starting point is Start.
package plugin

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"

	"github.com/sluicehost/sluice/sdk/program"
	"github.com/sluicehost/sluice/sdk/rpc"
)

// Options say which plugin to start and what it must be.
type Options struct {
	Name          string   // as in the registry; Describe must give the same
	Path          string   // of the binary
	Architectures []string // those that Describe must give, in any order; nil for any
	SHA256        string   // of the binary, in hex, from the lock file
	Lock          string   // path of the lock file, for messages
	Dev           bool     // run without a checksum, with a warning on Stderr
	Protocols     []int    // that the host speaks; empty means rpc.Protocols

	Logger       hclog.Logger  // gets the plugin's log under its name; nil means none
	Stderr       io.Writer     // gets the warning of Dev; nil means os.Stderr
	StartTimeout time.Duration // from the start to the answer of Describe; 0 means 10 s
	CallTimeout  time.Duration // of one Plan or Encode; 0 means 60 s
}

// Process is a running plugin. Its methods may be used by many goroutines at
// once. It implements rpc.Plugin.
type Process struct {
	opts   Options
	child  *child
	tail   *tail
	client *goplugin.Client
	calls  rpc.Plugin

	mu     sync.Mutex
	closed bool
	broken error // why the process was given up
	end    sync.Once
	endErr error
}

var _ rpc.Plugin = (*Process)(nil)

// Start checks the binary, starts it, and asks it who it is. On an error no
// process is left. Errors name the plugin, its path, what happened, and where
// there was a process its exit code and last lines of standard error.
func Start(ctx context.Context, o Options) (*Process, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.SHA256 == "" {
		fmt.Fprintf(o.Stderr, "WARNING: plugin %s runs unchecked: %s has no checksum, so anyone who can write that file runs code here. Use it for development only.\n", o.Name, o.Path)
	}
	p := newProcess(o)
	if err := p.start(ctx); err != nil {
		_ = p.Close() // the first error says more
		return nil, err
	}
	return p, nil
}

func (o Options) complete() (Options, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return o, fmt.Errorf("plugin %s: %s: %w", o.Name, o.Path, err)
	}
	o.Path = path
	if len(o.Protocols) == 0 {
		o.Protocols = rpc.Protocols()
	}
	if o.Logger == nil {
		o.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 10 * time.Second
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = time.Minute
	}
	return o, nil
}

// check is all that can be known without running the binary. As with
// go-plugin's own check, who can replace the file after it runs what he likes.
func (o Options) check() error {
	if what, do := inspect(o.Path); what != "" {
		return o.failure(what, do)
	}
	if o.SHA256 == "" {
		if o.Dev {
			return nil
		}
		return o.failure("has no checksum in "+o.lock(), "run `make build` or `host plugin lock`, or name it by --plugin-dev")
	}
	sum, err := parseSum(o.SHA256)
	if err != nil {
		return o.failure(fmt.Sprintf("%s: %v", o.lock(), err), "run `make build` or `host plugin lock`")
	}
	same, err := (&goplugin.SecureConfig{Checksum: sum, Hash: sha256.New()}).Check(o.Path)
	if err != nil {
		return o.failure("can't be read: "+err.Error(), "fix its permissions")
	}
	if !same {
		return o.failure(fmt.Sprintf("is not the file that was locked: its checksum is not the %s… in %s", o.SHA256[:12], o.lock()),
			"if you built it yourself run `make build` or `host plugin lock`, otherwise find out who changed it")
	}
	return nil
}

func (o Options) lock() string {
	if o.Lock == "" {
		return "the lock file"
	}
	return o.Lock
}

// PID is the process id, also after the process is gone.
func (p *Process) PID() int { return p.child.processID() }

// Describe asks the plugin who it is.
func (p *Process) Describe(ctx context.Context) (reply *rpc.DescribeReply, err error) {
	err = p.call(ctx, "Describe", func(ctx context.Context) error {
		reply, err = p.calls.Describe(ctx)
		return err
	})
	return reply, err
}

// Plan asks for the plan of a file. The error wraps a *rpc.Refusal where the
// plugin can't run it.
func (p *Process) Plan(ctx context.Context, h *program.Header) (plan *program.Plan, err error) {
	err = p.call(ctx, "Plan", func(ctx context.Context) error {
		plan, err = p.calls.Plan(ctx, h)
		return err
	})
	return plan, err
}

// Encode asks for the program over placed weights. The error wraps a
// *rpc.Refusal where the plugin can't run the file so.
func (p *Process) Encode(ctx context.Context, req *program.EncodeRequest) (prog *program.Program, err error) {
	err = p.call(ctx, "Encode", func(ctx context.Context) error {
		prog, err = p.calls.Encode(ctx, req)
		return err
	})
	return prog, err
}

// call runs one call within its timeout. A plugin that failed to answer is
// killed; later calls return the same error.
func (p *Process) call(ctx context.Context, method string, f func(context.Context) error) error {
	if err := p.down(); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, p.opts.CallTimeout)
	defer cancel()
	err := f(within)
	if err == nil {
		return nil
	}
	return p.callFailure(ctx, within, p.opts.CallTimeout, method, err)
}

func (p *Process) down() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("plugin %s: is closed", p.opts.Name)
	}
	return p.broken
}

// giveUp kills the process and remembers why.
func (p *Process) giveUp(err error) error {
	p.mu.Lock()
	if p.broken == nil {
		p.broken = err
	}
	p.mu.Unlock()
	p.child.kill()
	return err
}
