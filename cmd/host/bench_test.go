package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		all  []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{5, 1}, 1}, {[]float64{9, 1, 4}, 4}, {[]float64{4, 3, 2, 1}, 2}} {
		var runs []benchRun
		for _, x := range test.all {
			runs = append(runs, benchRun{Prefill: x})
		}
		if have := median(runs, func(x benchRun) float64 { return x.Prefill }); have != test.want {
			t.Errorf("%v: have %v, want %v", test.all, have, test.want)
		}
	}
}

// TestBench: rates follow from the times, the cold run reads the experts and the warm ones find them, and the profile
// covers the kernels of both forms.
func TestBench(t *testing.T) {
	t.Parallel()
	needGPU(t)
	r := runHost(t, "", "bench", "--model", tiny, "--prompt", "20", "--decode", "3", "--runs", "2", "--chunk", "10", "--profile", "--json")
	var b benchReport
	if err := json.Unmarshal([]byte(r.stdout), &b); err != nil || r.code != 0 {
		t.Fatalf("%v: have code %d, output %s, errors %s", err, r.code, r.stdout, r.stderr)
	}
	if b.Prompt != 20 || b.Decode != 3 || b.Chunk != 10 || len(b.Runs) != 3 || b.Warm == nil || b.Stats == nil || b.Stats.Tokens != 3*23 {
		t.Fatalf("have %+v", b)
	}
	cold, warm := b.Runs[0], b.Runs[1]
	if cold.Read <= warm.Read || cold.HitRate >= 1 || warm.HitRate != 1 {
		t.Errorf("have a cold run %+v and a warm one %+v, want experts read in the first only", cold, warm)
	}
	if b.Cold.Prefill != 20/cold.Prefill || b.Cold.Decode != 3/cold.Decode || b.Warm.Decode != 3/min(b.Runs[1].Decode, b.Runs[2].Decode) && b.Warm.Decode != 3/max(b.Runs[1].Decode, b.Runs[2].Decode) {
		t.Errorf("have rates %+v and %+v of runs %+v", b.Cold, b.Warm, b.Runs)
	}
	forms := map[string]bool{}
	for _, k := range b.Kernels {
		name, _, _ := strings.Cut(k.Kernel, ".")
		if forms[name] = true; k.Dispatches <= 0 || k.Seconds <= 0 {
			t.Errorf("have %+v", k)
		}
	}
	for _, want := range []string{"matvec", "matmul", "expert_pair", "expert_matmul"} {
		if !forms[want] {
			t.Errorf("have no %s among the kernels %v", want, forms)
		}
	}
}

// TestBenchTable: what people read.
func TestBenchTable(t *testing.T) {
	t.Parallel()
	needGPU(t)
	r := runHost(t, "", "bench", "--model", tiny, "--prompt", "6", "--decode", "2", "--runs", "0")
	for _, want := range []string{"RUN   PREFILL", "cold  ", " tok/s", "6 tokens of prompt in chunks of 256, 2 made after it; loaded in "} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("have no %q in\n%s", want, r.stdout)
		}
	}
	if r.code != 0 || strings.Contains(r.stdout, "median") || strings.Contains(r.stdout, "KERNEL") {
		t.Errorf("have code %d, output\n%s\nwant the cold run alone", r.code, r.stdout)
	}
	runHost(t, "", "bench", "--model", tiny, "--prompt", "10", "--decode", "3", "--ctx", "12").
		fails(t, "have 10 tokens of prompt and 3 to make, want at most the context's 12: give fewer, or a larger --ctx (at most 4096)")
}

func TestBenchUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"--prompt 0": "--prompt: have 0, want 1 or more", "--decode=-1": "--decode: have -1, want 0 or more", "--runs=-1": "--runs: have -1"} {
		code, _, errs := hostIn(t.Context(), "", append([]string{"bench", "--model", "/no/such"}, strings.Fields(args)...)...)
		if code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: have code %d, errors %q, want %q", args, code, errs, want)
		}
	}
}
