package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutputSparesModels: no flag that names an output destroys a model, nor --svg its trace.
func TestOutputSparesModels(t *testing.T) {
	dir := t.TempDir()
	model, old := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "old")
	data := readFile(t, tiny)
	for path, content := range map[string][]byte{model: data, old: []byte("something old")} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, flag := range []string{"--trace", "--stats-json"} {
		r := inProcess(t, "", "run", "--raw", "--model", model, "--prompt", "x", flag, model)
		if r.code != 1 || !strings.Contains(r.stderr, flag+": "+model+": have a GGUF file there") {
			t.Errorf("%s: have code %d, %s", flag, r.code, r.stderr)
		}
	}
	packed := filepath.Join(dir, "packed")
	runHost(t, "", "ingest", "--model", tiny, "--store", packed).ok(t)
	experts := filepath.Join(packed, "experts.bin")
	was := readFile(t, experts)
	if err := writeOutput("--svg", experts, nil); err == nil || !strings.Contains(err.Error(), "have a file of the store "+packed) || !bytes.Equal(readFile(t, experts), was) {
		t.Errorf("have %v, want the store's file left alone", err)
	}
	if err := writeOutput("--svg", model, nil); err == nil {
		t.Error("--svg: have no error")
	}
	if !bytes.Equal(readFile(t, model), data) {
		t.Error("the model has changed")
	}
	r := inProcess(t, "", "plan", "--trace", old, "--svg", filepath.Join(dir, ".", "old"))
	if r.code != 1 || !strings.Contains(r.stderr, "which is the trace") || string(readFile(t, old)) != "something old" {
		t.Errorf("have code %d, %s", r.code, r.stderr)
	}
	if err := writeOutput("--svg", old, []byte("new")); err != nil || string(readFile(t, old)) != "new" {
		t.Errorf("have %v and %q, want the file replaced", err, readFile(t, old))
	}
	if err := writeOutput("--svg", os.DevNull, []byte("new")); err != nil {
		t.Errorf("have %v, want any other file taken", err)
	}
}

// TestOutputKeptUntilWritten: a command that fails to start leaves earlier outputs as they were.
func TestOutputKeptUntilWritten(t *testing.T) {
	old := filepath.Join(t.TempDir(), "old")
	const was = "an earlier one"
	for _, args := range [][]string{{"run", "--prompt", "x", "--trace"}, {"run", "--prompt", "x", "--stats-json"}, {"eval", "--trace"}, {"eval", "--stats-json"},
		{"bench", "--trace"}, {"bench", "--out"}, {"bench", "--cpuprofile"}, {"bench", "--budgets", "max", "--out"}} {
		if err := os.WriteFile(old, []byte(was), 0o600); err != nil {
			t.Fatal(err)
		}
		r := inProcess(t, "", append(args, old, "--model", "/no/such")...)
		if have := string(readFile(t, old)); r.code != 1 || have != was {
			t.Errorf("%v: have code %d and %q there, want 1 and %q", args, r.code, have, was)
		}
		inProcess(t, "", append(args, old+".new", "--model", "/no/such")...)
		if _, err := os.Lstat(old + ".new"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v: have %v, want no file where there was none", args, err)
		}
	}
	f, err := createOutput("--out", old)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"a", "b"} {
		if _, err := f.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil || string(readFile(t, old)) != "ab" {
		t.Errorf("have %v and %q, want ab alone", err, readFile(t, old))
	}
}

// TestOutputsApart: two outputs have no file in common, but a device takes both.
func TestOutputsApart(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		a, b string
		want bool
	}{{file, dir + "/./file", false}, {file, link, false}, {dir + "/new", dir + "/new", false}, {file, dir + "/new", true}, {"", "", true}, {"", file, true}, {os.DevNull, os.DevNull, true}} {
		err := apart(output{"--a", x.a}, output{"--b", x.b}, output{"--c", ""})
		if (err == nil) != x.want || err != nil && !strings.Contains(err.Error(), "--b: have "+x.b+", which is that of --a") {
			t.Errorf("%s and %s: have %v, want %v", x.a, x.b, err, x.want)
		}
	}
	for _, args := range [][]string{{"bench", "--out", file, "--cpuprofile", link}, {"bench", "--trace", file, "--out", link}, {"run", "--prompt", "x", "--trace", file, "--stats-json", link}} {
		r := inProcess(t, "", append(args, "--model", tiny)...)
		if r.code != 1 || !strings.Contains(r.stderr, "want another path") {
			t.Errorf("%v: have code %d, %s", args, r.code, r.stderr)
		}
	}
}

// TestEndlessInputs: a file that never ends is read no further than it may go.
func TestEndlessInputs(t *testing.T) {
	const zero = "/dev/zero"
	if _, err := os.Stat(zero); err != nil {
		t.Skip("this system has no " + zero)
	}
	for _, args := range [][]string{{"render", "--template", zero}, {"plan", "--trace", "/no/such", "--bench", zero}} {
		r := inProcess(t, "", args...)
		if r.code != 1 || !strings.Contains(r.stderr, zero+": have more than") {
			t.Errorf("%v: have code %d, %s", args, r.code, r.stderr)
		}
	}
}
