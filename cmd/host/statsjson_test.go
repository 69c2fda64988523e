package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gpu"
)

// smallestBudget is the least budget that a command can load its model with, as the refusal of a smaller one says.
func smallestBudget(t testing.TB, command string, args ...string) int {
	t.Helper()
	r := runHost(t, "", append([]string{command, "--gpu-budget", "1"}, args...)...)
	r.fails(t, "GPU budget: have 1 B, want at least ")
	return r.leastBudget(t)
}

// leastBudget is the least budget that a refusal names.
func (r result) leastBudget(t testing.TB) int {
	t.Helper()
	_, rest, _ := strings.Cut(r.stderr, "give --gpu-budget ")
	var least int
	if _, err := fmt.Sscan(rest, &least); err != nil {
		t.Fatalf("%q: %v", r.stderr, err)
	}
	return least
}

// checkMemory: what was predicted is what there is, in every kind.
func (r *statsReport) checkMemory(t *testing.T) {
	t.Helper()
	var sum uint64
	for kind, k := range r.GPU.Kinds {
		if sum += k.Actual; k.Predicted != k.Actual {
			t.Errorf("%s: predicted %d bytes, have %d", kind, k.Predicted, k.Actual)
		}
	}
	for _, kind := range []gpu.Kind{gpu.Dense, gpu.KV, gpu.Scratch, gpu.Staging, gpu.Pool, gpu.Table} { // not all have state
		if r.GPU.Kinds[kind].Actual == 0 {
			t.Errorf("have no %s", kind)
		}
	}
	asked := r.GPU.Requested
	if r.GPU.Total.Actual != sum || r.GPU.Total.Predicted != sum || r.GPU.Peak != sum || asked.Actual != asked.Predicted || asked.Actual > sum || asked.Actual < sum/2 {
		t.Errorf("have a sum of %d bytes, total %+v, peak %d, requested %+v", sum, r.GPU.Total, r.GPU.Peak, asked)
	}
}

// check: a token's time is the sum of its parts.
func (x *tokenReport) check(t *testing.T, tokens int) {
	t.Helper()
	if x == nil || x.Tokens != tokens {
		t.Fatalf("have %+v, want the mean of %d tokens", x, tokens)
	}
	if sum := x.GPUWait + x.DiskWait + x.Encode + x.Other; x.GPUWait <= 0 || x.Encode <= 0 || math.Abs(sum-x.Time) > 1e-3*x.Time || x.Readbacks < 1 || x.HitRate < 0 || x.HitRate > 1 || x.Recall < 0 || x.Recall > 1 {
		t.Errorf("have %+v", x)
	}
}

// TestRecall: guesses and misses are what would have been missing.
func TestRecall(t *testing.T) {
	if have := (countReport{Hits: 90, Late: 4, Misses: 2, Useful: 6, Wasted: 9}).recall(); have != 0.75 {
		t.Errorf("have %v, want 0.75", have)
	}
	if have := (countReport{Hits: 5}).recall(); have != 0 {
		t.Errorf("have %v where nothing was missing, want 0", have)
	}
}

// TestRunRecall: in a small pool, where some is guessed, the line of the tokens made tells their recall, as the table does that of all.
func TestRunRecall(t *testing.T) {
	t.Parallel()
	needGPU(t)
	args := []string{"--model", tiny, "--raw", "--prompt", "In the beginning", "-n", "12", "--no-warm", "--stats", "--stats-json", "-", "--lookahead", "2"}
	budget := smallestBudget(t, "run", args...)
	r := runHost(t, "", append([]string{"run", "--gpu-budget", fmt.Sprint(budget + 1<<19)}, args...)...)
	_, report, _ := strings.Cut(r.stdout, "\n{")
	var s statsReport
	if err := json.Unmarshal([]byte("{"+report), &s); err != nil || r.code != 0 {
		t.Fatalf("%v: have code %d, output %s, errors %s", err, r.code, r.stdout, r.stderr)
	}
	want := "guess recall " + percentText(s.PerToken.Recall) + "\n"
	if s.Experts.Guessed == 0 || s.PerToken.Recall <= 0 || !strings.Contains(r.stderr, want) {
		t.Errorf("have %d guesses and no %q in\n%s", s.Experts.Guessed, want, r.stderr)
	}
}

// TestStatsJSON: the report of an evaluation in the smallest pool, one token at a time.
func TestStatsJSON(t *testing.T) {
	t.Parallel()
	needGPU(t)
	budget := smallestBudget(t, "eval", "--model", tiny, "--chunk", "1")
	file := filepath.Join(t.TempDir(), "stats.json")
	const tokens, layers, topK = 12, 6, 4
	in := fmt.Sprintf(`{"tokens":%s,"last":1}`, strings.ReplaceAll(fmt.Sprint(goldenCases(t)[0].Tokens[:tokens]), " ", ","))
	r := runHost(t, in, "eval", "--model", tiny, "--chunk", "1", "--gpu-budget", fmt.Sprint(budget), "--stats-json", file)
	if r.code != 0 {
		t.Fatalf("have code %d, errors %s", r.code, r.stderr)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s statsReport
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatalf("%v:\n%s", err, data)
	}
	s.checkMemory(t)
	e := s.Experts
	if s.GPU.Total.Actual > uint64(budget) || e.Hits+e.Late+e.Misses != tokens*layers*topK || e.Evictions == 0 || len(e.Layers) != layers || e.Layers[0].Layer != 2 || e.Layers[0].Misses == 0 {
		t.Errorf("have %+v, want %d experts asked for and some evicted, within %d bytes", e, tokens*layers*topK, budget)
	}
	if s.Tokens != tokens || s.Steps != tokens || s.Back != tokens*layers+1 || s.PerTok != float64(s.Back)/tokens || s.Waves != 0 || s.Kernels < 10 || s.Read == 0 || s.Run != nil {
		t.Errorf("have %+v", s)
	}
	s.PerToken.check(t, tokens)
	if x := s.PerToken; x.DiskWait <= 0 || x.Rate <= 0 || e.Slots < topK || e.Resident < topK || e.Resident > e.Slots || e.All != 32*layers {
		t.Errorf("have %+v, %d of %d slots for %d experts", x, e.Resident, e.Slots, e.All)
	}
	if s.Load <= s.Compile || s.Compile <= 0 || s.Time.GPUWait <= 0 || s.Time.DiskWait <= 0 || s.Time.Upload <= 0 || s.Time.Encode <= 0 {
		t.Errorf("have times %+v, load %v, compile %v, want more than 0 of each", s.Time, s.Load, s.Compile)
	}
}

// TestRunStatsJSON: the report follows the text on standard output.
func TestRunStatsJSON(t *testing.T) {
	t.Parallel()
	needGPU(t)
	r := runHost(t, "", "run", "--model", tiny, "--raw", "--prompt", "In the beginning", "-n", "6", "--stats", "--stats-json", "-")
	text, report, found := strings.Cut(r.stdout, "\n{")
	var s statsReport
	if err := json.Unmarshal([]byte("{"+report), &s); err != nil || !found || text == "" || r.code != 0 {
		t.Fatalf("%v: have code %d, output %s, errors %s", err, r.code, r.stdout, r.stderr)
	}
	s.checkMemory(t)
	s.PerToken.check(t, 6)
	for _, want := range []string{"a token made takes ", "the mean of 6:", "192 slots, ", " of 192 experts resident", "LAYER HIT RATE HITS LATE MISSES EVICTED", " all "} {
		if !strings.Contains(oneSpace(r.stderr), want) {
			t.Errorf("have no %q in\n%s", want, r.stderr)
		}
	}
	if x := s.Run; x == nil || x.Prompt != 4 || x.Generated != 6 || x.Prefill <= 0 || x.Decode <= 0 || x.End != "-n reached" || s.Tokens < 9 {
		t.Errorf("have %+v, tokens %d", x, s.Tokens)
	}
}

// A file that can't be made is told before anything is loaded.
func TestStatsJSONNowhere(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "--raw", "--prompt", "x"}, {"eval"}} {
		code, out, errs := hostIn(t.Context(), "", append(args, "--model", "/no/such", "--stats-json", filepath.Join(t.TempDir(), "no", "file"))...)
		if code != 1 || out != "" || !strings.Contains(errs, "--stats-json: open ") {
			t.Errorf("%v: have code %d, output %q, errors %q", args, code, out, errs)
		}
	}
}
