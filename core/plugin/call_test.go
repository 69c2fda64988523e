package plugin

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"

	"github.com/sluicehost/sluice/core/plugin/testdata/fake"
	"github.com/sluicehost/sluice/sdk"
	"github.com/sluicehost/sluice/sdk/program"
	"github.com/sluicehost/sluice/sdk/rpc"
)

func plan(t *testing.T, p rpc.Plugin, behaviour string, size uint64) (*program.Plan, error) {
	t.Helper()
	return p.Plan(context.Background(), fake.Header(behaviour, size))
}

func inProcess() rpc.Plugin {
	return rpc.InProcess(fake.Name, fake.Plugin{}, hclog.NewNullLogger())
}

// TestForms asks both forms the same and wants the same bytes.
func TestForms(t *testing.T) {
	t.Parallel()
	p, q := start(t, options(testBinary)), inProcess()
	ctx := context.Background()
	request := &program.EncodeRequest{Header: fake.Header("", 100_000), KvF32: true}
	asks := map[string]func(rpc.Plugin) (proto.Message, error){
		"describe": func(p rpc.Plugin) (proto.Message, error) { return p.Describe(ctx) },
		"plan":     func(p rpc.Plugin) (proto.Message, error) { return p.Plan(ctx, fake.Header("", 3_000_000)) },
		"encode":   func(p rpc.Plugin) (proto.Message, error) { return p.Encode(ctx, request) },
	}
	for name, ask := range asks {
		a, err := ask(p)
		if err != nil {
			t.Fatal(name, err)
		}
		b, err := ask(q)
		if err != nil {
			t.Fatal(name, err)
		}
		if x, y := bytesOf(t, a), bytesOf(t, b); !bytes.Equal(x, y) || len(x) == 0 {
			t.Errorf("%s: the process gives %d bytes, this process %d others", name, len(x), len(y))
		}
	}
}

func bytesOf(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAuthor goes through sdk.Serve and sdk.InProcess.
func TestAuthor(t *testing.T) {
	t.Parallel()
	p := start(t, options(as(t, "sdk")))
	for _, r := range []rpc.Plugin{p, sdk.InProcess(fake.Architecture{})} {
		about, err := r.Describe(context.Background())
		if err != nil || about.Version != "0.0.2" || !slices.Equal(about.Architectures, []string{"faulty"}) || about.Protocol != 1 {
			t.Errorf("have %v, %v", about, err)
		}
		_, err = plan(t, r, "faulty", 0)
		explains(t, err, "key faulty.block_count: have 0, want more")
		_, err = plan(t, r, "other", 0)
		explains(t, err, "general.architecture", "other")
		var refusal *sdk.Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("no refusal: %v", err)
		}
		_, err = plan(t, r, "faulty", 13)
		explains(t, err, "panicked in Plan: thirteen")
	}
}

// TestNoPointersPass checks that in process, too, both sides have their own copy.
func TestNoPointersPass(t *testing.T) {
	t.Parallel()
	kept := &keeper{}
	p := rpc.InProcess("keeper", kept, hclog.NewNullLogger())
	h := fake.Header("", 0)
	got, err := p.Plan(context.Background(), h)
	if err != nil {
		t.Fatal(err)
	}
	h.Vocab, got.Unused = 99, []string{"changed"}
	if kept.header.Vocab != 0 || len(kept.plan.Unused) != 0 {
		t.Error("a pointer passed")
	}
}

type keeper struct {
	fake.Plugin
	header *program.Header
	plan   *program.Plan
}

func (k *keeper) Plan(ctx context.Context, h *program.Header) (*program.Plan, error) {
	k.header = h
	k.plan, _ = k.Plugin.Plan(ctx, h)
	return k.plan, nil
}

// TestLiveFailures are failures of one call, after which the plugin still
// answers; both forms give them.
func TestLiveFailures(t *testing.T) {
	t.Parallel()
	p, q := start(t, options(testBinary)), inProcess()
	cases := map[string][]string{
		"nil":   {"Plan returned neither a plan nor a refusal"},
		"error": {"Plan: no idea"},
		"panic": {"panicked in Plan: runtime error: index out of range [1] with length 0"},
		"utf8":  {"the reply of Plan can't be read: ", "invalid UTF-8"},
	}
	for name, wants := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := plan(t, q, name, 0)
			explains(t, err, wants...)
			_, err = plan(t, p, name, 0)
			explains(t, err, append(wants, "plugin faulty: "+testBinary+": ")...)
			if _, err = plan(t, p, "", 1); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
	t.Run("too-large", func(t *testing.T) {
		want := "the reply of Plan is larger than the limit of 64 MiB"
		_, err := plan(t, q, "", 65<<20)
		explains(t, err, want)
		_, err = plan(t, p, "", 65<<20)
		explains(t, err, want)
		if got, err := plan(t, p, "", 60<<20); err != nil || proto.Size(got) < 60<<20 {
			t.Errorf("60 MiB: %v", err)
		}
	})
	t.Run("large-request", func(t *testing.T) {
		for _, r := range []rpc.Plugin{p, q} {
			if _, err := plan(t, r, strings.Repeat("x", 60<<20), 0); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("request-too-large", func(t *testing.T) {
		h := fake.Header(strings.Repeat("x", 65<<20), 0)
		for _, r := range []rpc.Plugin{p, q} {
			_, err := r.Plan(context.Background(), h)
			explains(t, err, "the request of Plan has 681", "the limit is 67108864")
		}
	})
	t.Run("request-not-utf8", func(t *testing.T) {
		for _, r := range []rpc.Plugin{p, q} {
			_, err := plan(t, r, "\xff", 0)
			explains(t, err, "the request of Plan can't be marshalled", "UTF-8")
		}
	})
	t.Run("refuse", func(t *testing.T) {
		for _, r := range []rpc.Plugin{p, q} {
			_, err := plan(t, r, "refuse", 0)
			var refusal *rpc.Refusal
			if !errors.As(err, &refusal) || !slices.Equal(refusal.Reasons, []string{"key fake.a: have 1, want 2", "tensor t: missing"}) {
				t.Errorf("have %#v", err)
			}
			_, err = r.Encode(context.Background(), &program.EncodeRequest{Header: fake.Header("refuse", 0)})
			if !errors.As(err, &refusal) {
				t.Errorf("have %#v", err)
			}
		}
	})
}

// TestForeignServers are replies that our own server would not send.
func TestForeignServers(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"empty-replies":          "Plan returned neither a plan nor a refusal",
		"refuses-without-reason": "no reason given",
		"unlimited":              "the reply of Plan is larger than the limit of 64 MiB",
	}
	for name, want := range cases {
		_, err := plan(t, start(t, options(as(t, name))), "", 0)
		explains(t, err, want)
	}
}

// TestDeadlyFailures are those after which the process must be gone.
func TestDeadlyFailures(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		"crash":   {"ended during Plan (exit code 2)", "| panic: boom in a goroutine", "| goroutine "},
		"exit":    {"ended during Plan (exit code 3)", "| error: logged by the author"},
		"sigkill": {"ended during Plan (signal: killed)", "out of memory"},
		"hang":    {"gave no answer to Plan within 3s and was stopped"},
		"spin":    {"gave no answer to Plan within 3s and was stopped"},
		"freeze":  {"gave no answer to Plan within 3s and was stopped"},
	}
	for name, wants := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(testBinary)
			o.CallTimeout = 3 * time.Second
			p := start(t, o)
			began := time.Now()
			_, err := plan(t, p, name, 0)
			explains(t, err, append(wants, "plugin faulty: "+testBinary+": ")...)
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("took %v", took)
			}
			_, again := plan(t, p, "", 0)
			if again == nil || again.Error() != err.Error() {
				t.Errorf("the next call gives %v", again)
			}
			gone(t, p.PID())
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCallCancelled(t *testing.T) {
	t.Parallel()
	for _, p := range []rpc.Plugin{start(t, options(testBinary)), inProcess()} {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		began := time.Now()
		_, err := p.Plan(ctx, fake.Header("hang", 0))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*time.Second {
			t.Errorf("have %v after %v", err, time.Since(began))
		}
		cancel()
		if _, err := plan(t, p, "", 1); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	p := start(t, options(testBinary))
	if !alive(p.PID()) {
		t.Fatal("no process")
	}
	call := make(chan error)
	go func() {
		_, err := p.Plan(context.Background(), fake.Header("hang", 0))
		call <- err
	}()
	time.Sleep(200 * time.Millisecond)
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if alive(p.PID()) {
		t.Error("the process is still there")
	}
	explains(t, <-call, "plugin faulty: is closed")
	_, err := plan(t, p, "", 0)
	explains(t, err, "plugin faulty: is closed")
	if _, err := os.Stat(p.child.dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", p.child.dir, err)
	}
}

// TestEnvironment checks what a plugin sees of the host.
func TestEnvironment(t *testing.T) {
	t.Setenv("HF_TOKEN", "secret")
	p := start(t, options(testBinary))
	_, err := plan(t, p, "environment", 0)
	var refusal *rpc.Refusal
	if !errors.As(err, &refusal) {
		t.Fatal(err)
	}
	for _, v := range refusal.Reasons {
		name, value, _ := strings.Cut(v, "=")
		switch {
		case strings.HasPrefix(name, "PLUGIN_"), strings.HasPrefix(name, "SLUICE_PLUGIN"):
		case name == "cwd" && value == "/", name == "PWD" && value == "/":
		default:
			t.Errorf("a plugin sees %s", v)
		}
	}
}

// TestGroup checks that a terminal's Ctrl-C reaches the host alone.
func TestGroup(t *testing.T) {
	t.Parallel()
	cmd, out, stderr, pid := host(t, testBinary)
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("plugin %d is in group %d: %v", pid, group, err)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if !out.Scan() || out.Text() != "planned" {
		t.Errorf("after Ctrl-C: %q", out.Text())
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if stderr.Len() > 0 {
		t.Errorf("noise: %s", stderr)
	}
}

// TestNoOrphans kills hosts and checks that their plugins go too, whatever
// they are doing.
func TestNoOrphans(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"", "hang", "spin"} {
		cmd, _, _, pid := host(t, testBinary, "TEST_CALL="+call)
		time.Sleep(200 * time.Millisecond)
		_ = cmd.Process.Kill()
		gone(t, pid)
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		p := start(b, options(testBinary))
		_ = p.Close()
	}
}

func benchmarkEncode(b *testing.B, p rpc.Plugin) {
	request := &program.EncodeRequest{Header: fake.Header("", 3_000_000)}
	for b.Loop() {
		got, err := p.Encode(context.Background(), request)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(proto.Size(got)))
	}
}

func BenchmarkEncode3MB(b *testing.B)          { benchmarkEncode(b, start(b, options(testBinary))) }
func BenchmarkEncode3MBInProcess(b *testing.B) { benchmarkEncode(b, inProcess()) }

func BenchmarkPlanSmall(b *testing.B) {
	p := start(b, options(testBinary))
	for b.Loop() {
		if _, err := p.Plan(context.Background(), fake.Header("", 1000)); err != nil {
			b.Fatal(err)
		}
	}
}
