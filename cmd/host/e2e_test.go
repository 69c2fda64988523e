package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/registry"
)

// These tests run the built host with the built plugin, as make build lays them out.

var folder string // of the built things, removed at the end

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		os.RemoveAll(folder)
	}
	os.Exit(code)
}

// installed is a folder with bin/host, bin/plugins/..., registry.yaml and its lock.
var installed = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "host-e2e")
	if err != nil {
		return "", err
	}
	folder = dir
	bin := filepath.Join(dir, "bin")
	for _, args := range [][]string{
		{"-o", bin + "/", "."},
		{"-o", filepath.Join(bin, "plugins") + "/", "../../plugins/..."},
		{"-o", filepath.Join(bin, "faulty"), "../../core/plugin/testdata/faulty"},
	} {
		if out, err := exec.Command("go", append([]string{"build", "-buildvcs=false"}, args...)...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build %v: %w\n%s", args, err, out)
		}
	}
	data, err := os.ReadFile("../../registry.yaml")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, registry.FileName)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return "", err
	}
	return dir, registry.Lock(path)
})

func install(t testing.TB) string {
	t.Helper()
	dir, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// needGPU skips or fails the test where there is none.
func needGPU(t testing.TB) {
	t.Helper()
	if _, err := gpu.Adapters(); err != nil {
		gputest.Missing(t, err)
	}
}

// patience bounds a run of the host; a CPU driver with a cold shader cache takes its time.
const patience = 5 * time.Minute

// command is the built host in an environment without settings of the user's.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(install(t), "bin", "host"), args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, registry.Env+"=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	home := t.TempDir()
	cmd.Env = append(cmd.Env, "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, ".cache"))
	return cmd
}

// result is what a run of the host left.
type result struct {
	code           int
	stdout, stderr string
}

func runHost(t testing.TB, stdin string, args ...string) result {
	t.Helper()
	return finish(t, command(t, args...), stdin)
}

func finish(t testing.TB, cmd *exec.Cmd, stdin string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// fails checks for exit code 1, nothing on standard output, and an error that has all of wants.
func (r result) fails(t testing.TB, wants ...string) {
	t.Helper()
	if r.code != 1 || r.stdout != "" {
		t.Errorf("have code %d, output %q; want 1 and none", r.code, r.stdout)
	}
	for _, want := range wants {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("have no %q in the errors:\n%s", want, r.stderr)
		}
	}
}

// goldenCase is a case of the golden files.
type goldenCase struct {
	Name       string
	PromptText *string `json:"prompt_text"`
	Tokens     []int32
	Greedy     []int32
	GreedyText string `json:"greedy_text"`
	EOSAt      int    `json:"eos_at"`
	Positions  []goldenPosition
	Steps      []goldenPosition
}

type goldenPosition struct {
	Pos       int
	Top       [][2]float64
	LogSumExp float64
}

func goldenCases(t testing.TB) []goldenCase {
	t.Helper()
	data, err := os.ReadFile("../../testdata/models/golden/lfm2moe.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct{ Cases []goldenCase }
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g.Cases
}

// close compares logits with a golden position's.
func (want goldenPosition) close(t testing.TB, what string, got goldenPosition) {
	t.Helper()
	logits := map[float64]float64{}
	for _, e := range got.Top {
		logits[e[0]] = e[1]
	}
	if got.Pos != want.Pos || math.Abs(got.LogSumExp-want.LogSumExp) > 1e-3 {
		t.Errorf("%s: have pos %d, logsumexp %v, want %d, %v", what, got.Pos, got.LogSumExp, want.Pos, want.LogSumExp)
	}
	for _, e := range want.Top {
		if l, ok := logits[e[0]]; !ok || math.Abs(l-e[1]) > 1e-3 {
			t.Errorf("%s: token %v: have logit %v (%v), want %v", what, e[0], l, ok, e[1])
		}
	}
}

// TestEval compares with the golden logits: a prompt as ids, one as text, and bad lines between.
func TestEval(t *testing.T) {
	t.Parallel()
	needGPU(t)
	cases := goldenCases(t)
	i := slices.IndexFunc(cases, func(c goldenCase) bool { return c.PromptText != nil && c.Name != cases[0].Name })
	if i < 0 {
		t.Fatal("no case has a text")
	}
	ids, text := cases[0], cases[i]
	var in strings.Builder
	e := json.NewEncoder(&in)
	for _, q := range []any{
		map[string]any{"id": "ids", "tokens": ids.Tokens, "greedy": len(ids.Greedy)},
		map[string]any{"id": 7, "prompt": text.PromptText, "greedy": 3, "top": 12, "last": 2},
		map[string]any{"id": []int{1}, "tokens": []int{}},
		map[string]any{"tokens": []int{1, -1}},
		map[string]any{"id": "long", "tokens": []int{1, 2}, "greedy": 4095},
		map[string]any{"id": "few", "tokens": []int{1, 2}, "top": 0, "last": 9999},
		map[string]any{"id": "none", "tokens": []int{1, 2}, "last": 0},
	} {
		if err := e.Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	r := runHost(t, in.String()+"nonsense\n", "eval", "--model", tiny, "--kv", "f32")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != 1 || len(lines) != 8 || !strings.Contains(r.stderr, "4 of 8 lines failed") {
		t.Fatalf("have code %d, %d lines, errors %s; want 1, 8 lines, 4 of them failed", r.code, len(lines), r.stderr)
	}
	type answer struct {
		ID        json.RawMessage
		Error     string
		Tokens    []int32
		Positions []goldenPosition
		Greedy    []int32
		Steps     []goldenPosition
	}
	var a [8]answer
	for i, l := range lines {
		if err := json.Unmarshal([]byte(l), &a[i]); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
	}
	if string(a[0].ID) != `"ids"` || !slices.Equal(a[0].Tokens, ids.Tokens) || !slices.Equal(a[0].Greedy, ids.Greedy) || len(a[0].Steps) != len(ids.Steps) || len(a[0].Positions) != min(8, len(ids.Tokens)) {
		t.Fatalf("case %s: have id %s, tokens %v, greedy %v, want %v, %v", ids.Name, a[0].ID, a[0].Tokens, a[0].Greedy, ids.Tokens, ids.Greedy)
	}
	for i, want := range ids.Positions {
		want.close(t, "positions", a[0].Positions[i+len(a[0].Positions)-len(ids.Positions)])
	}
	for i, want := range ids.Steps {
		want.close(t, "steps", a[0].Steps[i])
	}
	if string(a[1].ID) != "7" || !slices.Equal(a[1].Tokens, text.Tokens) || !slices.Equal(a[1].Greedy, text.Greedy[:3]) || len(a[1].Positions) != 2 || len(a[1].Steps[0].Top) != 12 {
		t.Errorf("case %s: have %+v", text.Name, a[1])
	}
	for i, want := range map[int][2]string{
		2: {"[1]", "have no tokens, want at least one"}, 3: {"null", "token 1: have id -1, want 0 to 4095"},
		4: {`"long"`, "have 2 tokens of prompt and 4095 greedy ones, want at most the context's 4096: give fewer: more than the file's context_length it can't be"}, 7: {"null", "invalid character"},
	} {
		if string(a[i].ID) != want[0] || !strings.Contains(a[i].Error, want[1]) {
			t.Errorf("line %d: have %s, want id %s and %q", i, lines[i], want[0], want[1])
		}
	}
	if len(a[5].Positions) != 2 || len(a[5].Positions[0].Top) != 0 || len(a[6].Positions) != 0 || !strings.Contains(lines[6], `"positions":[],"greedy":[],"steps":[]`) {
		t.Errorf("have %s and %s", lines[5], lines[6])
	}
}

// TestRun compares the text with the golden one, from a flag and from standard input.
func TestRun(t *testing.T) {
	t.Parallel()
	needGPU(t)
	cases := goldenCases(t)
	i := slices.IndexFunc(cases, func(c goldenCase) bool { return c.PromptText != nil && c.EOSAt < 0 })
	if i < 0 {
		t.Fatal("no case has a text")
	}
	c := cases[i]
	args := []string{"run", "--model", tiny, "--raw", "--kv", "f32", "-n", fmt.Sprint(len(c.Greedy))}
	r := runHost(t, "", append(args, "--prompt", *c.PromptText)...)
	if r.code != 0 || r.stdout != c.GreedyText+"\n" {
		t.Errorf("have code %d, output %q, errors %s; want %q", r.code, r.stdout, r.stderr, c.GreedyText+"\n")
	}
	for _, want := range []string{
		fmt.Sprintf("prompt %d tokens, ", len(c.Tokens)), fmt.Sprintf("generated %d tokens, ", len(c.Greedy)), "tok/s; -n reached; ",
		"hit rate ", "read ", "GPU ", "pool ", "dense ", "kv ", "(budget auto: ",
	} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("have no %q in the statistics %q", want, r.stderr)
		}
	}
	if strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("have errors %q, want the statistics alone", r.stderr)
	}
	if r := runHost(t, *c.PromptText+"\n", args...); r.code != 0 || r.stdout != c.GreedyText+"\n" {
		t.Errorf("prompt from standard input: have code %d, output %q, errors %s", r.code, r.stdout, r.stderr)
	}
}

// TestRunEnds: at an end token, and at a full context.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	needGPU(t)
	for _, c := range goldenCases(t) {
		if c.EOSAt < 0 || c.PromptText == nil {
			continue
		}
		r := runHost(t, "", "run", "--model", tiny, "--raw", "--kv", "f32", "--prompt", *c.PromptText)
		if want := fmt.Sprintf("generated %d tokens", c.EOSAt); r.code != 0 || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, "end token <|im_end|>") {
			t.Errorf("%s: have code %d, errors %q, want %q at an end token", c.Name, r.code, r.stderr, want)
		}
		break
	}
	r := runHost(t, "", "run", "--model", tiny, "--raw", "--prompt", "In the beginning", "--ctx", "9")
	if r.code != 0 || !strings.Contains(r.stderr, "prompt 4 tokens") || !strings.Contains(r.stderr, "generated 6 tokens") || !strings.Contains(r.stderr, "the context of 9 tokens is full (--ctx)") {
		t.Errorf("full context: have code %d, errors %q", r.code, r.stderr)
	}
	runHost(t, "", "run", "--model", tiny, "--raw", "--prompt", "In the beginning", "--ctx", "3").
		fails(t, "the prompt has 4 tokens, the context holds 3")
	runHost(t, strings.Repeat("a", 1<<20), "run", "--model", tiny, "--raw").
		fails(t, "the prompt has 1048576 bytes, so at least ", " tokens, the context holds 4096: give a shorter prompt")
	runHost(t, "", "run", "--model", tiny, "--raw", "--prompt", "x", "--ctx", "4097").
		fails(t, "have 4097 tokens, want at most the file's context_length 4096")
}

// TestRunSampled: a seed fixes the text.
func TestRunSampled(t *testing.T) {
	t.Parallel()
	needGPU(t)
	sampled := func(seed string) result {
		return runHost(t, "", "run", "--model", tiny, "--raw", "--temp", "0.8", "--top-k", "40", "--seed", seed, "--prompt", "In the beginning", "-n", "24")
	}
	a, b, c := sampled("1"), sampled("1"), sampled("2")
	if a.code != 0 || a.stdout != b.stdout || a.stdout == c.stdout || !strings.Contains(a.stderr, "; seed 1\n") {
		t.Errorf("have %+v, %+v, %+v", a, b, c)
	}
}

// TestSmallBudget runs with the smallest budget that the refusal of a smaller one names.
func TestSmallBudget(t *testing.T) {
	t.Parallel()
	needGPU(t)
	r := runHost(t, "", "eval", "--model", tiny, "--gpu-budget", "100kB")
	r.fails(t, "GPU budget: have 100 kB, want at least ", " MB (", " bytes): ", "--ctx, --chunk or --kv fits: host plan --model "+tiny+" --gpu-budget 100000")
	least := r.leastBudget(t)
	c := goldenCases(t)[0]
	in := fmt.Sprintf(`{"tokens":%s,"greedy":8}`, strings.ReplaceAll(fmt.Sprint(c.Tokens), " ", ","))
	eval := func(budget string) result {
		return runHost(t, in, "eval", "--model", tiny, "--gpu-budget", budget)
	}
	small, all := eval(fmt.Sprint(least)), eval("max")
	if small.code != 0 || small.stdout != all.stdout {
		t.Errorf("budget %d: have code %d, errors %s\n%s\nwant as with max:\n%s", least, small.code, small.stderr, small.stdout, all.stdout)
	}
	eval(fmt.Sprint(least-1)).fails(t, "want at least")
}
