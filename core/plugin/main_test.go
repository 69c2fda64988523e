package plugin

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/sluicehost/sluice/core/plugin/testdata/fake"
)

// testBinary is the built testdata/faulty; folder holds links to it whose names
// choose a behaviour.
var testBinary, folder, sum string

func TestMain(m *testing.M) {
	if path := os.Getenv("TEST_AS_HOST"); path != "" {
		os.Exit(runHost(path))
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	var err error
	if folder, err = os.MkdirTemp("", "faulty"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	testBinary = filepath.Join(folder, fake.Name)
	build := exec.Command("go", "build", "-o", testBinary, "./testdata/faulty")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building testdata/faulty:", err)
		return 1
	}
	b, err := os.ReadFile(testBinary)
	if err != nil {
		panic(err)
	}
	s := sha256.Sum256(b)
	sum = hex.EncodeToString(s[:])
	return m.Run()
}

// as is a link to the testBinary under the name of a behaviour.
func as(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.Link(testBinary, path); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	return path
}

func options(path string) Options {
	return Options{Name: fake.Name, Path: path, Architectures: []string{fake.Name}, SHA256: sum, Lock: "/etc/registry.lock.yaml"}
}

func start(t testing.TB, o Options) *Process {
	t.Helper()
	p, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// gone waits until a process that is not our child has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	for range 100 {
		if !running(pid) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// running tells a process from the remains of one that nobody has reaped.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return alive(pid)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// runHost is a host in a process of its own: it starts a plugin, prints its
// pid, survives Ctrl-C, and uses the plugin once more for each interrupt.
func runHost(path string) int {
	o := options(path)
	o.SHA256, o.Dev = os.Getenv("TEST_SHA256"), true
	o.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: os.Stderr})
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	p, err := Start(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(p.PID())
	if os.Getenv("TEST_CALL") != "" {
		go p.Plan(context.Background(), fake.Header(os.Getenv("TEST_CALL"), 0))
	}
	for range interrupts {
		if _, err := p.Plan(context.Background(), fake.Header("", 10)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Println("planned")
	}
	return 0
}

// host starts this test testBinary as a host and returns the plugin's pid.
func host(t *testing.T, path string, env ...string) (cmd *exec.Cmd, out *bufio.Scanner, errors *strings.Builder, pid int) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "TEST_AS_HOST="+path, "TEST_SHA256="+sum)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	errors = &strings.Builder{}
	cmd.Stderr = errors
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	out = bufio.NewScanner(stdout)
	if !out.Scan() {
		t.Fatal("the host said nothing")
	}
	if _, err := fmt.Sscan(out.Text(), &pid); err != nil {
		t.Fatal(err)
	}
	return cmd, out, errors, pid
}

// explains checks an error against the texts that it must have.
func explains(t *testing.T, err error, wants ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	for _, r := range err.Error() {
		if r < ' ' && r != '\n' {
			t.Errorf("control character %q in %q", r, err)
		}
	}
	if testing.Verbose() {
		t.Log(err)
	}
	var f *failure
	if errors.As(err, &f) && (f.what == "" || f.do == "") {
		t.Errorf("an error that does not say what happened and what to do: %v", err)
	}
}
