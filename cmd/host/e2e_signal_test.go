//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// live is a running host.
type live struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func start(t *testing.T, args ...string) *live {
	t.Helper()
	l := &live{t: t, cmd: command(t, args...), stderr: &syncBuffer{}}
	var err error
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.stdout, l.cmd.Stderr = bufio.NewReader(out), l.stderr
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.cmd.Process.Kill() })
	return l
}

// waitFor waits until standard error has a text.
func (l *live) waitFor(text string) {
	l.t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(l.stderr.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("have no %q in the errors:\n%s", text, l.stderr)
		}
	}
}

// interrupt sends Ctrl-C and returns the rest of the output. The host must end at once with
// code 130.
func (l *live) interrupt() string {
	l.t.Helper()
	if err := l.cmd.Process.Signal(syscall.SIGINT); err != nil {
		l.t.Fatal(err)
	}
	began := time.Now()
	rest, err := io.ReadAll(l.stdout)
	if err != nil {
		l.t.Fatal(err)
	}
	_ = l.cmd.Wait()
	if took := time.Since(began); took > 5*time.Second {
		l.t.Errorf("took %v to end", took)
	}
	if code := l.cmd.ProcessState.ExitCode(); code != 130 {
		l.t.Errorf("have exit code %d (%v), want 130; errors:\n%s", code, l.cmd.ProcessState, l.stderr)
	}
	if strings.Contains(l.stderr.String(), "panic") || strings.Contains(l.stderr.String(), "canceled") {
		l.t.Errorf("have errors\n%s", l.stderr)
	}
	return string(rest)
}

var pluginPID = regexp.MustCompile(`plugin started: plugin=\S+ pid=(\d+)`)

// TestPluginGone: the plugin's process is gone when the first token comes, and more follow.
func TestPluginGone(t *testing.T) {
	t.Parallel()
	needGPU(t)
	l := start(t, "run", "--raw", "--prompt", "In the beginning", "--model", tiny, "-v", "-n", "4000")
	if _, err := l.stdout.ReadByte(); err != nil {
		t.Fatalf("%v; errors:\n%s", err, l.stderr)
	}
	m := pluginPID.FindStringSubmatch(l.stderr.String())
	if m == nil {
		t.Fatalf("no pid of the plugin in the errors:\n%s", l.stderr)
	}
	pid, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("plugin %d: have %v, want no such process", pid, err)
	}
	for range 20 {
		if _, err := l.stdout.ReadByte(); err != nil {
			t.Fatalf("after the plugin's end: %v; errors:\n%s", err, l.stderr)
		}
	}
	if rest := l.interrupt(); !strings.HasSuffix(rest, "\n") {
		t.Errorf("have output that ends in %q, want a newline", rest[max(0, len(rest)-20):])
	}
	if !strings.Contains(l.stderr.String(), "; interrupted; ") {
		t.Errorf("have no statistics in the errors:\n%s", l.stderr)
	}
}

// TestInterruptLoad: Ctrl-C ends a load, whatever it is at, and leaves no plugin behind.
func TestInterruptLoad(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"looked for the registry", "plugin started", "GPU budget"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			needGPU(t)
			l := start(t, "eval", "--model", tiny, "-v")
			l.waitFor(text)
			l.interrupt()
			for _, m := range pluginPID.FindAllStringSubmatch(l.stderr.String(), -1) {
				waitGone(t, m[1])
			}
		})
	}
}

func waitGone(t *testing.T, pid string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(fmt.Sprint("/proc/", pid))
		if os.IsNotExist(err) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("plugin %s is still there", pid)
		}
	}
}

// TestInterruptInput: Ctrl-C ends the wait for input.
func TestInterruptInput(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"tokenize", "--model", tiny}, {"run", "--raw", "--model", tiny}} {
		l := start(t, args...)
		if args[0] == "tokenize" {
			fmt.Fprintln(l.stdin, `{"text":"a"}`)
			if _, err := l.stdout.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		} else {
			time.Sleep(200 * time.Millisecond) // nothing tells that it waits
		}
		if rest := l.interrupt(); rest != "" {
			t.Errorf("%v: have output %q", args, rest)
		}
	}
}

// TestHangup: a closed terminal ends the host in good order, not by the signal.
func TestHangup(t *testing.T) {
	t.Parallel()
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("hangups are ignored here, as under nohup, and so they are by the programs that this starts")
	}
	l := start(t, "tokenize", "--model", tiny)
	fmt.Fprintln(l.stdin, `{"text":"a"}`)
	if _, err := l.stdout.ReadString('\n'); err != nil {
		t.Fatalf("%v; errors:\n%s", err, l.stderr)
	}
	if err := l.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	_ = l.cmd.Wait()
	if code := l.cmd.ProcessState.ExitCode(); code != 129 {
		t.Errorf("have %v, want exit code 129; errors:\n%s", l.cmd.ProcessState, l.stderr)
	}
}

// TestInterruptBench: Ctrl-C shows the budgets that are measured, and says that the rest is not.
func TestInterruptBench(t *testing.T) {
	t.Parallel()
	needGPU(t)
	l := start(t, "bench", "--model", tiny, "--budgets", "max,60%,50%,40%,30%,20%", "--prompt", "2", "--decode", "3", "--runs", "0")
	l.waitFor("host: max, as-is: prompt ")
	rest := l.interrupt()
	for _, want := range []string{"\nmax ", "100.0%", "a token ", "LIMIT", "interrupted: the rest was not measured"} {
		if !strings.Contains(rest, want) {
			t.Errorf("have no %q in\n%s", want, rest)
		}
	}
	if strings.Contains(rest, "\n20% ") {
		t.Errorf("have all rows:\n%s", rest)
	}
}
