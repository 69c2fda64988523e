package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A second start loads what the first one used; the text stays the same, whatever the file says.
func TestWarmStart(t *testing.T) {
	t.Parallel()
	needGPU(t)
	home, text := t.TempDir(), ""
	run := func(more ...string) result {
		t.Helper()
		cmd := command(t, append([]string{"run", "--model", tiny, "--raw", "--prompt", "In the beginning", "-n", "6", "--gpu-budget", "22MB"}, more...)...)
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+filepath.Join(home, ".cache"))
		r := finish(t, cmd, "")
		if r.code != 0 {
			t.Fatalf("%v: have code %d, errors %s", more, r.code, r.stderr)
		}
		return r
	}
	filled := func(more ...string) int64 {
		t.Helper()
		file := filepath.Join(home, "stats.json")
		if r := run(append(more, "--stats-json", file)...); r.stdout != text {
			t.Errorf("%v: have %q, at first %q", more, r.stdout, text)
		}
		var s statsReport
		if err := json.Unmarshal(readFile(t, file), &s); err != nil {
			t.Fatal(err)
		}
		return s.Experts.Filled
	}
	first := run()
	text = first.stdout
	files, err := filepath.Glob(filepath.Join(home, ".cache", "sluice", "experts", "*"))
	if err != nil || len(files) != 1 || !strings.HasSuffix(files[0], ".json") {
		t.Fatalf("have files %v, error %v, want one", files, err)
	}
	keys, err := readWarm(files[0])
	if err != nil || len(keys) == 0 {
		t.Fatalf("have %d experts, error %v", len(keys), err)
	}
	if n := filled(); n == 0 {
		t.Error("the second start filled no slot with what the first one used")
	}
	if n := filled("--no-warm"); n != 0 {
		t.Errorf("--no-warm: have %d slots filled", n)
	}
	for name, text := range map[string]string{"cut": `{"format":1,"exp`, "format": `{"format":9}`, "strange": `{"format":1,"experts":[[99,1],[-1,5],[2,100000],[2,1]]}`, "types": `{"format":1,"experts":[["a"]]}`} {
		if err := os.WriteFile(files[0], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := run(); r.stdout != first.stdout {
			t.Errorf("%s: have %q", name, r.stdout)
		}
	}
	before, _ := os.ReadFile(files[0])
	if r := run("--no-warm"); r.stdout != first.stdout {
		t.Errorf("--no-warm: have %q", r.stdout)
	}
	if after, _ := os.ReadFile(files[0]); string(after) != string(before) {
		t.Error("--no-warm wrote the file")
	}
}
