package plugin

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// TestBadFiles covers what is refused before anything runs.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, mode os.FileMode, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	elf, err := os.ReadFile(testBinary)
	if err != nil {
		t.Fatal(err)
	}
	arm := bytes.Clone(elf)
	arm[18], arm[19] = 183, 0 // e_machine
	macho := append([]byte{0xcf, 0xfa, 0xed, 0xfe, 0x0c, 0, 0, 1}, make([]byte, 100)...)
	wrong := hex.EncodeToString(make([]byte, 32))

	cases := map[string]struct {
		path, sum string
		dev       bool
		wants     []string
	}{
		"missing":        {filepath.Join(dir, "none"), sum, false, []string{"there is no such file", "make build"}},
		"folder":         {dir, sum, false, []string{"is a folder"}},
		"not-executable": {write("plain", 0o644, elf), sum, false, []string{"is not executable (mode -rw-r--r--)", "chmod +x"}},
		"device":         {"/dev/null", sum, false, []string{"is no regular file"}},
		"other-machine":  {write("arm", 0o755, arm), sum, true, []string{"another machine: have ELF arm64, want ELF"}},
		"other-system":   {write("mac", 0o755, macho), sum, true, []string{"another machine: have Mach-O arm64"}},
		"windows":        {write("win", 0o755, []byte("MZ\x90\x00 and so on")), sum, true, []string{"another machine: have PE"}},
		"text":           {write("text", 0o755, []byte("just some text, no program")), sum, true, []string{"is not a program: it starts with \"just some text"}},
		"empty":          {write("empty", 0o755, nil), "", true, []string{"is not a program"}},
		"short":          {write("short", 0o755, elf[:19]), "", true, []string{"is not a program"}},
		"truncated":      {write("truncated", 0o755, elf[:3000]), "", true, []string{"does not start", "make build"}},
		"no-interpreter": {write("script", 0o755, []byte("#!/no/such/interpreter here\n")), "", true, []string{"does not start", "dynamic loader is missing"}},
		"checksum":       {testBinary, wrong, false, []string{"is not the file that was locked", "/etc/registry.lock.yaml", "make build", "host plugin lock", "000000000000…"}},
		"checksum-dev":   {testBinary, wrong, true, []string{"is not the file that was locked"}},
		"no-checksum":    {testBinary, "", false, []string{"has no checksum in /etc/registry.lock.yaml", "--plugin-dev", "host plugin lock"}},
		"not-hex":        {testBinary, "xyz", false, []string{`checksum "xyz" is not hex`, "/etc/registry.lock.yaml"}},
		"short-checksum": {testBinary, "abcd", false, []string{"checksum has 2 bytes, want 32"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := options(c.path)
			o.SHA256, o.Dev, o.Stderr = c.sum, c.dev, &bytes.Buffer{}
			p, err := Start(context.Background(), o)
			if err == nil {
				p.Close()
			}
			explains(t, err, append(c.wants, "plugin faulty: "+c.path+": ")...)
		})
	}
}

// TestNoTemporaryFolder: what fails before the program is not laid at its door.
func TestNoTemporaryFolder(t *testing.T) {
	program := as(t, "silent")
	t.Setenv("TMPDIR", "/no/such/folder")
	p, err := Start(context.Background(), options(program))
	if err == nil {
		p.Close()
	}
	explains(t, err, "does not start", "set TMPDIR")
}

// TestBadStarts covers what goes wrong between the start and the first call.
func TestBadStarts(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		"exit-early":    {"exited at its start (exit code 7)", "run it by hand, where a plugin only says what it is", "| can't find my head"},
		"exit-zero":     {"exited at its start (exit code 0)"},
		"segfault":      {"exited at its start (exit code 2)", "| SIGSEGV: segmentation violation"},
		"panic-early":   {"exited at its start (exit code 2)", "| panic: at once", "| goroutine 1"},
		"garbage":       {`printed "Hello, I am a plugin!`, "print nothing on standard output before sdk.Serve"},
		"garbage-long":  {`printed "AAAAAAAA`, "…"},
		"garbage-hang":  {`printed "no line end" instead of the handshake`},
		"silent":        {"did not answer within 2s of its start", "call sdk.Serve first thing"},
		"closes-stdout": {"closed its standard output without a handshake"},
		"core-9":        {"core protocol 9, the host's has 1", "rebuild it"},
		"protocol-0":    {"speaks protocol 0, the host speaks [1]", "the plugin is older: rebuild the plugin"},
		"protocol-2":    {"speaks protocol 2, the host speaks [1]", "the host is older: rebuild the host"},
		"netrpc":        {"offers go-plugin's netrpc transport, want grpc"},
		"certificate":   {"can't be connected to", "server cert"},
		"deaf":          {"gave no answer to Describe within 2s and was stopped"},
		"elsewhere":     {"offers the address tcp 192.0.2.1:9, want a socket in"},
		"escape":        {"offers the address unix /run/other.sock, want a socket in"},
		"no-service":    {"unknown service sluice.rpc.v1.Architecture", "rebuild the plugin"},
		"another":       {`calls itself "another"`, "fix the name or the command in the registry"},
	}
	for name, wants := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(as(t, name))
			o.StartTimeout = 2 * time.Second
			began := time.Now()
			p, err := Start(context.Background(), o)
			if err == nil {
				p.Close()
			}
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("took %v", took)
			}
			wants = append(wants, "plugin faulty: "+o.Path+": ")
			explains(t, err, wants...)
		})
	}
}

func TestIntroduction(t *testing.T) {
	t.Parallel()
	o := options(testBinary)
	o.Architectures = []string{"b", "faulty"}
	_, err := Start(context.Background(), o)
	explains(t, err, `runs the architectures ["faulty"], the registry says ["b" "faulty"]`)
	o.Architectures = nil
	start(t, o)
}

// TestWildIntroduction: what a plugin says of itself is for tables and messages, also where no registry says what it should be.
func TestWildIntroduction(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"wild-version": "has the version", "long-version": "has the version", "wild-architecture": "runs the architecture", "many-architectures": "runs 100000 architectures",
	} {
		o := options(as(t, name))
		o.Architectures = nil
		p, err := Start(context.Background(), o)
		if err == nil {
			p.Close()
		}
		explains(t, err, want)
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: have an error of %d bytes", name, len(err.Error()))
		}
	}
}

func TestDevWarns(t *testing.T) {
	t.Parallel()
	var warning bytes.Buffer
	o := options(testBinary)
	o.SHA256, o.Dev, o.Stderr = "", true, &warning
	start(t, o)
	if !strings.Contains(warning.String(), "WARNING: plugin faulty runs unchecked: "+testBinary) {
		t.Errorf("no warning: %q", &warning)
	}
	warning.Reset()
	o.SHA256 = sum
	start(t, o)
	if warning.Len() > 0 {
		t.Errorf("a checked plugin warns: %q", &warning)
	}
}

func TestStartCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	began := time.Now()
	_, err := Start(ctx, options(as(t, "silent")))
	if !errors.Is(err, context.Canceled) || time.Since(began) > 3*time.Second {
		t.Errorf("have %v after %v", err, time.Since(began))
	}
	if _, err := Start(ctx, options(testBinary)); !errors.Is(err, context.Canceled) {
		t.Errorf("started with a context that was over: %v", err)
	}
}

// TestNothingLeft starts plugins that leave processes behind.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		plugin, call string
		reachable    bool // in the plugin's process group
	}{
		"closed":  {"grandchild", "", true},
		"crashed": {"grandchild", "exit", true},
		"escaped": {"escaped-grandchild", "", false}, // must only not hold the host up
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := start(t, options(as(t, c.plugin)))
			child := grandchild(t, p)
			if _, err := plan(t, p, c.call, 0); (err != nil) != (c.call != "") {
				t.Errorf("Plan: %v", err)
			}
			if c.call != "" {
				gone(t, child) // before Close has a hand in it
			}
			began := time.Now()
			if err := p.Close(); err != nil || time.Since(began) > 3*time.Second {
				t.Errorf("Close: %v after %v", err, time.Since(began))
			}
			if alive(p.PID()) {
				t.Error("the plugin still runs")
			}
			if c.reachable {
				gone(t, child)
			} else if process, err := os.FindProcess(child); err == nil {
				_ = process.Kill()
			}
		})
	}
}

// grandchild is the pid that a plugin told us on its standard error.
func grandchild(t *testing.T, p *Process) int {
	t.Helper()
	for _, line := range p.tail.lines() {
		if n, ok := strings.CutPrefix(line, "grandchild "); ok {
			pid, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("no grandchild in %q", p.tail.lines())
	return 0
}

func TestConcurrentStarts(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			p, err := Start(context.Background(), options(testBinary))
			if err != nil {
				t.Error(err)
				return
			}
			if err := p.Close(); err != nil || alive(p.PID()) {
				t.Errorf("have %v, process alive %v", err, alive(p.PID()))
			}
		})
	}
	wg.Wait()
}

// TestLog checks that the plugin's log comes under its name and by level, and
// that go-plugin adds nothing.
func TestLog(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	o := options(testBinary)
	o.Logger = hclog.New(&hclog.LoggerOptions{Name: "host", Level: hclog.Info, Output: &log})
	p := start(t, o)
	plan(t, p, "log", 0)
	plan(t, p, "panic", 0)
	p.Close()
	text := log.String()
	for _, want := range []string{"[WARN]  host.plugin.faulty: a warning by the author", "[ERROR] host.plugin.faulty: panic in Plan", "fake.go:"} {
		if !strings.Contains(text, want) {
			t.Errorf("log lacks %q", want)
		}
	}
	for _, never := range []string{"too quiet", "plugin process exited", "gracefully", "printed to stdout"} {
		if strings.Contains(text, never) {
			t.Errorf("log has %q", never)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestFlood checks that of an endless log the beginning is shown, without what a terminal would obey.
func TestFlood(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	o := options(as(t, "flood"))
	o.Logger = hclog.New(&hclog.LoggerOptions{Name: "host", Level: hclog.Warn, Output: &log})
	start(t, o).Close()
	text := log.String()
	if n := len(text); n < maxLog/2 || n > 2*maxLog || strings.Contains(text, "\x1b") {
		t.Errorf("have %d bytes of log, want about %d without escapes: %.100q", n, maxLog, text)
	}
	if n := strings.Count(text, "the rest of its log is left out"); n != 1 {
		t.Errorf("have %d words about the rest, want 1", n)
	}
}

// TestNoNoise: that a process which the plugin left behind holds its standard error is nobody's business.
func TestNoNoise(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	o := options(as(t, "escaped-grandchild"))
	o.Logger = hclog.New(&hclog.LoggerOptions{Name: "host", Level: hclog.Warn, Output: &log})
	p := start(t, o)
	child := grandchild(t, p)
	p.Close()
	if process, err := os.FindProcess(child); err == nil {
		_ = process.Kill()
	}
	if text := log.String(); text != "" {
		t.Errorf("have %q", text)
	}
}

// TestPrints checks that what an author prints is in the log at debug level.
func TestPrints(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	o := options(testBinary)
	o.Logger = hclog.New(&hclog.LoggerOptions{Name: "host", Level: hclog.Debug, Output: &log})
	p := start(t, o)
	plan(t, p, "log", 0)
	want := []string{"[DEBUG] host.plugin.faulty: printed to stdout by the author", "[DEBUG] host.plugin.faulty: too quiet for the host"}
	for range 100 {
		if strings.Contains(log.String(), want[0]) && strings.Contains(log.String(), want[1]) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("log lacks one of %q:\n%s", want, log.String())
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
