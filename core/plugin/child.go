package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/sluicehost/sluice/sdk/rpc"
)

// child is the operating system's side of a plugin. It takes the place of
// go-plugin's own runner, which hands on the host's standard input and process
// group and waits for pipes that a grandchild may hold open.
//
// Life: prepare, Start, then Wait by go-plugin once both pipes are at their
// end. kill may come at any time, also before Start.
type child struct {
	name, path, level string

	cmd    *exec.Cmd
	dir    string   // holds the socket
	stdin  *os.File // never written: its end tells the plugin that the host is gone
	stdout *os.File
	stderr *os.File
	first  head

	exited  chan struct{} // the process is gone
	drained chan struct{} // and all that it printed was read

	mu     sync.Mutex
	pid    int
	alive  bool
	killed bool
}

var _ runner.Runner = (*child)(nil)

func newChild(o Options) *child {
	// A host that hides warnings still wants to quote them where the plugin fails.
	level := min(o.Logger.GetLevel(), hclog.Info)
	return &child{name: o.Name, path: o.Path, level: level.String(),
		exited: make(chan struct{}), drained: make(chan struct{})}
}

// prepare sets the command up: an environment of go-plugin's variables and
// ours only, its own process group, and the root as working folder.
func (c *child) prepare(env []string, dir string) {
	c.dir = dir
	c.cmd = exec.Command(c.path)
	c.cmd.Env = append(env, rpc.EnvLog+"="+c.level, rpc.EnvStdin+"=host")
	c.cmd.Dir = filepath.VolumeName(c.path) + string(filepath.Separator)
	c.cmd.SysProcAttr = ownGroup()
}

// Start runs the command.
func (c *child) Start(context.Context) error {
	var theirs [3]*os.File
	var err [3]error
	theirs[0], c.stdin, err[0] = os.Pipe()
	c.stdout, theirs[1], err[1] = os.Pipe()
	c.stderr, theirs[2], err[2] = os.Pipe()
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	if err := errors.Join(err[:]...); err != nil {
		c.closePipes()
		return err
	}
	c.first.from = c.stdout
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	started := make(chan error)
	go c.run(started)
	if err := <-started; err != nil {
		c.closePipes()
		return err
	}
	return nil
}

// run holds one thread for the life of the process, because Linux's death
// signal follows the thread that forked.
func (c *child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.launch()
	started <- err
	if err != nil {
		return
	}
	c.reap()
	close(c.exited)
	select {
	case <-c.drained:
	case <-time.After(time.Second): // someone else holds the other end
	}
	c.closePipes()
}

func (c *child) launch() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return errors.New("stopped before it began")
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.pid, c.alive = c.cmd.Process.Pid, true
	return nil
}

func (c *child) closePipes() {
	for _, f := range []*os.File{c.stdin, c.stdout, c.stderr} {
		f.Close()
	}
}

// kill ends the process and its children, and keeps it from starting.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
	if c.alive {
		killGroup(c.cmd.Process)
	}
}

func (c *child) started() bool { return c.processID() != 0 }

func (c *child) processID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid
}

// wait returns when the process is gone, at once where there was none.
func (c *child) wait() {
	if c.started() {
		<-c.exited
	}
}

// waitDrained waits until the process is gone and all its output was read.
func (c *child) waitDrained(limit time.Duration) bool {
	select {
	case <-c.drained:
		return true
	case <-time.After(limit):
		return false
	}
}

// exit says how the process ended, and whether by itself rather than by kill.
func (c *child) exit() (how string, own bool) {
	select {
	case <-c.exited:
	default:
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.cmd.ProcessState
	if code := state.ExitCode(); code >= 0 {
		return fmt.Sprintf("exit code %d", code), true
	}
	how = state.String()
	return how, !c.killed || how != "signal: killed"
}

func (c *child) removeSocket() {
	if c.dir != "" {
		_ = os.RemoveAll(c.dir) // in the temporary folder: leaving it is harmless
	}
}

// Wait is called once both pipes are at their end.
func (c *child) Wait(context.Context) error {
	<-c.exited
	close(c.drained)
	if how, _ := c.exit(); how != "exit code 0" {
		return errors.New(how)
	}
	return nil
}

// Kill is go-plugin's way to kill.
func (c *child) Kill(context.Context) error {
	c.kill()
	return nil
}

// Name is what go-plugin names its log by.
func (c *child) Name() string { return c.name }

// ID is the process id, or empty where there is none.
func (c *child) ID() string {
	if pid := c.processID(); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

// Stdout also keeps the first line, for messages.
func (c *child) Stdout() io.ReadCloser { return readCloser{&c.first, c.stdout} }

// Stderr is the plugin's log.
func (c *child) Stderr() io.ReadCloser { return c.stderr }

// Diagnose has nothing to add to startFailure.
func (c *child) Diagnose(context.Context) string { return "" }

// PluginToHost accepts the plugin's own socket only, so that a plugin can't
// make the host connect elsewhere.
func (c *child) PluginToHost(network, address string) (string, string, error) {
	own := network == "unix" && filepath.Dir(address) == filepath.Clean(c.dir)
	if runtime.GOOS == "windows" {
		own = network == "tcp"
	}
	if !own {
		return "", "", fmt.Errorf("it offers the address %s %s, want a socket in %s",
			rpc.OneLine(network, 20), rpc.OneLine(address, 100), c.dir)
	}
	return network, address, nil
}

// HostToPlugin is for brokers, which we don't use.
func (c *child) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}
