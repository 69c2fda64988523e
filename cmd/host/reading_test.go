package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Past the page cache only where that is of little use.
func TestDirect(t *testing.T) {
	const gb = 1 << 30
	for _, x := range []struct {
		flag                 string
		file, available, ram uint64
		want                 bool
		why                  string
	}{
		{"on", 1, 64 * gb, 0, true, "--direct on"},
		{"off", 1000 * gb, 1 * gb, 0, false, "--direct off"},
		{"auto", 1000 * gb, 0, 0, false, "auto: nothing tells"},
		{"auto", 14 * gb, 16 * gb, 0, false, "auto: files of 15.0 GB, 17.2 GB of memory for the page cache"},
		{"auto", 32 * gb, 16 * gb, 0, false, "auto: "},
		{"auto", 33 * gb, 16 * gb, 0, true, "auto: "},
		{"auto", 14 * gb, 16 * gb, 12 * gb, true, "4.29 GB"},
		{"auto", 14 * gb, 16 * gb, 17 * gb, true, "0 B"},
		{"", 14 * gb, 1, 0, false, ""},
	} {
		have, why := readingFlags{Direct: x.flag, RAMCache: hostSize(x.ram)}.direct(x.file, x.available)
		if have != x.want || !strings.Contains(why, x.why) {
			t.Errorf("%+v: have %v, %q", x, have, why)
		}
	}
}

// Tokens are the same however experts are read, and what was read is told.
func TestReadingTokens(t *testing.T) {
	t.Parallel()
	needGPU(t)
	dir := filepath.Join(t.TempDir(), "s")
	runHost(t, "", "ingest", "-m", tiny, "--store", dir).ok(t)
	budget := fmt.Sprint(smallestBudget(t, "eval", "--model", tiny, "--chunk", "4", "--readers", "3", "--ram-cache", "1GB"))
	in := fmt.Sprintf(`{"tokens":%s,"last":8,"top":5,"greedy":12}`, strings.ReplaceAll(fmt.Sprint(goldenCases(t)[0].Tokens), " ", ","))
	want := ""
	caches := []string{"0", "1GB", "900kB"}
	for _, source := range []string{"--model=" + tiny, "--store=" + dir} {
		for _, direct := range []string{"off", "on"} {
			for _, cache := range caches {
				file := filepath.Join(t.TempDir(), "stats.json")
				r := runHost(t, in, "eval", source, "--chunk", "4", "--gpu-budget", budget, "--readers", "3", "--direct", direct, "--ram-cache", cache, "--stats-json", file)
				name := fmt.Sprintf("%s --direct %s --ram-cache %s", source, direct, cache)
				if want == "" {
					want = r.stdout
				}
				if r.code != 0 || r.stdout != want || want == "" {
					t.Fatalf("%s: have code %d, errors %s\n%s\nwant\n%s", name, r.code, r.stderr, r.stdout, want)
				}
				var s statsReport
				if err := json.Unmarshal(readFile(t, file), &s); err != nil {
					t.Fatal(err)
				}
				s.checkMemory(t)
				checkReading(t, name, r.stderr, direct, cache, &s)
			}
			caches = []string{"0", "900kB"}
		}
	}
}

// checkReading compares a report with the flags.
func checkReading(t *testing.T, name, stderr, direct, cache string, s *statsReport) {
	t.Helper()
	x := s.Reading
	if refused := strings.Contains(stderr, "no direct reads"); x.Readers != 3 || x.Direct != (direct == "on" && !refused) || x.Why == "" {
		t.Errorf("%s: have %+v, errors %s", name, x, stderr)
	}
	if cache == "0" {
		if x.RAM != nil || s.FromRAM != 0 {
			t.Errorf("%s: have %+v, %d bytes from it", name, x.RAM, s.FromRAM)
		}
		return
	}
	if x.RAM == nil || x.RAM.Hits == 0 || x.RAM.Kept == 0 || s.FromRAM == 0 || x.RAM.Hits+x.RAM.Misses < s.Experts.Misses {
		t.Fatalf("%s: have %+v, %d bytes from it", name, x.RAM, s.FromRAM)
	}
	if small := cache == "900kB"; small != (x.RAM.Evictions > 0) || small && x.RAM.Bytes > 900_000 {
		t.Errorf("%s: have %+v", name, x.RAM)
	}
}

// A run says what came from RAM; sizes that can't be are refused.
func TestRunRAMCache(t *testing.T) {
	t.Parallel()
	needGPU(t)
	budget := fmt.Sprint(smallestBudget(t, "eval", "--model", tiny, "--ram-cache", "1MB"))
	r := runHost(t, "", "run", "--model", tiny, "--raw", "--prompt", "In the beginning", "-n", "8", "--gpu-budget", budget, "--ram-cache", "1MB", "-v")
	for _, want := range []string{" from RAM (hit rate ", "reading experts: readers=4 direct=false why=\"auto: files of 8.27 MB"} {
		if !strings.Contains(r.stderr, want) || r.code != 0 {
			t.Errorf("have code %d, no %q in %s", r.code, want, r.stderr)
		}
	}
	for size, want := range map[string]string{"1kB": "--ram-cache: ram: have 1.00 kB, want at least ", "100TB": "--ram-cache: have 100 TB, want at most the "} {
		if size == "100TB" && availableMemory(os.DirFS("/proc")) == 0 {
			continue // nothing to compare with
		}
		runHost(t, "", "run", "--model", tiny, "--raw", "--prompt", "x", "--ram-cache", size).fails(t, want)
	}
}
