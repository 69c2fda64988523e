package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rows makes rows of one reader, two, four, …
func rows(source string, direct bool, rates ...float64) (out []diskRow) {
	for i, r := range rates {
		out = append(out, diskRow{Source: source, Direct: direct, Readers: 1 << i, Rate: r, Records: 1})
	}
	return out
}

// The advice is the simplest way that is fast enough.
func TestDiskAdvice(t *testing.T) {
	gguf, packed := modelFlags{Model: "m.gguf"}, modelFlags{Model: "m.gguf", Store: "s"}
	for name, x := range map[string]struct {
		flags modelFlags
		rows  [][]diskRow
		want  string // flags; empty is no advice
		why   string
	}{
		"nothing":          {gguf, nil, "", ""},
		"fewest readers":   {gguf, [][]diskRow{rows(fromGGUF, false, 50, 91, 100, 99), rows(likeStore, false, 90, 100)}, "--model m.gguf --readers 2", "more readers gain less than 11%; up to 8 were measured"},
		"direct is little": {gguf, [][]diskRow{rows(fromGGUF, false, 100), rows(fromGGUF, true, 100, 109)}, "--model m.gguf --readers 1", ""},
		"direct is much":   {gguf, [][]diskRow{rows(fromGGUF, false, 100), rows(fromGGUF, true, 100, 150)}, "--model m.gguf --readers 2 --direct on", ""},
		"a store pays":     {gguf, [][]diskRow{rows(fromGGUF, false, 100), rows(likeStore, false, 60, 120)}, "--store DIR --readers 2", ""},
		"the store pays":   {packed, [][]diskRow{rows(fromStore, true, 200), rows(fromGGUF, false, 100)}, "--store s --readers 1 --direct on", "fewer readers give less than 90% of it; more than 1 were not measured"},
		"it does not":      {packed, [][]diskRow{rows(fromStore, true, 105), rows(fromGGUF, false, 100)}, "--model m.gguf --readers 1", ""},
		"a store alone":    {modelFlags{Model: "dir"}, [][]diskRow{rows(fromStore, false, 5, 6, 7)}, "--store dir --readers 4", "more than 4 were not measured"},
	} {
		r := diskReport{Rows: slices.Concat(x.rows...)}
		r.advise(x.flags)
		have := ""
		if r.Advice != nil {
			have = r.Advice.Flags
		}
		if have != x.want {
			t.Errorf("%s: have %q, want %q", name, have, x.want)
		}
		if r.Advice != nil && !strings.Contains(strings.Join(r.Advice.Why, "\n"), x.why) {
			t.Errorf("%s: have %q, want %q", name, r.Advice.Why, x.why)
		}
	}
}

// A small model is read through once for each measurement, from all its sources.
func TestBenchDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	runHost(t, "", "ingest", "-m", tiny, "--store", dir).ok(t)
	for _, x := range []struct{ args, sources []string }{
		{[]string{"--model", tiny}, []string{fromGGUF, likeStore}},
		{[]string{"--model", dir}, []string{fromStore}},
		{[]string{"--store", dir, "--model", tiny}, []string{fromStore, fromGGUF}},
	} {
		var r diskReport
		out := runHost(t, "", append([]string{"bench", "disk", "--json", "--seconds", "60"}, x.args...)...).ok(t)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		var sources []string
		measured := map[string]int{}
		for _, row := range r.Rows {
			if !slices.Contains(sources, row.Source) {
				sources = append(sources, row.Source)
			}
			measured[fmt.Sprint(row.Source, row.Direct)]++
			if row.Records != r.Records || row.Rate <= 0 || row.Seconds <= 0 || row.Median <= 0 || row.P95 < row.Median {
				t.Errorf("have %+v of %d records", row, r.Records)
			}
		}
		if !slices.Equal(sources, x.sources) || r.Records == 0 || r.File == 0 || r.Largest == 0 || r.Advice == nil || len(r.Advice.Why) == 0 {
			t.Errorf("%v: have sources %v, %+v", x.args, sources, r)
		}
		for key, n := range measured {
			if n != len(depths) {
				t.Errorf("%v: %s: have %d rows, want %d", x.args, key, n, len(depths))
			}
		}
		for _, s := range sources {
			if measured[s+"true"] == 0 && len(r.Notes) == 0 {
				t.Errorf("%v: %s: have neither direct reads nor a note", x.args, s)
			}
		}
	}
	out := runHost(t, "", "bench", "disk", "--model", tiny, "--seconds", "0.1").ok(t)
	for _, want := range []string{"SOURCE", "buffered", "Use --", "/s.\n- "} {
		if !strings.Contains(out, want) {
			t.Errorf("have no %q in\n%s", want, out)
		}
	}
	for _, s := range []string{"0", "-1", "NaN", "1e9"} {
		runHost(t, "", "bench", "disk", "--model", tiny, "--seconds", s).fails(t, "--seconds: have ")
	}
	runHost(t, "", "bench", "disk", "--model", "/no/such").fails(t, "/no/such")
}

// Ctrl-C ends it at once, with nothing on standard output.
func TestBenchDiskInterrupted(t *testing.T) {
	t.Parallel()
	cmd := command(t, "bench", "disk", "--model", tiny, "--seconds", "3600")
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code says it
	if code := cmd.ProcessState.ExitCode(); code != 130 && code != 0 || code == 130 && out.Len() > 0 {
		t.Errorf("have code %d, output %q", code, out.String())
	}
}
