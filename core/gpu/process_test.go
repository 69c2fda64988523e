package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests of this file need a process of their own: the test binary starts itself with childEnv set.
const childEnv = "GPU_TEST_CHILD"

var children = map[string]func(){
	"no loader":  func() { vulkanLoader = "libnosuchvulkan.so.1"; childOpen(ErrNoLoader) },
	"no adapter": func() { childOpen(ErrNoAdapter) },
	"abort":      childAbort,
	"panic":      func() { CatchAbort(); panic("a Go panic") },
	"wait": func() {
		CatchAbort()
		fmt.Println("ready")
		time.Sleep(time.Minute)
	},
	"notify": func() {
		CatchAbort()
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGINT)
		fmt.Println("ready")
		fmt.Println(<-c)
	},
}

func TestMain(m *testing.M) {
	if f := children[os.Getenv(childEnv)]; f != nil {
		f()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// childOpen prints the error of Open, and of Adapters where they differ.
func childOpen(want error) {
	d, err := Open(context.Background(), Options{})
	if d != nil || !errors.Is(err, want) {
		fmt.Printf("have device %v, error %v, want %v\n", d, err, want)
		os.Exit(3)
	}
	fmt.Println(err)
	if _, err2 := Adapters(); err2 == nil || err2.Error() != err.Error() {
		fmt.Printf("Adapters says %v\n", err2)
		os.Exit(3)
	}
}

// childAbort does what the package refuses to do: it submits a mapped buffer.
func childAbort() {
	CatchAbort()
	d, err := Open(context.Background(), Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(4)
	}
	r, err := d.NewReadback("readback", 256)
	if err != nil {
		panic(err)
	}
	b, err := d.NewBuffer(Scratch, "src", 256, UsageCopySrc)
	if err != nil {
		panic(err)
	}
	if _, err := r.Wait(context.Background()); err != nil {
		panic(err)
	}
	r.b.state = stateIdle // a lie
	var c Commands
	r.Copy(&c, 0, b, 0, 256)
	fmt.Println("returned:", d.Submit(&c))
	time.Sleep(10 * time.Second)
}

type childRun struct {
	code        int
	out, stderr string
}

// child runs the test binary as one of children; with a signal it is sent that once it prints "ready".
func child(t *testing.T, name string, sig os.Signal, env ...string) childRun {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childEnv+"="+name), env...)
	var out, stderr bytes.Buffer
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	buf := make([]byte, 4096)
	for {
		n, err := pipe.Read(buf)
		out.Write(buf[:n])
		if sig != nil && strings.Contains(out.String(), "ready") {
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			sig = nil
		}
		if err != nil {
			break
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return childRun{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
}

func TestNoLoader(t *testing.T) {
	r := child(t, "no loader", nil)
	if r.code != 0 || !strings.Contains(r.out, "libvulkan1") {
		t.Errorf("have exit %d and %q, want 0 and an error that names the package", r.code, r.out)
	}
}

func TestNoAdapter(t *testing.T) {
	if !hasLibrary(vulkanLoader) {
		t.Skipf("%s is not installed: no way to have a loader without a driver", vulkanLoader)
	}
	r := child(t, "no adapter", nil, "VK_DRIVER_FILES=/dev/null", "VK_ICD_FILENAMES=/dev/null")
	if r.code != 0 || !strings.Contains(r.out, "mesa-vulkan-drivers") {
		t.Errorf("have exit %d and %q, want 0 and an error that names the package", r.code, r.out)
	}
	if r.stderr != "" {
		t.Errorf("have noise on stderr: %q", r.stderr)
	}
}

func TestCatchAbort(t *testing.T) {
	d := testDevice(t) // only to skip where there is no GPU
	_ = d
	r := child(t, "abort", nil)
	t.Logf("stderr:\n%s", r.stderr)
	const last = "\nhost: gpu: the graphics library stopped (see the message above)\n"
	if r.code != 1 || !strings.HasSuffix(r.stderr, last) || strings.Contains(r.out, "returned") {
		t.Errorf("have exit %d and output %q, want 1 and the last line %q", r.code, r.out, last)
	}
	if strings.Contains(r.stderr, "goroutine ") {
		t.Error("the Go runtime printed its traces")
	}
}

// TestCatchAbortLeavesTheRest checks that Go's own handling of panics and signals is as before.
func TestCatchAbortLeavesTheRest(t *testing.T) {
	for _, tt := range []struct {
		child  string
		sig    os.Signal
		code   int
		stderr string
		out    string
	}{
		{"panic", nil, 2, "panic: a Go panic", ""},
		{"wait", syscall.SIGQUIT, 2, "SIGQUIT: quit", ""},
		{"wait", syscall.SIGABRT, 2, "SIGABRT: abort", ""},
		{"notify", syscall.SIGINT, 0, "", "interrupt"},
	} {
		t.Run(fmt.Sprint(tt.child, " ", tt.sig), func(t *testing.T) {
			r := child(t, tt.child, tt.sig)
			if r.code != tt.code || !strings.Contains(r.stderr, tt.stderr) || !strings.Contains(r.out, tt.out) {
				t.Errorf("have exit %d, output %q and stderr\n%s\nwant %d, %q and %q", r.code, r.out, r.stderr, tt.code, tt.out, tt.stderr)
			}
			if strings.Contains(r.stderr, "the graphics library stopped") {
				t.Error("the abort line was printed")
			}
		})
	}
}
