package sdk

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/sdk/rpc"
)

// described is served by TestServed and never asked for a model.
type described struct{}

func (described) Describe() Description {
	return Description{Name: "lfm2moe", Version: "0.1.0", Architectures: []string{"lfm2moe", "lfm3moe"}}
}

func (described) Configure(*Metadata) (Model, error) { panic("not asked") }

// TestServed is the plugin that the tests below run as a process.
func TestServed(t *testing.T) {
	if os.Getenv("TEST_AS_PLUGIN") == "" {
		return // nothing to test here: this is the plugin's side of the tests below
	}
	Serve(described{})
}

func pluginCommand(env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestServed$")
	cmd.Env = append(env, "TEST_AS_PLUGIN=1")
	return cmd
}

// TestByHand runs a plugin as a curious user would.
func TestByHand(t *testing.T) {
	var out, errs bytes.Buffer
	cmd := pluginCommand()
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 1 || out.Len() > 0 {
		t.Errorf("exit code %d, on standard output %q; want 1 and nothing", code, &out)
	}
	for _, want := range []string{"plugin of the Sluice host", "lfm2moe 0.1.0", "lfm2moe, lfm3moe", "host run --model FILE", "--plugin-dev lfm2moe="} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("standard error lacks %q:\n%s", want, &errs)
		}
	}
}

// TestEndsWithHost checks the watch that replaces what go-plugin lacks: the
// plugin goes when its standard input ends.
func TestEndsWithHost(t *testing.T) {
	h := rpc.Handshake()
	cmd := pluginCommand(h.MagicCookieKey+"="+h.MagicCookieValue, "PLUGIN_PROTOCOL_VERSIONS=1",
		"PLUGIN_UNIX_SOCKET_DIR="+t.TempDir(), rpc.EnvStdin+"=host", rpc.EnvLog+"=error")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "1|1|unix|") || !strings.Contains(line, "|grpc|") {
		t.Errorf("handshake %q, %v", line, err)
	}
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("ended while the host lives: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	in.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("still there 5 s after its host")
	}
}
