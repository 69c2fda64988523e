package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// twoPlugins is a registry of alpha and beta.
const twoPlugins = onePlugin + "  - {name: beta, version: 2.0, architectures: [three], protocol: 1, command: bin/beta}\n"

// lockDir makes a folder with twoPlugins and a program for alpha only.
func lockDir(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = write(t, filepath.Join(dir, "registry.yaml"), twoPlugins)
	write(t, programPath(dir, "bin/alpha", runtime.GOOS), "program alpha")
	return dir, path
}

// mustLoad loads and returns the plugins by name.
func mustLoad(t *testing.T, path string) map[string]Plugin {
	t.Helper()
	r, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Plugin{}
	for _, p := range r.Plugins {
		out[p.Name] = p
	}
	return out
}

func TestLock(t *testing.T) {
	dir, path := lockDir(t)
	if p := mustLoad(t, path)["alpha"]; p.SHA256 != "" || !strings.Contains(p.Unlocked, "there is no lock file") || !p.Built() {
		t.Errorf("before the lock: have %+v", p)
	}
	if err := Lock(path); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("program alpha"))
	got := mustLoad(t, path)
	if p := got["alpha"]; p.SHA256 != hex.EncodeToString(sum[:]) || p.Unlocked != "" {
		t.Errorf("alpha: have %+v, want the hash of its program", p)
	}
	if p := got["beta"]; p.SHA256 != "" || !strings.Contains(p.Unlocked, "has no entry") || p.Built() {
		t.Errorf("beta, which is not built: have %+v", p)
	}
	lock := filepath.Join(dir, "registry.lock.yaml")
	first, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := Lock(path); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(lock)
	if err != nil || string(second) != string(first) {
		t.Errorf("locked twice: have %v and\n%s\nwant the same bytes:\n%s", err, second, first)
	}
	want := lockHead + "plugins:\n  - name: alpha\n    version: \"1.0\"\n    sha256:\n      " + platform() + ": " + hex.EncodeToString(sum[:]) + "\n"
	if string(first) != want {
		t.Errorf("have\n%s\nwant\n%s", first, want)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 { // bin, the registry, the lock
		t.Errorf("have %v, %v, want no file left over", entries, err)
	}
	if info, err := os.Stat(lock); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode of the lock: have %v, %v, want 0644", info.Mode(), err)
	}
}

// Other platforms' hashes stay while the version does; what is gone, goes.
func TestLockKeeps(t *testing.T) {
	dir, path := lockDir(t)
	lock := write(t, filepath.Join(dir, "registry.lock.yaml"), `plugins:
  - {name: gone, version: 1, sha256: {other/arch: `+sumA+`}}
  - {name: beta, version: 1.9, sha256: {other/arch: `+sumA+`}}
  - {name: alpha, version: 1.0, sha256: {other/arch: `+sumA+`, `+platform()+`: `+sumB+`}}
`)
	if p := mustLoad(t, path)["beta"]; p.SHA256 != "" || !strings.Contains(p.Unlocked, "locks version 1.9, the registry has 2.0") {
		t.Errorf("beta of another version: have %+v", p)
	}
	if p := mustLoad(t, path)["alpha"]; p.SHA256 != sumB {
		t.Errorf("alpha: have %+v, want the locked hash, right or not", p)
	}
	if err := Lock(path); err != nil {
		t.Fatal(err)
	}
	l, err := readLock(lock)
	if err != nil {
		t.Fatal(err)
	}
	if l.entry("gone") != nil || l.entry("beta") != nil {
		t.Errorf("have %+v, want neither gone nor beta", l)
	}
	a := l.entry("alpha")
	if a == nil || a.SHA256["other/arch"] != sumA || a.SHA256[platform()] == sumB || len(a.SHA256) != 2 {
		t.Errorf("alpha: have %+v, want the other platform kept and this one anew", a)
	}
	if err := os.Remove(programPath(dir, "bin/alpha", runtime.GOOS)); err != nil {
		t.Fatal(err)
	}
	if err := Lock(path); err != nil {
		t.Fatal(err)
	}
	if p := mustLoad(t, path)["alpha"]; p.SHA256 != "" || !strings.Contains(p.Unlocked, "no hash for "+platform()) {
		t.Errorf("alpha after its program went: have %+v", p)
	}
}

func TestLockRefuses(t *testing.T) {
	entry := func(rest string) string { return "plugins:\n  - {name: alpha, version: 1, " + rest + "}\n" }
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "is empty"},
		"not yaml":          {"{", "yaml:"},
		"unknown key":       {"plugins: []\nformat: 2\n", `:2: lock: have unknown key "format"`},
		"bad hash":          {entry("sha256: {linux/amd64: 00}"), `:2: plugin alpha: sha256: linux/amd64: have "00"`},
		"bad platform":      {entry("sha256: {linux: " + sumA + "}"), `:2: plugin alpha: sha256: have "linux", want GOOS/GOARCH`},
		"hash is a list":    {entry("sha256: [" + sumA + "]"), ":2: plugin alpha: sha256: have a list, want a mapping"},
		"no hash":           {"plugins: [{name: a, version: 1}]", ":1: plugin a: key sha256 is missing"},
		"plugin twice":      {entry("sha256: {}") + "  - {name: alpha, version: 1, sha256: {}}\n", ":3: plugin alpha: is on line 2 already"},
		"platform twice":    {entry("sha256: {a/b: " + sumA + ", a/b: " + sumB + "}"), `have key "a/b" twice`},
		"plugins is a word": {"plugins: all", `:1: plugins: have "all", want a list`},
	} {
		t.Run(name, func(t *testing.T) {
			dir, path := lockDir(t)
			lock := write(t, filepath.Join(dir, "registry.lock.yaml"), c.text)
			_, err := Load(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), lock) {
				t.Errorf("Load: have %v, want %q and the path in it", err, c.want)
			}
			err = Lock(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "delete "+lock) {
				t.Errorf("Lock: have %v, want %q and what to do in it", err, c.want)
			}
			if text, err := os.ReadFile(lock); err != nil || string(text) != c.text {
				t.Errorf("the lock was touched: have %q, %v", text, err)
			}
		})
	}
}

// A lock that can't be written leaves nothing behind.
func TestLockFails(t *testing.T) {
	if err := Lock(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("no registry: have no error")
	}
	dir, path := lockDir(t)
	if err := os.Mkdir(programPath(dir, "bin/beta", runtime.GOOS), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Lock(path); err == nil || !strings.Contains(err.Error(), "plugin beta") {
		t.Errorf("a folder for a program: have %v, want an error that names beta", err)
	}
	var l lockFile
	into := filepath.Join(dir, "taken")
	write(t, filepath.Join(into, "x"), "")
	if err := l.write(into); err == nil {
		t.Error("a folder in place of the lock: have no error")
	}
	left, err := filepath.Glob(filepath.Join(dir, ".tmp-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("have %v, %v, want no file left over", left, err)
	}
	if err := l.write(filepath.Join(dir, "no", "lock.yaml")); err == nil {
		t.Error("no folder for the lock: have no error")
	}
}
