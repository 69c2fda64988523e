package registry

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// sumA and sumB are two well-formed hashes.
var (
	sumA = strings.Repeat("a1", 32)
	sumB = strings.Repeat("0", 64) // all digits: YAML takes it for a number
)

// onePlugin is a registry without faults, to be varied.
const onePlugin = `plugins:
  - name: alpha
    version: 1.0
    architectures: [one, two]
    protocol: 1
    command: bin/alpha
`

// oneFile is an entry without faults, to be varied.
var oneFile = `files:
  - name: m
    architecture: one
    file: a/m.gguf
    size: 10
    sha256: ` + sumA + `
    verified: golden
`

// write makes a file with its folders and returns its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "registry.yaml"), onePlugin+`    description: runs one and two
    source: example.org/alpha
  - {name: beta, version: 0.10, architectures: [three], protocol: [3, 2, 3], command: beta}
`+oneFile+`    notes: small
  - name: split
    architecture: three
    repo: owner/Some-Repo
    revision: `+strings.Repeat("12e4", 10)+`
    parts:
      - {file: q/x-00001-of-00002.gguf, size: 7, sha256: `+sumB+`}
      - {file: q/x-00002-of-00002.gguf, size: 8, sha256: `+strings.Repeat("c", 64)+`}
    verified: none
`)
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	none := "there is no lock file " + filepath.Join(dir, "registry.lock.yaml") + `: run "host plugin lock"`
	want := &Registry{
		Path: path,
		Lock: filepath.Join(dir, "registry.lock.yaml"),
		Plugins: []Plugin{
			{
				Name: "alpha", Version: "1.0", Architectures: []string{"one", "two"}, Protocols: []int{1},
				Description: "runs one and two", Source: "example.org/alpha", Path: programPath(dir, "bin/alpha", runtime.GOOS), Unlocked: none,
			},
			{
				Name: "beta", Version: "0.10", Architectures: []string{"three"}, Protocols: []int{2, 3},
				Path: programPath(dir, "beta", runtime.GOOS), Unlocked: none,
			},
		},
		Files: []File{
			{
				Name: "m", Architecture: "one", Verified: Golden, Notes: "small",
				Parts: []Part{{File: "a/m.gguf", Size: 10, SHA256: sumA, Path: filepath.Join(dir, "a", "m.gguf")}},
			},
			{
				Name: "split", Architecture: "three", Verified: None, Repo: "owner/Some-Repo", Revision: strings.Repeat("12e4", 10),
				Parts: []Part{
					{File: "q/x-00001-of-00002.gguf", Size: 7, SHA256: sumB},
					{File: "q/x-00002-of-00002.gguf", Size: 8, SHA256: strings.Repeat("c", 64)},
				},
			},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("have %+v\nwant %+v", got, want)
	}
	if got.Files[1].Size() != 15 {
		t.Errorf("size of split: have %d, want 15", got.Files[1].Size())
	}
}

func TestLookups(t *testing.T) {
	r, err := parse("/r/registry.yaml", []byte(onePlugin+oneFile))
	if err != nil {
		t.Fatal(err)
	}
	if p, err := r.PluginFor("two"); err != nil || p.Name != "alpha" {
		t.Errorf("PluginFor two: have %q, %v, want alpha", p.Name, err)
	}
	_, err = r.PluginFor("zamba")
	if !errors.Is(err, ErrNoPlugin) {
		t.Fatalf("PluginFor zamba: have %v, want ErrNoPlugin", err)
	}
	for _, part := range []string{"/r/registry.yaml", `"zamba"`, "one, two", "--plugin-dev"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("PluginFor zamba: have %q, want %q in it", err, part)
		}
	}
	_, err = (&Registry{Path: "/e.yaml"}).PluginFor("x")
	if err == nil || !strings.Contains(err.Error(), "lists none") {
		t.Errorf("PluginFor of an empty registry: have %v", err)
	}
	for _, c := range []struct {
		what string
		find func() (File, bool)
		want bool
	}{
		{"name", func() (File, bool) { return r.FileByName("m") }, true},
		{"other name", func() (File, bool) { return r.FileByName("n") }, false},
		{"hash", func() (File, bool) { return r.FileBySHA256(sumA) }, true},
		{"other hash", func() (File, bool) { return r.FileBySHA256(sumB) }, false},
		{"base and size", func() (File, bool) { return r.FileLike("m.gguf", 10) }, true},
		{"path for base", func() (File, bool) { return r.FileLike("a/m.gguf", 10) }, false},
		{"base, other size", func() (File, bool) { return r.FileLike("m.gguf", 11) }, false},
	} {
		f, ok := c.find()
		if ok != c.want || ok && f.Name != "m" {
			t.Errorf("by %s: have %q, %v, want found %v", c.what, f.Name, ok, c.want)
		}
	}
}

func TestProtocols(t *testing.T) {
	for text, want := range map[string][]int{
		"1": {1}, "[1]": {1}, "[2, 1]": {1, 2}, "1-3": {1, 2, 3}, `"4-4"`: {4}, "65536": {65536},
	} {
		r, err := parse("/r.yaml", []byte(strings.Replace(onePlugin, "protocol: 1", "protocol: "+text, 1)))
		if err != nil {
			t.Errorf("protocol %s: %v", text, err)
		} else if got := r.Plugins[0].Protocols; !reflect.DeepEqual(got, want) {
			t.Errorf("protocol %s: have %v, want %v", text, got, want)
		}
	}
}

func TestProgramPath(t *testing.T) {
	dir := filepath.Join("r", "s")
	for _, c := range []struct{ rel, goos, want string }{
		{"bin/p", "linux", filepath.Join(dir, "bin", "p")},
		{"bin/p1.2", "windows", filepath.Join(dir, "bin", "p1.2.exe")},
		{"p.exe", "windows", filepath.Join(dir, "p.exe")},
	} {
		if got := programPath(dir, c.rel, c.goos); got != c.want {
			t.Errorf("%s on %s: have %s, want %s", c.rel, c.goos, got, c.want)
		}
	}
}

// A file that is none, or too large, is refused before it is read whole.
func TestLoadUnreadable(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): "no such file",
		dir:                             "want a plain file",
		write(t, filepath.Join(dir, "big.yaml"), onePlugin+strings.Repeat("#", maxBytes)): "at most",
	} {
		_, err := Load(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: have %v, want %q and the path in it", path, err, want)
		}
	}
	full := onePlugin + strings.Repeat("#", maxBytes-len(onePlugin))
	if _, err := Load(write(t, filepath.Join(dir, "full.yaml"), full)); err != nil {
		t.Errorf("a file of exactly the largest size: %v", err)
	}
}
