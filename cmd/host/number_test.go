package main

import (
	"strings"
	"testing"
)

// oddNumbers are what strconv takes for numbers, and people do not mean, or what is none.
var oddNumbers = []string{"", " ", "NaN", "Inf", "-Inf", "+Inf", "infinity", "0x1p3", "0x10", "0b11", "0o17", "1_000", "+1", "1e999", "1e-999", "1e", "1,5", "٣", "1 ", "--1"}

// TestNumbers: numeric flags of every kind take decimal numbers only, and point to their command's help.
func TestNumbers(t *testing.T) {
	for flag, args := range map[string][]string{
		"--temp": {"run"}, "--ctx": {"run"}, "--tokens": {"run"}, "--seed": {"run"}, "--readers": {"eval"}, "--lookahead": {"eval"}, "--ram-cache": {"eval"}, "--gpu-budget": {"chat"},
		"--snapshots": {"chat"}, "--top-k": {"chat"}, "--tolerance": {"verify"}, "--seconds": {"bench", "disk"}, "--disk-gbs": {"plan"}, "--upload-gbs": {"plan"}, "--token-ms": {"plan"},
		"--runs": {"bench", "tokens"}, "--budgets": {"bench", "tokens"},
	} {
		for _, odd := range oddNumbers {
			if odd == "1e" && strings.Contains("--ram-cache --gpu-budget --budgets", flag) || (odd == "1,5" || odd == "1 ") && flag == "--budgets" {
				continue // an exabyte, two budgets, and one with room around it
			}
			code, out, errs := hostIn(t.Context(), "", append(args, flag+"="+odd)...)
			if code != 1 || out != "" || !strings.HasPrefix(errs, "host: "+flag+": have ") || !strings.HasSuffix(errs, ": see host "+strings.Join(args, " ")+" --help\n") {
				t.Errorf("%s=%s: have code %d, %q", flag, odd, code, errs)
			}
		}
	}
	for _, odd := range oddNumbers {
		for flag, value := range map[string]string{"--evict": "freq:" + odd, "--budgets": strings.ReplaceAll(odd, ",", ";") + "%"} {
			if strings.HasSuffix(odd, " ") && flag == "--budgets" {
				continue // around budgets there may be some
			}
			if code, _, errs := hostIn(t.Context(), "", "bench", "tokens", flag+"="+value); code != 1 || !strings.HasPrefix(errs, "host: "+flag+": have ") {
				t.Errorf("%s=%s: have code %d, %q", flag, value, code, errs)
			}
		}
	}
}

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "0.000": 0, "0e5": 0, "-0": 0, "2": 2, "007": 7, "-1.5": -1.5, ".5": 0.5, "1.": 1, "1e-3": 1e-3, "1E+3": 1e3} {
		if have, err := parseNumber(text); err != nil || have != want {
			t.Errorf("%s: have %v, %v, want %v", text, have, err, want)
		}
	}
	for text, want := range map[string]uint64{"0": 0, "0GB": 0, "12": 12, "1.5GiB": 3 << 29, "512 MB": 512e6, ".5kB": 500, "4gb": 4e9} {
		if have, err := parseSize(text); err != nil || have != want {
			t.Errorf("%s: have %v, %v, want %v", text, have, err, want)
		}
	}
	for _, text := range []string{"0.0001", "0.1B", "1,000", "1,5GB", "-1GB", "1e3MB", "1GB 2", "1XB", "99999999999999999999"} {
		if have, err := parseSize(text); err == nil {
			t.Errorf("%s: have %v, want an error", text, have)
		}
	}
}

// TestHelpOf: a wrong command line names the help of the command that it got to.
func TestHelpOf(t *testing.T) {
	for args, want := range map[string]string{
		"":                      "host",
		"walk":                  "host",
		"--walk":                "host",
		"run --evict foo":       "host run",
		"run --walk":            "host run",
		"run":                   "host run",
		"bench --budgets 0":     "host bench tokens",
		"bench disk --walk":     "host bench disk",
		"store walk":            "host store",
		"plugin plan":           "host plugin plan",
		"verify --cases=":       "host verify",
		"eval --model x --kv y": "host eval",
	} {
		if code, _, errs := hostIn(t.Context(), "", strings.Fields(args)...); code != 1 || !strings.HasSuffix(errs, ": see "+want+" --help\n") {
			t.Errorf("%s: have code %d, %q, want %s --help", args, code, errs, want)
		}
	}
}
