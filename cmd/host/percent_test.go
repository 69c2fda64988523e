package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestPercent: shares are rounded down, and 100 is all.
func TestPercent(t *testing.T) {
	for have, want := range map[string]string{
		percentText(0): "0.0%", percentText(1): "100.0%", percentText(0.9999): "99.9%", percentText(0.67567): "67.5%", percentText(0.29): "29.0%",
		shareText(2, 3): "66.6%", shareText(0, 0): "-", doneText(999, 1000): "99%", doneText(0, 0): "0%", doneText(5, 5): "100%",
	} {
		if have != want {
			t.Errorf("have %s, want %s", have, want)
		}
	}
}

// TestOnePercentForm: no other file makes a form of its own, which would round or space it otherwise.
func TestOnePercentForm(t *testing.T) {
	own := regexp.MustCompile(`[0-9dfgsv] %%|%\.[0-9]f *%%`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if regexp.MustCompile(`^percent|_test\.go$|^bench_budgets\.go$|^bench_disk_report\.go$`).MatchString(f) { // those of limits, not of shares
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if found := own.Find(data); found != nil {
			t.Errorf("%s: have %q, want percentText", f, found)
		}
	}
}
