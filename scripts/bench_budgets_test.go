package scripts

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// fake writes a shell script that stands for a program, and returns its path.
func fake(t *testing.T, name, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantEmpty checks that a folder for temporary files has none left.
func wantEmpty(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("have %v left in %s, error %v", left, folder, err)
	}
}

// makes is a shell script that makes the file after an option.
const makes = `while [ "$1" != "$option" ]; do shift; done
case $2 in */) mkdir -p "$2"; exit ;; esac
mkdir -p "$(dirname "$2")"; echo made >"$2"
`

func TestBenchBudgets(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script")
	}
	host := fake(t, "host", "option=--out\n"+makes+"echo table\n")
	synth := fake(t, "synthgguf", "option=--out\n"+makes)
	for name, c := range map[string]struct {
		env  []string
		code int
		want string // on standard error
		made int
	}{
		"all":                 {nil, 0, "measuring", 2},
		"no such model":       {[]string{"MODELS=gemma4 nope"}, 1, "have nope, want gemma4 or qwen35moe", 0},
		"synth fails":         {[]string{"SYNTHGGUF=" + fake(t, "s", "exit 3\n")}, 3, "making", 0},
		"synth is built":      {[]string{"SYNTHGGUF=", "GO=" + fake(t, "go", "option=-o\n"+makes+"rm \"$2\"; cp '"+synth+"' \"$2\"\n")}, 0, "measuring", 2},
		"go fails":            {[]string{"SYNTHGGUF=", "GO=" + fake(t, "go", "exit 4\n")}, 4, "making", 0},
		"synth interrupted":   {[]string{"SYNTHGGUF=" + fake(t, "s", "echo once >&2; exit 130\n")}, 130, "making", 0},
		"host interrupted":    {[]string{"HOST=" + fake(t, "h", "exit 130\n")}, 130, "measuring", 1},
		"one fails, one goes": {[]string{"HOST=" + fake(t, "h", "case $* in *gemma4*) exit 5;; esac\n")}, 5, "measuring", 2},
	} {
		t.Run(name, func(t *testing.T) {
			folder, results, temp := filepath.Join(t.TempDir(), "a b"), filepath.Join(t.TempDir(), "c d"), t.TempDir()
			env := append([]string{"TMPDIR=" + temp, "HOST=" + host, "SYNTHGGUF=" + synth}, c.env...)
			_, stderr := ran(t, c.code, env, "./bench-budgets", folder, results, "7")
			if !strings.Contains(stderr, c.want) || c.code == 130 && strings.Contains(stderr, "qwen35moe") {
				t.Errorf("have standard error:\n%s\nwant %q, and after an interrupt no second model", stderr, c.want)
			}
			if made, _ := filepath.Glob(filepath.Join(folder, "*.gguf")); len(made) != c.made {
				t.Errorf("have files %q, want %d", made, c.made)
			}
			wantEmpty(t, temp)
		})
	}
}

// pack makes what its caller names, from the caller's folder, or nothing.
func TestPack(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script")
	}
	script, err := filepath.Abs("pack")
	if err != nil {
		t.Fatal(err)
	}
	builds := fake(t, "go", "option=-o\n"+makes)
	tars := filepath.Dir(fake(t, "tar", "echo part; exit 2\n"))
	for name, c := range map[string]struct {
		file string
		env  []string
		code int
	}{
		"relative":       {"x y.tar.xz", nil, 0},
		"no such name":   {"x y", nil, 1},
		"no such folder": {"no/x.tar.xz", nil, 2},
		"go fails":       {"x.tar.xz", []string{"GO=" + fake(t, "go", "exit 3\n")}, 3},
		"tar fails":      {"x.tar.xz", []string{"PATH=" + tars + string(os.PathListSeparator) + os.Getenv("PATH")}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			folder, temp := t.TempDir(), t.TempDir()
			env := append([]string{"TMPDIR=" + temp, "GO=" + builds, "FILE=" + c.file, "PACK=" + script}, c.env...)
			ran(t, c.code, append(env, "IN="+folder), "sh", "-c", `cd "$IN" && exec "$PACK" "$FILE"`)
			made, err := os.ReadDir(folder)
			if err != nil || c.code == 0 && (len(made) != 1 || made[0].Name() != c.file) || c.code != 0 && len(made) > 0 {
				t.Errorf("have %v, error %v", made, err)
			}
			wantEmpty(t, temp)
		})
	}
}
