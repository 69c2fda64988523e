package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/routing"
	"github.com/sluicehost/sluice/core/simulate"
)

// recordTiny runs the tiny model with --trace.
func recordTiny(t *testing.T, args ...string) (string, *routing.Trace) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.trace")
	r := runHost(t, "", append([]string{"run", "--model", tiny, "--raw", "--prompt", "In the beginning", "--temp", "0.8", "--seed", "1", "--trace", path}, args...)...)
	if r.code != 0 {
		t.Fatalf("have code %d, errors %s", r.code, r.stderr)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trace, err := routing.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return path, trace
}

// TestRunTrace: a trace has every token of prompt and answer, and tells them apart.
func TestRunTrace(t *testing.T) {
	t.Parallel()
	needGPU(t)
	const made = 8
	_, trace := recordTiny(t, "-n", "8", "--gpu-budget", "max")
	h := trace.Header
	if h.Model != filepath.Base(tiny) || h.Architecture != "lfm2moe" || len(h.Sum) != 64 || h.Experts != 32 || h.TopK != 4 || len(h.Layers) != 6 || h.Layers[0].Layer != 2 || trace.Cut {
		t.Errorf("have %+v", h)
	}
	for i, l := range h.Layers {
		if l.Guesses != 5-i {
			t.Errorf("layer %d: have guesses at %d layers, want %d", l.Layer, l.Guesses, 5-i)
		}
	}
	if r := simulate.Recall(trace); len(r) != 5 || r[0] < 0.6 {
		t.Errorf("have recall %.2f, want 5 of them, and of a model that has learned its routing more than 0.6 a layer ahead", r)
	}
	pos, tokens := 0, map[bool]int{}
	for _, s := range trace.Steps {
		if guessed := len(s.Guesses) > 0; guessed != (s.Tokens == 1) {
			t.Errorf("have %d guesses in a step of %d tokens", len(s.Guesses), s.Tokens)
		}
		if s.Pos != pos {
			t.Errorf("have a step at %d, want %d", s.Pos, pos)
		}
		pos += s.Tokens
		tokens[s.Decode] += s.Tokens
	}
	if tokens[false] != 4 || tokens[true] != made {
		t.Errorf("have %v tokens, want 4 of the prompt and %d", tokens, made)
	}
	runHost(t, "", "run", "--model", tiny, "--raw", "--prompt", "x", "--trace", filepath.Join(t.TempDir(), "no", "folder")).fails(t, "--trace: ")
	runHost(t, "", "run", "--model", tiny, "--raw", "--prompt", "x", "--lookahead", "6").fails(t, "lookahead: have 6 layers, want at most 5")
	runHost(t, "", "run", "--model", tiny, "--raw", "--prompt", "x", "--lookahead", "-1").fails(t, "want auto or a number of layers")
}

// TestEvict: no policy changes a token.
func TestEvict(t *testing.T) {
	t.Parallel()
	needGPU(t)
	var want string
	for _, policy := range []string{"lru", "freq", "freq:2.5"} {
		r := runHost(t, "", "run", "--model", tiny, "--raw", "--prompt", "In the beginning", "-n", "12", "--gpu-budget", "18500000", "--evict", policy)
		if want == "" {
			want = r.stdout
		}
		if r.code != 0 || r.stdout != want || strings.Contains(r.stderr, "hit rate 100") {
			t.Errorf("%s: have code %d, %q, errors %s; want %q", policy, r.code, r.stdout, r.stderr, want)
		}
	}
}

func TestEvictionFlag(t *testing.T) {
	for text, want := range map[string]string{"lru": "lru", "freq": eviction{"freq", defaultHalf}.String(), "freq:2.5": "freq:2.5", "freq:": "", "freq:0": "", "freq:nan": "", "lru:3": "", "mru": ""} {
		var e eviction
		err := e.UnmarshalText([]byte(text))
		if want == "" && err == nil || want != "" && (err != nil || e.String() != want) {
			t.Errorf("%s: have %v, %v; want %q", text, e, err, want)
		}
	}
}

// TestTraceReplacesLate: an earlier trace and report stay where a run ends before its first step, and make room for those of one that does not.
func TestTraceReplacesLate(t *testing.T) {
	t.Parallel()
	needGPU(t)
	dir := t.TempDir()
	trace, stats := filepath.Join(dir, "trace"), filepath.Join(dir, "stats")
	was := strings.Repeat("an earlier one ", 10000) // longer than what comes
	for _, path := range []string{trace, stats} {
		if err := os.WriteFile(path, []byte(was), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(ctx string) result {
		return runHost(t, "", "run", "--model", tiny, "--raw", "--prompt", "In the beginning", "-n", "3", "--ctx", ctx, "--trace", trace, "--stats-json", stats)
	}
	run("1").fails(t, "the context holds 1")
	if string(readFile(t, trace)) != was || string(readFile(t, stats)) != was {
		t.Error("have the files changed by a run that made nothing")
	}
	run("64").ok(t)
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if x, err := routing.Read(f); err != nil || len(x.Steps) < 3 || x.Cut {
		t.Errorf("have %v, %+v, want a whole trace of three steps or more", err, x)
	}
	if data := readFile(t, stats); data[0] != '{' || !strings.HasSuffix(string(data), "}\n") {
		t.Errorf("have the report %.40q", data)
	}
}
