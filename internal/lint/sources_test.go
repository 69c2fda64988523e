package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// root is the module's folder.
const root = "../.."

// tracked are the repository's files, slash-separated from the root.
func tracked(t *testing.T) []string {
	t.Helper()
	watch(t)
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("git ls-files: %v", err)
		}
		t.Skipf("not a git checkout: git ls-files: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// maxTracked keeps the repository small enough to clone and to send about.
const maxTracked = 50e6

func TestTrackedSize(t *testing.T) {
	var total int64
	for _, name := range tracked(t) {
		info, err := os.Lstat(filepath.Join(root, name))
		if err == nil { // one that was deleted and not committed yet counts nothing
			total += info.Size()
		}
	}
	if total >= maxTracked {
		t.Errorf("tracked files: have %d bytes, want under %d", total, int64(maxTracked))
	}
}

// spelled are the files of the host that may spell an architecture's name, with the reason.
var spelled = map[string]string{
	"core/tokenizer/pre.go": "gemma4 is a value of tokenizer.ggml.model, too",
}

// TestArchitectureNames: what the host knows of an architecture its plugin tells it.
func TestArchitectureNames(t *testing.T) {
	names := architectures(t)
	for _, file := range tracked(t) {
		if host(file) && spelled[file] == "" {
			src, err := os.ReadFile(filepath.Join(root, file))
			if os.IsNotExist(err) {
				continue // deleted and not committed yet
			} else if err != nil {
				t.Fatal(err)
			}
			for _, v := range spellings(t, file, src, names) {
				t.Error(v)
			}
		}
	}
}

// host says whether a file is part of the host's program.
func host(file string) bool {
	return (strings.HasPrefix(file, "core/") || strings.HasPrefix(file, "cmd/")) &&
		strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go")
}

// architectures are those of the registry.
func architectures(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "registry.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Plugins []struct{ Architectures []string }
		Files   []struct{ Architecture string }
	}
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&r); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range r.Plugins {
		for _, a := range p.Architectures {
			seen[a] = true
		}
	}
	for _, f := range r.Files {
		seen[f.Architecture] = true
	}
	var out []string
	for a := range seen {
		out = append(out, a)
	}
	if len(out) < 4 {
		t.Fatalf("registry.yaml: have architectures %q, want at least the first four", out)
	}
	return out
}

// spellings are the string literals of a source file that contain a name.
func spellings(t *testing.T, file string, src []byte, names []string) (out []string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.Contains(text, name) {
				out = append(out, fmt.Sprintf("%s: host code spells the architecture %s: let its plugin say it", fset.Position(lit.Pos()), name))
			}
		}
		return true
	})
	return out
}

func TestPlantedNames(t *testing.T) {
	names := []string{"toy3moe"}
	for src, want := range map[string]int{
		`package p; const a = "toy3moe"`:                                                 1,
		"package p; const a = `toy3moe.block_count`":                                     1,
		`package p; func f(s string) bool { return s == "toy" + "3" || s == "toy3moe" }`: 1,
		`package p; const a = "toy3"`:                                                    0,
		"package p\n// toy3moe in a comment\n":                                           0,
		`package p; var toy3moe = 1`:                                                     0,
	} {
		if got := spellings(t, "planted.go", []byte(src), names); len(got) != want {
			t.Errorf("%s: have %q, want %d", src, got, want)
		}
	}
	for file, want := range map[string]bool{"core/engine/a.go": true, "cmd/host/a.go": true, "core/engine/a_test.go": false, "sdk/a.go": false, "plugins/x/a.go": false, "core/a.wgsl": false} {
		if host(file) != want {
			t.Errorf("host(%s): have %v", file, !want)
		}
	}
	for file := range spelled {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Errorf("the exception %s is not there: %v", file, err)
		}
	}
}
