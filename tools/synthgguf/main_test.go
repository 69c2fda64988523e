package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		err  string // part of the error; empty for none
		out  string // part of standard output
	}{
		"help":           {[]string{"--help"}, "", "--locality"},
		"nothing to do":  {[]string{"--arch", "lfm2moe", "--shape", "tiny"}, "missing flags", ""},
		"two things":     {[]string{"--arch", "lfm2moe", "--shape", "tiny", "--out", "x", "--trace-check"}, "can't be used together", ""},
		"unknown shape":  {[]string{"--arch", "lfm2moe", "--shape", "huge", "--out", "x"}, "bailingmoe3 flash", ""},
		"layers":         {[]string{"--arch", "lfm2moe", "--shape", "tiny", "--layers", "9", "--out", "x"}, "have 9 layers", ""},
		"recall":         {[]string{"--arch", "lfm2moe", "--shape", "tiny", "--trace-out", "x", "--recall", "0.5,1.5"}, `--recall: have "1.5"`, ""},
		"trace check":    {[]string{"--arch", "lfm2moe", "--shape", "tiny", "--trace-check", "--trace-tokens", "200"}, "", "LRU 16"},
		"one layer":      {[]string{"--arch", "lfm2moe", "--shape", "tiny", "--layers", "2", "--trace-check", "--trace-tokens", "100"}, "", "LRU 16"},
		"too many":       {[]string{"--arch", "lfm2moe", "--shape", "tiny", "--trace-check", "--trace-layers", "4"}, "want 1 to 3", ""},
		"no such folder": {[]string{"--arch", "lfm2moe", "--shape", "tiny", "--out", filepath.Join("no", "such", "x")}, "no", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			err := run(t.Context(), test.args, &out, &errs)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("have error %v, want %q", err, test.err)
			}
			if !strings.Contains(out.String(), test.out) {
				t.Errorf("have output %q, want %q in it", out.String(), test.out)
			}
		})
	}
}
