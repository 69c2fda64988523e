package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

// build makes a program of this module in a temporary folder.
func build(t *testing.T, dir, pkg string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.Base(pkg))
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "../../"+pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return path
}

// The host runs the tiny file of every architecture that has a plugin: logits stay finite and of a sane size, and a greedy
// continuation does not stand still.
func TestHostRunsIt(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds and runs the host")
	}
	if _, err := gpu.Adapters(); err != nil {
		gputest.Missing(t, err)
	}
	dir := t.TempDir()
	host := build(t, dir, "cmd/host")
	for _, arch := range []string{"lfm2moe", "qwen35moe", "gemma4", "bailingmoe3"} {
		t.Run(arch, func(t *testing.T) {
			if _, err := os.Stat("../../plugins/" + arch + "/main.go"); err != nil {
				t.Skipf("no plugin: %v", err)
			}
			plugin := build(t, dir, "plugins/"+arch)
			model := filepath.Join(dir, arch+".gguf")
			if err := write(t.Context(), io.Discard, tiny(t, arch, 1), model, false); err != nil {
				t.Fatal(err)
			}
			answer := eval(t, host, "--registry=../../registry.yaml", "--plugin-dev="+arch+"="+plugin, "--model="+model, "--ctx=128")
			checkAnswer(t, answer)
		})
	}
}

// answer is what host eval says, as far as this test asks.
type answer struct {
	Error  string
	Greedy []int32
	Steps  []struct {
		Top       [][2]float64
		LogSumExp float64
	}
}

func eval(t *testing.T, host string, args ...string) (a answer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, host, append([]string{"eval"}, args...)...)
	cmd.Stdin = bytes.NewBufferString(`{"id": 1, "tokens": [1, 900, 901, 902], "greedy": 32, "top": 5}` + "\n")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("host eval: %v\n%s%s", err, out, &errs)
	}
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("host eval: %v\n%s", err, out)
	}
	return a
}

func checkAnswer(t *testing.T, a answer) {
	t.Helper()
	if a.Error != "" || len(a.Greedy) != 32 || len(a.Steps) != 32 {
		t.Fatalf("have error %q, %d tokens and %d steps, want 32", a.Error, len(a.Greedy), len(a.Steps))
	}
	for i, step := range a.Steps {
		top := step.Top[0][1]
		if !(top > 3 && top < 40) || !(step.LogSumExp >= top && step.LogSumExp < top+9) {
			t.Errorf("step %d: have a largest logit of %g and logsumexp %g, want 3 to 40 and a little more", i, top, step.LogSumExp)
		}
	}
	seen := map[int32]bool{}
	for _, id := range a.Greedy {
		seen[id] = true
	}
	if len(seen) < 6 {
		t.Errorf("have greedy tokens %v, want 6 different ones or more", a.Greedy)
	}
}
