package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/routing"
	"github.com/sluicehost/sluice/core/simulate"
)

// planTiny plans the tiny model.
func planTiny(t *testing.T, args ...string) (*planReport, result) {
	t.Helper()
	r := runHost(t, "", append([]string{"plan", "--model", tiny, "--json"}, args...)...)
	var x planReport
	if err := json.Unmarshal([]byte(r.stdout), &x); err != nil {
		t.Fatalf("%v: %s%s", err, r.stdout, r.stderr)
	}
	return &x, r
}

// TestPlanIsWhatRunTakes: the bytes of every kind are those that a run then has, and hit rates come from its trace.
func TestPlanIsWhatRunTakes(t *testing.T) {
	t.Parallel()
	needGPU(t)
	const budget = "20000000"
	stats := filepath.Join(t.TempDir(), "stats")
	trace, _ := recordTiny(t, "-n", "24", "--gpu-budget", budget, "--temp", "0", "--evict", "lru", "--stats-json", stats)
	data, err := os.ReadFile(stats)
	if err != nil {
		t.Fatal(err)
	}
	var s statsReport
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	svg := filepath.Join(t.TempDir(), "svg")
	x, r := planTiny(t, "--gpu-budget", budget, "--trace", trace, "--evict", "lru", "--disk-gbs", "1", "--token-ms", "10", "--svg", svg)
	if r.code != 0 || !x.Fits || x.Total > 20000000 || x.Smallest >= x.Total || x.Largest <= x.Total {
		t.Errorf("have code %d, %+v", r.code, x)
	}
	for kind, n := range x.Bytes {
		if have := s.GPU.Kinds[kind]; have.Actual != n {
			t.Errorf("%s: have %d bytes planned, %d when it ran", kind, n, have.Actual)
		}
	}
	if !x.Trace.Same || x.Trace.Counted != 21 || len(x.Curve) < 10 {
		t.Fatalf("have trace %+v, %d points", x.Trace, len(x.Curve))
	}
	chosen := 0
	for i, p := range x.Curve {
		if p.Best.Hits < p.LRU.Hits || p.Best.Hits < p.Freq.Hits || p.LRU.Asked != int64(21*6*4) || p.Bound < p.Serial || p.Bound > 100.001 || p.Read != p.LRU.BytesPerToken {
			t.Errorf("have %+v", p)
		}
		if i > 0 && (p.Budget <= x.Curve[i-1].Budget || p.Pool.Slots < x.Curve[i-1].Pool.Slots) {
			t.Errorf("budgets are not ascending: %+v after %+v", p, x.Curve[i-1])
		}
		if p.Chosen {
			chosen++
			if p.Pool != x.Pool {
				t.Errorf("the chosen point has %+v, want %+v", p.Pool, x.Pool)
			}
		}
	}
	if chosen != 1 {
		t.Errorf("have %d chosen points", chosen)
	}
	drawn, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, drawn, "Tokens per second")
}

// wellFormed checks for XML with a text.
func wellFormed(t *testing.T, data []byte, text string) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, data)
		}
	}
	if !bytes.Contains(data, []byte(text)) || bytes.Contains(data, []byte("NaN")) || bytes.Contains(data, []byte("Inf")) {
		t.Errorf("have no %q, or NaN, in %s", text, data)
	}
}

// TestPlanSampling: the smallest budget is that of a run that samples as --temp and --top-k say.
func TestPlanSampling(t *testing.T) {
	t.Parallel()
	needGPU(t)
	sampling := []string{"--temp", "0.8", "--top-k", "40"}
	greedy, _ := planTiny(t, "--gpu-budget", "max")
	x, _ := planTiny(t, append([]string{"--gpu-budget", "max"}, sampling...)...)
	if x.Smallest <= greedy.Smallest {
		t.Errorf("have %d bytes for sampling, %d without, want more", x.Smallest, greedy.Smallest)
	}
	run := func(budget uint64) result {
		return runHost(t, "", append([]string{"run", "--raw", "--no-warm", "--model", tiny, "--prompt", "x", "-n", "1", "--gpu-budget", fmt.Sprint(budget)}, sampling...)...)
	}
	run(x.Smallest).ok(t)
	run(x.Smallest-1).fails(t, "want at least")
	if r := runHost(t, "", "plan", "--model", tiny, "--snapshots", "-1"); r.code != 1 || !strings.Contains(r.stderr, "--snapshots: have -1, want 0 to 64") {
		t.Errorf("have code %d, %s", r.code, r.stderr)
	}
}

// TestPlanWithoutGPU: limits of a typical device, budgets that don't fit, and what would.
func TestPlanWithoutGPU(t *testing.T) {
	t.Parallel()
	plan := func(args ...string) result {
		cmd := command(t, append([]string{"plan", "--model", tiny}, args...)...)
		cmd.Env = append(cmd.Env, noDriver...)
		return finish(t, cmd, "")
	}
	r := plan()
	for _, want := range []string{"a typical GPU, as there is none here", "4.29 GB, the default without a GPU to ask", "192 slots for 192 experts (100.0%) in 1 bank", "smallest budget "} {
		if r.code != 0 || !strings.Contains(r.stdout, want) {
			t.Errorf("have code %d, errors %s, no %q in\n%s", r.code, r.stderr, want, r.stdout)
		}
	}
	if r := plan("--ram-cache", "2MB"); r.code != 0 || !strings.Contains(r.stdout, "and up to 2.00 MB of host memory for --ram-cache\n") {
		t.Errorf("have code %d, %s%s", r.code, r.stderr, r.stdout)
	}
	if r := plan("--device", "cpu", "--gpu-budget", "max"); r.code != 0 || !strings.Contains(r.stdout, "Mesa's CPU driver; budget max") {
		t.Errorf("have code %d, %s%s", r.code, r.stderr, r.stdout)
	}
	if r := plan("--device", "cpu", "--gpu-budget", "18MB", "--chunk", "16"); r.code != 0 || !strings.Contains(r.stdout, "chunk 16,") {
		t.Errorf("have code %d, %s%s, want the chunk that was asked for", r.code, r.stderr, r.stdout)
	}
	r = plan("--device", "gpu", "--gpu-budget", "15MB", "--kv", "f32")
	for _, want := range []string{"DOES NOT FIT in 15.0 MB", "no room", "--ctx 1024 --chunk 256 --kv f32 works from", "--ctx 2048 --chunk 256 --kv f16 works from"} {
		if r.code != 1 || !strings.Contains(r.stdout, want) {
			t.Errorf("have code %d, no %q in\n%s", r.code, want, r.stdout)
		}
	}
	const nothing = "nothing fits, with --ctx down to 256 and --chunk down to 32: with both and --kv f16 it takes "
	small := plan("--device", "gpu", "--gpu-budget", "1MB")
	_, rest, found := strings.Cut(small.stdout, nothing)
	_, rest, _ = strings.Cut(rest, "(--gpu-budget ")
	least, _, _ := strings.Cut(rest, ")")
	if !found || strings.Contains(r.stdout, nothing) {
		t.Errorf("have no %q in\n%s\nor have it in\n%s", nothing, small.stdout, r.stdout)
	}
	if r := plan("--device", "gpu", "--gpu-budget", least); r.code != 1 || !strings.Contains(r.stdout, "--ctx 256 --chunk 32 --kv f16 works from ") || strings.Contains(r.stdout, nothing) {
		t.Errorf("have code %d, %s, want what fits in %s", r.code, r.stdout, least)
	}
	if !strings.Contains(r.stderr, "the budget of 15.0 MB is too small: want at least ") {
		t.Errorf("have errors %s", r.stderr)
	}
}

// toyTrace writes a trace of a model that is nowhere.
func toyTrace(t *testing.T) string { return toyTraceOf(t, 1000) }

// toyTraceOf writes one with records of so many bytes.
func toyTraceOf(t *testing.T, record int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "toy.trace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := &routing.Header{Model: "<toy>", Architecture: "toy", Experts: 8, TopK: 2, Layers: []routing.Layer{{Layer: 1, RecordBytes: record}, {Layer: 2, RecordBytes: record}}}
	w, err := routing.NewWriter(f, h)
	if err != nil {
		t.Fatal(err)
	}
	w.Decoding(true)
	for pos := range 40 {
		w.Add(1, pos, []int{pos % 3, 7}, nil)
		w.Add(2, pos, []int{pos % 5, 6}, nil)
	}
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	return path
}

// TestPlanTraceAlone needs no model, plugin or registry.
func TestPlanTraceAlone(t *testing.T) {
	path, svg := toyTrace(t), filepath.Join(t.TempDir(), "svg")
	code, out, errs := hostIn(t.Context(), "", "plan", "--trace", path, "--svg", svg)
	for _, want := range []string{"toy, 8 experts in each of 2 layers, 2 of them used", "40 steps, 35 tokens counted", "16 100.0% 100.0%", "for tokens per second give"} {
		if code != 0 || !strings.Contains(oneSpace(out), want) {
			t.Errorf("have code %d, errors %s, no %q in\n%s", code, errs, want, out)
		}
	}
	data, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, data, "&lt;toy&gt;")
	code, out, errs = hostIn(t.Context(), "", "plan", "--trace", path, "--disk-gbs", "0.001", "--token-ms", "1", "--json")
	var x planReport
	if err := json.Unmarshal([]byte(out), &x); code != 0 || err != nil || len(x.Curve) == 0 {
		t.Fatalf("have code %d, %v, errors %s", code, err, errs)
	}
	for _, p := range x.Curve { // a wait for the GPU is in the simulation alone
		if p.Likely > p.Bound || p.Likely < p.Serial*0.85 {
			t.Errorf("%d slots: have %.1f tok/s simulated, want it between %.1f and %.1f or hardly less", p.Pool.Slots, p.Likely, p.Serial, p.Bound)
		}
	}
	for _, flag := range []string{"--svg", "--bench", "--disk-gbs", "--upload-gbs", "--token-ms"} {
		if code, _, errs := hostIn(t.Context(), "", "plan", "--model", tiny, "--device", "gpu", flag, "1"); code != 1 || !strings.Contains(errs, flag+": have no --trace") {
			t.Errorf("have code %d, %s", code, errs)
		}
	}
	if code, _, errs := hostIn(t.Context(), "", "plan"); code != 1 || !strings.Contains(errs, "missing flags: --model=FILE") {
		t.Errorf("have code %d, %s", code, errs)
	}
	if code, _, errs := hostIn(t.Context(), "", "plan", "--trace", path, "--lookahead", "9"); code != 1 || !strings.Contains(errs, "--lookahead: have 9, want at most") {
		t.Errorf("have code %d, %s", code, errs)
	}
	if code, _, errs := hostIn(t.Context(), "", "plan", "--trace", tiny); code != 1 || !strings.Contains(errs, "no routing trace") {
		t.Errorf("have code %d, %s", code, errs)
	}
}

// TestPlanCapped: where a layer's experts exceed a binding, the plan says why no budget holds all.
func TestPlanCapped(t *testing.T) {
	const want = "at most 6 of 16 experts (37.5%) can have a slot, whatever the budget: a layer's slots lie in one buffer, of which the GPU binds 2.15 GB at most"
	if code, out, errs := hostIn(t.Context(), "", "plan", "--trace", toyTraceOf(t, 700e6)); code != 0 || !strings.Contains(out, want) {
		t.Errorf("have code %d, %s\n%s\nwant %s", code, errs, out, want)
	}
	if code, out, _ := hostIn(t.Context(), "", "plan", "--trace", toyTraceOf(t, 200e6)); code != 0 || strings.Contains(out, "at most") {
		t.Errorf("have code %d, a cap in\n%s", code, out)
	}
}

// TestPlanOfAnotherModel: a trace must be of a model of this shape.
func TestPlanOfAnotherModel(t *testing.T) {
	t.Parallel()
	runHost(t, "", "plan", "--model", tiny, "--device", "gpu", "--trace", toyTrace(t)).fails(t, "the trace is of another model: have 8 experts")
}

func TestBenchLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench")
	data, err := json.Marshal(benchReport{Decode: 10, Runs: []benchRun{{Decode: 9}, {Decode: 3, DecodeWait: 1, DecodeRead: 4e9}, {Decode: 2, DecodeWait: 1, DecodeRead: 2e9}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	have, err := benchLimits(path)
	if want := (simulate.Limits{Disk: 3e9, Token: 100 * time.Millisecond}); err != nil || have != want {
		t.Errorf("have %+v, %v, want %+v", have, err, want)
	}
	for _, bad := range []string{"{}", "nonsense",
		// negative numbers that make up for each other, and what rounds to no limit
		`{"limits":{"token_seconds":1,"caches":[{"disk_bytes_per_second":-1e9,"packed_bytes_per_byte":-1}]}}`,
		`{"limits":{"token_seconds":1e-30,"upload_bytes_per_second":1e9}}`,
		`{"limits":{"token_seconds":1,"caches":[{"disk_bytes_per_second":1e-300,"packed_bytes_per_byte":1e-300}]}}`,
		`{"decode_tokens":1,"runs":[{"decode_seconds":2,"decode_disk_wait_seconds":1,"decode_bytes_read":9},{"decode_seconds":2,"decode_disk_wait_seconds":-0.5,"decode_bytes_read":9},{"decode_seconds":2,"decode_disk_wait_seconds":1,"decode_bytes_read":9}]}`,
		`{"decode_tokens":1,"runs":[{},{"decode_seconds":2,"decode_disk_wait_seconds":1,"decode_bytes_read":-9},{"decode_seconds":2,"decode_disk_wait_seconds":1,"decode_bytes_read":90}]}`,
		`{"decode_tokens":1,"runs":[{"decode_seconds":1e-30}]}`,
	} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := benchLimits(path); err == nil || !strings.Contains(err.Error(), "want what host bench --json prints") {
			t.Errorf("%s: have %v", bad, err)
		}
	}
}

// TestBenchLimitsOfOtherFiles: a file of something else is refused in JSON's terms, with what makes the right one.
func TestBenchLimitsOfOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench")
	for text, want := range map[string]string{
		"GGUF":                         "not JSON: invalid character 'G'",
		`{"runs":`:                     "not JSON: unexpected end",
		`[]`:                           "have a JSON array, want an object",
		`{"runs":3}`:                   `"runs": have a JSON number, want a list`,
		`{"runs":[{"hit_rate":[]}]}`:   `hit_rate": have a JSON array, want a number`,
		`{"decode_tokens":"x"}`:        `decode_tokens": have a JSON string, want a whole number`,
		`{"limits":[1]}`:               `"limits": have a JSON array, want an object`,
		`{"stats":{"bytes_read":1.5}}`: `bytes_read": have a JSON number 1.5, want a whole number`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := benchLimits(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--bench: "+path+": ") || !strings.HasSuffix(err.Error(), wantBench) || strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "benchReport") {
			t.Errorf("%s: have %v, want %s", text, err, want)
		}
	}
}

func TestRound(t *testing.T) {
	for x, want := range map[float64]float64{0: 1, 1: 1, 1.5: 2, 7: 10, 20: 20, 0.03: 0.05, 101: 200} {
		if have := round(x); have != want {
			t.Errorf("%v: have %v, want %v", x, have, want)
		}
	}
}

// TestPlanLimits: limits of which nothing finite follows are refused, wherever they come from.
func TestPlanLimits(t *testing.T) {
	t.Parallel()
	path, bench := toyTrace(t), filepath.Join(t.TempDir(), "bench")
	plan := func(args ...string) {
		t.Helper()
		code, _, errs := hostIn(t.Context(), "", append([]string{"plan", "--trace", path}, args...)...)
		if code != 1 || !strings.Contains(errs, "bytes per second, by the flag or --bench, want 1 to 1e+18") {
			t.Errorf("%v: have code %d, %s", args, code, errs)
		}
	}
	if code, _, errs := hostIn(t.Context(), "", "plan", "--trace", path, "--token-ms", "1e-30"); code != 1 || !strings.Contains(errs, "--token-ms: have 1e-30, want a nanosecond") {
		t.Errorf("have code %d, %s", code, errs)
	}
	plan("--disk-gbs", "5e-324")
	plan("--upload-gbs", "1e-10")
	for _, data := range []string{
		`{"limits":{"token_seconds":1,"caches":[{"disk_bytes_per_second":1e-300,"packed_bytes_per_byte":1e-10}]}}`,
		`{"decode_tokens":1,"runs":[{"decode_seconds":1,"decode_bytes_read":9223372036854775807,"decode_disk_wait_seconds":1e-320}]}`,
	} {
		if err := os.WriteFile(bench, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		plan("--bench", bench)
	}
}
