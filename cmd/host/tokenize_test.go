package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestTokenize(t *testing.T) {
	for name, c := range map[string]struct {
		args, in, out string
		code          int
	}{
		"special by default":  {"", `{"text":"<|im_end|>a"}`, `{"ids":[7,111]}`, 0},
		"special off":         {"", `{"text":"a","parse_special":false}`, `{"ids":[111]}`, 0},
		"empty text":          {"", `{"text":""}`, `{"ids":[]}`, 0},
		"decode":              {"--decode", `{"ids":[7,111]}`, `{"text":"a"}`, 0},
		"decode special":      {"--decode --special", `{"ids":[7,111]}`, `{"text":"<|im_end|>a"}`, 0},
		"decode none":         {"--decode", `{"ids":[]}`, `{"text":""}`, 0},
		"no text":             {"", `{"ids":[1]}`, `{"error":"have no \"text\", want a string"}`, 1},
		"no ids":              {"--decode", `{"text":"a"}`, `{"error":"have no \"ids\", want a list of token ids"}`, 1},
		"negative id":         {"--decode", `{"ids":[1,-1]}`, `{"error":"token 1: have id -1, want 0 to 4095"}`, 1},
		"id past the end":     {"--decode", `{"ids":[4096]}`, `{"error":"token 0: have id 4096, want 0 to 4095"}`, 1},
		"goes on after a bad": {"", "{}\n{\"text\":\"a\"}", "{\"error\":\"have no \\\"text\\\", want a string\"}\n{\"ids\":[111]}", 1},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := hostIn(t.Context(), c.in, append([]string{"tokenize", "--model", tiny}, strings.Fields(c.args)...)...)
			if code != c.code || out != c.out+"\n" {
				t.Errorf("have code %d, output %s, errors %s; want %d, %s", code, out, errs, c.code, c.out)
			}
		})
	}
}

// TestTokenizeGolden pipes the golden file's own entries through.
func TestTokenizeGolden(t *testing.T) {
	data, err := os.ReadFile("../../testdata/models/golden/lfm2moe.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Tokenize []json.RawMessage }
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Tokenize) == 0 {
		t.Fatal("no entries")
	}
	var in strings.Builder
	for _, e := range golden.Tokenize {
		in.Write(e)
		in.WriteByte('\n')
	}
	code, out, errs := hostIn(t.Context(), in.String(), "tokenize", "--model", tiny)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != len(golden.Tokenize) {
		t.Fatalf("have code %d, %d lines, errors %q; want 0, %d lines", code, len(lines), errs, len(golden.Tokenize))
	}
	for i, e := range golden.Tokenize {
		var want, got struct{ IDs []int32 }
		if err := json.Unmarshal(e, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil || !slices.Equal(got.IDs, want.IDs) {
			t.Errorf("%s: have %s, %v", e, lines[i], err)
		}
	}
}
