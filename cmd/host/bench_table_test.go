package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
)

func TestBenchBudgetText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]benchBudget{
		"25%":      {text: "25%", share: 0.25},
		" 0.5 % ":  {text: "0.5 %", share: 0.005},
		"100%":     {text: "100%", share: 1},
		"max":      {text: "max", budget: budget{max: true}},
		"auto":     {text: "auto", budget: budget{auto: true}},
		"1.5GiB":   {text: "1.5GiB", budget: budget{bytes: 3 << 29}},
		"14523136": {text: "14523136", budget: budget{bytes: 14523136}},
	} {
		var b benchBudget
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q: have %+v, %v, want %+v", text, b, err, want)
		}
	}
	for _, bad := range []string{"", "%", "0%", "-1%", "101%", "100.0001%", "NaN%", "Inf%", "1e400%", "5%5", "ten%", "0", "-4GB", "99999999999EB", "least", "10 % %"} {
		var b benchBudget
		if err := b.UnmarshalText([]byte(bad)); err == nil || !strings.Contains(err.Error(), "want ") {
			t.Errorf("%q: have %+v, %v, want an error that says what is right", bad, b, err)
		}
	}
}

// TestBenchTableUsage: what contradicts itself is refused before anything is opened.
func TestBenchTableUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--budgets 10%,,20%":                      `--budgets: have ""`,
		"--budgets 0%":                            `have "0%", want more than 0%`,
		"--budgets 5% --gpu-budget 1GB":           "--gpu-budget: have --budgets, too",
		"--budgets 5% --profile":                  "--profile: have --budgets or --cache, too",
		"--cache cold --profile":                  "--profile: have --budgets or --cache, too",
		"--cache warm --direct on":                "--cache warm: have --direct on",
		"--cache hot":                             "--cache must be one of",
		"--budgets 5% --readers 65":               "--readers: have 65",
		"--budgets 5% --out /no/such/folder/file": "--out: ",
	} {
		code, out, errs := hostIn(t.Context(), "", append([]string{"bench", "--model", "/no/such"}, strings.Fields(args)...)...)
		if code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: have code %d, output %q, errors %q, want %q", args, code, out, errs, want)
		}
	}
}

// TestBenchSpeed: the formula, in the bytes of files, of the GPU and of --ram-cache.
func TestBenchSpeed(t *testing.T) {
	t.Parallel()
	machine := machineLimits{Upload: 1000, Token: 0.01}
	for name, x := range map[string]struct {
		limits    machineLimits
		disk      benchCache
		read, ram float64
		want      benchSpeed
	}{
		"disk":                 {machine, benchCache{Disk: 100, Grows: 1}, 50, 0, benchSpeed{2, 1 / (0.5 + 0.05 + 0.01), "disk"}},
		"records grow":         {machine, benchCache{Disk: 100, Grows: 2}, 50, 0, benchSpeed{2, 1 / (0.5 + 0.1 + 0.01), "disk"}},
		"upload":               {machine, benchCache{Disk: 1e6, Grows: 1}, 500, 0, benchSpeed{2, 1 / (500/1e6 + 0.5 + 0.01), "upload"}},
		"half from RAM":        {machine, benchCache{Disk: 100, Grows: 1}, 50, 50, benchSpeed{2, 1 / (0.5 + 0.1 + 0.01), "disk"}},
		"all from RAM":         {machine, benchCache{Disk: 100, Grows: 1}, 0, 500, benchSpeed{2, 1 / (0.5 + 0.01), "upload"}},
		"all resident":         {machine, benchCache{Disk: 100, Grows: 1}, 0, 0, benchSpeed{100, 100, "gpu"}},
		"disk unknown":         {machine, benchCache{}, 50, 0, benchSpeed{}},
		"upload unknown":       {machineLimits{Token: 0.01}, benchCache{Disk: 100, Grows: 1}, 50, 0, benchSpeed{}},
		"token unknown":        {machineLimits{Upload: 1000}, benchCache{Disk: 100, Grows: 1}, 50, 0, benchSpeed{}},
		"nothing known":        {machineLimits{}, benchCache{}, 50, 0, benchSpeed{}},
		"resident, no GPU yet": {machineLimits{Upload: 1}, benchCache{Disk: 1, Grows: 1}, 0, 0, benchSpeed{}},
	} {
		have := x.limits.speed(x.disk, x.read, x.ram)
		if math.Abs(have.Bound-x.want.Bound) > 1e-6 || math.Abs(have.Serial-x.want.Serial) > 1e-6 || have.By != x.want.By {
			t.Errorf("%s: have %+v, want %+v", name, have, x.want)
		}
	}
}

// TestBenchFinish: rows come by budget, the best resident row is the token's limit, and speeds stand beside what they can be.
func TestBenchFinish(t *testing.T) {
	t.Parallel()
	cold := benchRow{Budget: "50%", Cache: cacheCold, Slots: 5, order: 1, Runs: []benchRun{{Prefill: 9, Decode: 99}, // the first does not count
		{Prefill: 4, Decode: 10, DecodeRead: 400, DecodeWanted: 0.5, DecodeWait: 1, DecodeHitRate: 0.75, Allocs: 30, Bytes: 300}, {Prefill: 5, Decode: 20}}}
	whole := benchRow{Budget: "max", Cache: cacheCold, Slots: 10, order: 2, Runs: []benchRun{{Prefill: 4, Decode: 5, DecodeWait: 1}}}
	warm := whole
	warm.Cache, warm.Runs = cacheWarm, []benchRun{{Prefill: 4, Decode: 2}}
	r := &benchTable{Experts: 10, Decode: 10, Limits: machineLimits{Upload: 1e12, Caches: []benchCache{{Cache: cacheCold, Disk: 10, Grows: 1}}},
		Rows: []benchRow{{Budget: "1%", Error: "too small"}, cold, whole, warm}}
	slices.Reverse(r.Rows)
	for i := range r.Rows {
		if r.Rows[i].measured() {
			r.Rows[i].fill(8, 10)
		}
	}
	r.finish()
	if r.Rows[0].Budget != "1%" || r.Rows[1].Budget != "50%" || r.Limits.Token != 0.2 {
		t.Errorf("have rows %+v, token %v", r.Rows, r.Limits.Token)
	}
	have := r.Rows[1]
	if have.Prefill != 2 || have.Decode != 1 || have.HitRate != 0.75 || have.Read != 40 || have.Rate != 40 || have.Waited != 0.1 || have.Allocs != 3 || have.Bytes != 30 {
		t.Errorf("have %+v", have)
	}
	if want := (benchSpeed{0.5, 1 / 2.2, "disk"}); math.Abs(have.Limit.Bound-want.Bound) > 1e-9 || math.Abs(have.Limit.Serial-want.Serial) > 1e-9 || have.Limit.By != want.By || math.Abs(have.Efficient-2) > 1e-9 {
		t.Errorf("have limit %+v, efficiency %v, want %+v and 2", have.Limit, have.Efficient, want)
	}
	if x := r.Rows[3]; x.Cache == cacheWarm && x.Efficient != 1 {
		t.Errorf("have efficiency %v of the best resident row, want 1", x.Efficient)
	}
}

// TestBenchUnknownLimits: without a resident row there is no limit to show, and a note that says why; without decoded tokens, nothing of them.
func TestBenchUnknownLimits(t *testing.T) {
	t.Parallel()
	part := benchRow{Budget: "50%", Cache: cacheWarm, Slots: 5, Share: 0.5, Runs: []benchRun{{Prefill: 4, Decode: 10, DecodeRead: 400, DecodeWanted: 1, DecodeHitRate: 0.67567}}}
	whole := part
	whole.Budget, whole.Slots = "max", 10
	limits := machineLimits{Upload: 1000, Caches: []benchCache{{Cache: cacheWarm, Disk: 100, Grows: 1}}}
	const resident = "without a row that has every expert resident"
	for name, x := range map[string]struct {
		table *benchTable
		want  string // of the note; empty for none
		row   string // of the table of speeds
	}{
		"no resident row": {&benchTable{Decode: 10, Rows: []benchRow{part}}, "; --budgets with max has one", " 67.5% 40.0 B 40.0 B - - -"},
		"none can be had": {&benchTable{Decode: 10, Rows: []benchRow{part}, capped: true}, resident + ":\nonly that tells what a token takes on the GPU, and no budget gives it here", " 67.5% 40.0 B 40.0 B - - -"},
		"known":           {&benchTable{Decode: 10, Rows: []benchRow{part, whole}}, "", " 67.5% 40.0 B 40.0 B 1.0 0.7 1.00"},
		"nothing decoded": {&benchTable{Rows: []benchRow{part}}, "", " - - - - - - -"},
	} {
		r := x.table
		r.Experts, r.Limits = 10, limits
		for i := range r.Rows {
			r.Rows[i].fill(8, r.Decode)
		}
		r.finish()
		var out bytes.Buffer
		if err := r.print(&out); err != nil || !strings.Contains(oneSpace(out.String()), x.row) {
			t.Errorf("%s: have %v, no %q in\n%s", name, err, x.row, oneSpace(out.String()))
		}
		if notes := strings.Join(r.Notes, "\n"); (notes != "") != (x.want != "") || !strings.Contains(notes, x.want) {
			t.Errorf("%s: have notes %q, want %q", name, notes, x.want)
		}
		want := "50%, warm: prompt 2.0 tok/s, decode 1.0 tok/s, hit rate 67.5%, read 40.0 B/s"
		if r.Decode == 0 {
			want = "50%, warm: prompt 2.0 tok/s, decode -, hit rate -, read -"
		}
		if have := r.Rows[0].line(); have != want {
			t.Errorf("%s: have %q, want %q", name, have, want)
		}
	}
}

// TestBenchTableWidth: a table of large numbers has lines of at most 100 columns.
func TestBenchTableWidth(t *testing.T) {
	t.Parallel()
	row := benchRow{Budget: "123456789012", Cache: cacheAsIs, GPU: 123456789012, Slots: 123456, Share: 1, Prefill: 73031.4, Decode: 2332.3, HitRate: 1, Read: 823.4e6, Rate: 15.34e9,
		Wanted: 1, Limit: benchSpeed{12345.6, 12345.6, "upload"}, Efficient: 1.25, Waited: 0.1234, Allocs: 12345, Bytes: 123.4e3}
	before := int64(12 << 30)
	r := &benchTable{Model: "m.gguf", Device: "NVIDIA H200 (discrete, vulkan, NVIDIA)", File: 14 << 30, Experts: 123456, ExpertBytes: 12345678901, Largest: 13345678, Fixed: 1234567890, Prompt: 512, Decode: 64, Runs: 3, Readers: 64,
		Rows: []benchRow{row, {Budget: "1%", Error: benchPlan{tooSmall: &engine.BudgetError{Fixed: 1 << 30, Pool: 1 << 30}}.why(&benchSurvey{whole: 100 << 30})}},
		Limits: machineLimits{Upload: 51.2e9, Token: 0.00749, Caches: []benchCache{
			{Cache: cacheCold, Disk: 1.53e9, Size: 14 << 30, Before: &before, drop: true}, {Cache: cacheWarm, Disk: 8.2e9, Size: 14 << 30, Before: &before, After: &before}, {Cache: cacheAsIs}}}}
	for _, x := range r.Limits.Caches {
		if r.Notes = append(r.Notes, x.note()); (x.note() == "") != (x.Cache == cacheAsIs) {
			t.Errorf("%s: have note %q", x.Cache, x.note())
		}
	}
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if len(strings.TrimSuffix(line, "\n")) > 100 {
			t.Errorf("have %d columns: %s", len(line)-1, line)
		}
	}
	for _, want := range []string{"disk, cold 1.53 GB/s", "85.7% of the file could not be dropped", "a token 7.49 ms", "1% - too small: want at least 1.0%, in all 2.15 GB (--gpu-budget 2147483648)", " 1.25\n"} {
		if !strings.Contains(oneSpace(out.String()), oneSpace(want)) && !strings.Contains(out.String(), want) {
			t.Errorf("have no %q in\n%s", want, &out)
		}
	}
}

func TestBenchStates(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		cache  string
		direct bool
		want   []string
	}{
		{cacheAsIs, false, []string{cacheAsIs}}, {cacheCold, false, []string{cacheCold}}, {cacheWarm, false, []string{cacheWarm}}, {cacheBoth, false, []string{cacheCold, cacheWarm}},
		{cacheAsIs, true, []string{cacheCold}}, {cacheCold, true, []string{cacheCold}}, {cacheWarm, true, nil}, {cacheBoth, true, []string{cacheCold}},
	} {
		have, err := (&benchCmd{Cache: x.cache}).states(&reading{direct: x.direct, why: "auto"})
		if !slices.Equal(have, x.want) || (err == nil) != (x.want != nil) {
			t.Errorf("%+v: have %v, %v", x, have, err)
		}
	}
}

// noPageCache is a system that tells nothing of its page cache.
type noPageCache struct{}

var errNoPageCache = errors.New("can't drop files")

func (noPageCache) Size() int64                                          { return 1000 }
func (noPageCache) Drop() error                                          { return errNoPageCache }
func (noPageCache) Uncache() (int64, error)                              { return 0, errNoPageCache }
func (noPageCache) Cached() (int64, error)                               { return 0, errNoPageCache }
func (noPageCache) Fill(context.Context, func(done, total uint64)) error { return nil }

// TestBenchNoPageCache: where the page cache can't be dropped, cold is an error, or with both a row that says so; the other states are had.
func TestBenchNoPageCache(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	a := &app{ctx: t.Context(), err: &errs, out: io.Discard}
	s, r := &benchSurvey{reading: &reading{}}, &benchTable{}
	if err := (&benchCmd{Cache: cacheBoth}).fillState(a, r, s, noPageCache{}, cacheCold, nil); err != nil || len(r.Rows) != 1 || r.Rows[0].Error != "can't drop files" || r.Rows[0].Cache != cacheCold || r.measured() {
		t.Errorf("have %v, rows %+v", err, r.Rows)
	}
	if !strings.Contains(errs.String(), "all, cold: can't drop files") {
		t.Errorf("have errors %s", &errs)
	}
	if err := (&benchCmd{Cache: cacheCold}).fillState(a, r, s, noPageCache{}, cacheCold, nil); !errors.Is(err, errNoPageCache) || !strings.Contains(err.Error(), "--cache cold") {
		t.Errorf("have %v", err)
	}
	for _, cache := range []string{cacheAsIs, cacheWarm} {
		x := benchCache{Cache: cache}
		if err := x.begin(t.Context(), noPageCache{}, false, a.progress("filling")); err != nil || x.Before != nil || x.drop || x.note() != "" {
			t.Errorf("%s: have %v, %+v", cache, err, x)
		}
	}
}

// TestBenchBudgets: a row for each budget and state, with those that don't work said so.
func TestBenchBudgets(t *testing.T) {
	t.Parallel()
	needGPU(t)
	dir := t.TempDir()
	out, trace := filepath.Join(dir, "out"), filepath.Join(dir, "trace")
	cmd := runHost(t, "", "bench", "--model", tiny, "--budgets", "1%,25%", "--cache", "both", "--prompt", "12", "--chunk", "8", "--decode", "3", "--runs", "1", "--lookahead", "0", "--json",
		"--out", out, "--trace", trace, "--cpuprofile", filepath.Join(dir, "cpu.pprof"))
	var b benchTable
	if err := json.Unmarshal([]byte(cmd.ok(t)), &b); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(out); err != nil || string(data) != cmd.stdout {
		t.Errorf("have --out %q, %v, want what is on standard output", data, err)
	}
	var have []string
	for _, r := range b.Rows {
		have = append(have, strings.TrimSuffix(r.Budget+" "+r.Cache, " "))
		if !r.measured() {
			if r.Budget != "1%" || !strings.Contains(r.Error, "too small: want at least ") {
				t.Errorf("have %+v", r)
			}
			continue
		}
		if len(r.Runs) != 2 || r.Prefill <= 0 || r.Decode <= 0 || r.Read <= 0 || r.Rate <= 0 || r.GPU == 0 || r.Chunk != 8 || r.Stats == nil || r.Stats.Tokens != 2*15 {
			t.Errorf("have %+v", r)
		}
		if r.Share < 0.25 || r.Share > 0.5 || r.Slots != int(math.Round(r.Share*float64(b.Experts))) || r.HitRate <= 0 || r.HitRate >= 1 { // a small bank takes a power of two, and fills it
			t.Errorf("have %+v, want a quarter of the experts or more to have a slot", r)
		}
		if r.Limit != (benchSpeed{}) || r.Efficient != 0 || (r.Cache == cacheCold) != (r.Runs[1].Dropping > 0) {
			t.Errorf("have limit %+v, efficiency %v of %+v, want them unknown, as nothing tells what a token takes", r.Limit, r.Efficient, r)
		}
		if why := r.Stats.Reading.Why; why != b.Why || !strings.HasPrefix(why, "auto: ") {
			t.Errorf("have read as %q, want the reason of the table, %q", why, b.Why)
		}
		if info, err := os.Stat(filepath.Join(dir, "cpu-"+r.Budget+"-"+r.Cache+".pprof")); err != nil || info.Size() == 0 {
			t.Errorf("have profile %v, %v", info, err)
		}
	}
	if want := []string{"1%", "25% cold", "25% warm"}; !slices.Equal(have, want) {
		t.Errorf("have rows %q, want %q; errors:\n%s", have, want, cmd.stderr)
	}
	if b.Limits.Upload <= 0 || b.Limits.Token != 0 || len(b.Limits.Caches) != 2 || b.Interrupted || b.Experts == 0 {
		t.Errorf("have %+v", b.Limits)
	}
	for _, x := range b.Limits.Caches {
		if x.Disk <= 0 || x.Size != b.File || x.Records != b.Experts || x.Grows < 1 {
			t.Errorf("have %+v", x)
		}
	}
	for _, want := range []string{"host: 1%: too small", "host: 25%, cold: prompt ", "host: 25%, warm: prompt "} {
		if !strings.Contains(cmd.stderr, want) {
			t.Errorf("have no %q in the errors:\n%s", want, cmd.stderr)
		}
	}
	plan := runHost(t, "", "plan", "--model", tiny, "--device", "gpu", "--bench", out, "--trace", trace).ok(t)
	if !strings.Contains(plan, "LIMITED BY") || !strings.Contains(plan, "upload ") {
		t.Errorf("have no limits in the plan\n%s", plan)
	}
}

// TestBenchNoBudget: where nothing can be measured the table says why, and the exit code too.
func TestBenchNoBudget(t *testing.T) {
	t.Parallel()
	needGPU(t)
	r := runHost(t, "", "bench", "--model", tiny, "--budgets", "1%,10000", "--decode", "3")
	if r.code != 1 || strings.Count(r.stdout, "too small: want at least ") != 1 || strings.Count(r.stdout, "too small: have 10.0 kB, want at least ") != 1 || !strings.Contains(r.stderr, "host: no budget could be measured") {
		t.Errorf("have code %d, output\n%s\nerrors\n%s", r.code, r.stdout, r.stderr)
	}
	runHost(t, "", "bench", "--model", tiny, "--budgets", "50%", "--prompt", "10", "--decode", "3", "--ctx", "12").fails(t, "want at most the context's 12: give fewer")
}

// TestBenchBudgetsUsage: lists that no one means.
func TestBenchBudgetsUsage(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"10%,max, 10%": "--budgets: have 10% twice",
		strings.Repeat("1%,", maxBudgets) + "max": "--budgets: have 101, want at most 100",
		"1e309%":   "more than 0% and at most 100%",
		"NaN%":     "more than 0% and at most 100%",
		"10%%":     "more than 0% and at most 100%",
		"10%,,20%": "want a percentage",
	} {
		code, _, errs := hostIn(t.Context(), "", "bench", "--model", "/no/such", "--budgets", list)
		if code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%.20s: have code %d, errors %q, want %q", list, code, errs, want)
		}
	}
}

// TestCPUProfileFull: a profile that could not be written is an error, though the profiler knows of none.
func TestCPUProfileFull(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("this system has no " + full)
	}
	p, err := (&benchCmd{CPUProfile: full}).cpuProfile("")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = p.Write([]byte("x"))
	if err := p.close(); err == nil || !strings.Contains(err.Error(), "--cpuprofile: write /dev/full") {
		t.Errorf("have %v", err)
	}
}
