// Package scripts has the tests of the scripts beside it, and of the C program that scripts/peer builds.
package scripts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// ran runs a program and wants it to end with a code.
func ran(t *testing.T, code int, env []string, name string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if have := cmd.ProcessState.ExitCode(); have != code {
		t.Fatalf("%s %q: have exit code %d, want %d; stderr:\n%s", name, args, have, code, &errs)
	}
	return out.String(), errs.String()
}

// What makes no sense is refused before anything is fetched or made.
func TestPeerRefuses(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the libraries are for Linux on x86-64")
	}
	folder := filepath.Join(t.TempDir(), "new")
	file := filepath.Join(t.TempDir(), "file")
	other := t.TempDir()
	about := filepath.Join(other, "node-llama-cpp", "package.json")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(filepath.Dir(about), 0o700), os.WriteFile(about, []byte("{\n  \"version\": \"3.0.0\"\n}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args    []string
		modules string
		want    string
	}{
		{nil, "", "have no FOLDER; usage: peer FOLDER"},
		{[]string{folder, "cuda"}, "", `have "cuda", want cpu or vulkan`},
		{[]string{folder, "cpu", "more"}, "", `have "more", too; usage`},
		{[]string{folder, "--pack"}, "", "--pack: have no file; usage"},
		{[]string{folder, "--pack", "x.zip"}, "", `--pack: have "x.zip", want a name that ends in .tar.xz`},
		{[]string{folder, "--what"}, "", `have "--what"; usage`},
		{[]string{file}, "", file + " is no folder"},
		{[]string{folder}, t.TempDir(), "has no node-llama-cpp"},
		{[]string{folder}, other, `package.json: have  "version": "3.0.0", want 3.`},
	} {
		_, have := ran(t, 1, []string{"NODE_MODULES=" + test.modules}, "./peer", test.args...)
		if !strings.HasPrefix(have, "peer: ") || !strings.Contains(have, test.want) || strings.Count(have, "\n") != 1 {
			t.Errorf("peer %q: have %q, want a line with %q", test.args, have, test.want)
		}
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("have %s (%v), want none", folder, err)
	}
	if have, _ := ran(t, 0, nil, "./peer", "--help"); !strings.HasPrefix(have, "usage: peer") {
		t.Errorf("--help: have %q", have)
	}
}

// harness runs the parts of llamabench that need no llama.cpp: "prompt VOCAB N" prints the prompt's tokens; otherwise it reads
// the options, and prints a report of made-up runs.
const harness = `
#include <stdlib.h>
#include <string.h>
#include "options.h"
#include "prompt.h"
#include "report.h"

int main(int argc, char **argv) {
	if (argc == 4 && !strcmp(argv[1], "prompt")) {
		int n = atoi(argv[3]);
		int32_t *tokens = malloc((size_t)n * sizeof *tokens);
		random_tokens(tokens, n, (uint32_t)strtoul(argv[2], NULL, 10));
		for (int i = 0; i < n; i++)
			printf("%d ", tokens[i]);
		free(tokens);
		return 0;
	}
	struct options o = parse_options(argc, argv);
	struct run runs[] = {{9, 9}, {1, 4}, {3, 1}, {2, 2}, {4, 5}};
	int32_t tokens[] = {7, 8};
	if (o.runs > 4 || o.decode > 2)
		return 3;
	struct report r = {&o, "v\"1\"", "m", 5, "d\\", "b", "\n", "s", 0, 256, 32, 0.5, runs, tokens};
	(o.json ? print_json : print_table)(stdout, &r);
	return 0;
}
`

// built compiles the harness, with every warning an error.
func built(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("llamabench is for Linux")
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	folder := t.TempDir()
	source, program := filepath.Join(folder, "harness.c"), filepath.Join(folder, "harness")
	if err := os.WriteFile(source, []byte(harness), 0o600); err != nil {
		t.Fatal(err)
	}
	bench := filepath.Join("..", "tools", "llamabench")
	ran(t, 0, nil, cc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", bench, "-o", program, source,
		filepath.Join(bench, "options.c"), filepath.Join(bench, "prompt.c"), filepath.Join(bench, "report.c"))
	return program
}

// The prompt is that of host bench, so that both programs are asked for the same experts.
func TestLlamabenchPrompt(t *testing.T) {
	program := built(t)
	for _, vocab := range []int{1, 3, 4096, 65536, 157184, 248320, 262144, 1<<31 - 1} {
		random, want := rand.New(rand.NewPCG(1, 0)), ""
		for range 2000 {
			want += fmt.Sprint(random.IntN(vocab)) + " "
		}
		if have, _ := ran(t, 0, nil, program, "prompt", fmt.Sprint(vocab), "2000"); have != want {
			t.Errorf("vocabulary of %d: have %.60s…, want %.60s…", vocab, have, want)
		}
	}
}

func TestLlamabenchOptions(t *testing.T) {
	program := built(t)
	for args, want := range map[string]string{
		"":                                 "have no --model",
		"--model m --prompt 0":             `--prompt: have "0", want a number, 1 or more`,
		"--model m --prompt 1x":            `--prompt: have "1x"`,
		"--model m --decode -1":            `--decode: have "-1", want a number, 0 or more`,
		"--model m --runs 99999999999":     `--runs: have "99999999999"`,
		"--model m --ngl some":             `--ngl: have "some"`,
		"--model m --kv q8_0":              `--kv: have "q8_0", want f16 or f32`,
		"--model m --threads 0":            `--threads: have "0"`,
		"--model m --ctx 100 --prompt 101": "have 101 tokens of prompt and 64 to make, want at most the 100 of --ctx",
		"--model m --cpu-moe --ngl 0":      "--cpu-moe: have --ngl 0",
		"--model m more":                   `have "more", want flags only`,
		"--model m --what":                 "--what",
		"--model":                          "--model",
	} {
		_, have := ran(t, 2, nil, program, strings.Fields(args)...)
		if !strings.Contains(have, want) || strings.Count(have, "\n") != 1 {
			t.Errorf("llamabench %s: have %q, want a line with %q", args, have, want)
		}
	}
	if have, _ := ran(t, 0, nil, program, "--help"); !strings.HasPrefix(have, "usage: llamabench") {
		t.Errorf("--help: have %q", have)
	}
}

// llamabenchReport is what --json prints, as far as the tests look at it.
type llamabenchReport struct {
	Version string `json:"llama_version"`
	Device  string
	Backend string
	Details string `json:"device_details"`
	NGL     int
	CPUMoE  bool `json:"cpu_moe"`
	Chunk   int
	Cold    llamabenchRate
	Warm    *llamabenchRate
	Runs    []llamabenchRate
	Tokens  []int32
}

type llamabenchRate struct {
	Prefill float64 `json:"prefill_tokens_per_second"`
	Decode  float64 `json:"decode_tokens_per_second"`
}

func reported(t *testing.T, out string) (r llamabenchReport) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in:\n%s", err, out)
	}
	return r
}

// The median is of the runs after the first, and of an even number the run with the lesser time, as in host bench.
func TestLlamabenchReport(t *testing.T) {
	program := built(t)
	out, _ := ran(t, 0, nil, program, "--model", "m", "--prompt", "12", "--decode", "2", "--runs", "4", "--cpu-moe", "--json")
	r := reported(t, out)
	if r.Version != `v"1"` || r.Device != `d\` || r.Details != "\n" || r.NGL != -1 || !r.CPUMoE || r.Chunk != 32 || !slices.Equal(r.Tokens, []int32{7, 8}) || len(r.Runs) != 5 {
		t.Errorf("have %+v", r)
	}
	if (r.Cold != llamabenchRate{1.33333, 0.222222}) || r.Warm == nil || (*r.Warm != llamabenchRate{6, 1}) {
		t.Errorf("have %+v and %+v, want 12 tokens in 9 and 2 s, and 2 in 9 and 2 s", r.Cold, r.Warm)
	}
	out, _ = ran(t, 0, nil, program, "--model", "m", "--decode", "0", "--runs", "0", "--json")
	if r := reported(t, out); r.Warm != nil || len(r.Runs) != 1 || len(r.Tokens) != 0 {
		t.Errorf("one run: have %+v", r)
	}
	out, _ = ran(t, 0, nil, program, "--model", "m", "--prompt", "12", "--decode", "2", "--runs", "1")
	if have := strings.Fields(strings.Split(out, "\n")[3]); !slices.Equal(have, []string{"median", "12.0", "tok/s", "0.5", "tok/s"}) {
		t.Errorf("have %q as the last row", have)
	}
}

// With LLAMABENCH, a program that scripts/peer has made: it runs the shipped models, and says what is wrong with a file.
func TestLlamabenchRuns(t *testing.T) {
	program := os.Getenv("LLAMABENCH")
	if program == "" {
		t.Skip("LLAMABENCH names no program of scripts/peer")
	}
	models, err := filepath.Glob(filepath.Join("..", "testdata", "models", "*.gguf"))
	if err != nil || len(models) == 0 {
		t.Fatal(models, err)
	}
	for _, model := range models {
		// One thread: llama.cpp's spin. The file's own layout: see docs/benchmarks.md.
		out, _ := ran(t, 0, nil, program, "--model", model, "--ngl", "0", "--threads", "1", "--no-repack", "--prompt", "40", "--decode", "4", "--runs", "1", "--json")
		if r := reported(t, out); r.Backend != "CPU" || r.Version == "" || len(r.Tokens) != 4 || r.Warm == nil || r.Warm.Prefill <= 0 || r.Warm.Decode <= 0 {
			t.Errorf("%s: have %+v", model, r)
		}
	}
	folder := t.TempDir()
	none, cut := filepath.Join(folder, "none.gguf"), filepath.Join(folder, "cut.gguf")
	whole, err := os.ReadFile(models[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		none:           none + ": No such file",
		folder:         folder + ": Is a directory",
		"peer":         "this is no GGUF file",
		cut:            cut + ": llama.cpp doesn't load it",
		"/dev/null":    "this is no GGUF file",
		"peer_test.go": "this is no GGUF file",
	} {
		if _, have := ran(t, 1, nil, program, "--model", file, "--ngl", "0"); !strings.Contains(have, want) {
			t.Errorf("%s: have %q, want %q", file, have, want)
		}
	}
}
