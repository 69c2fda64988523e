package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gguf/gguftest"
)

// storeModels are the files that the stores of these tests are made of.
func storeModels(t *testing.T) []string {
	t.Helper()
	pattern := filepath.Join(cmp.Or(os.Getenv("SLUICE_GOLDEN"), "../../../shared/golden"), "lfm2moe", "*.gguf")
	golden, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(golden) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no file matches %s: set SLUICE_GOLDEN", pattern)
		}
		t.Logf("no file matches %s: only the tiny model is tested", pattern)
	}
	return append(golden, tiny)
}

// A store gives what its file gave, byte for byte, when the file is gone.
func TestStoreRuns(t *testing.T) {
	needGPU(t)
	const lines = `{"tokens":[1,7,300,45,9,9,2,611,80,81,82],"greedy":6,"top":20,"last":11}` + "\n" + `{"prompt":"In the beginning","greedy":4}` + "\n"
	for _, model := range storeModels(t) {
		t.Run(filepath.Base(model), func(t *testing.T) {
			path, dir := filepath.Join(t.TempDir(), "m.gguf"), filepath.Join(t.TempDir(), "s")
			if err := os.WriteFile(path, readFile(t, model), 0o600); err != nil {
				t.Fatal(err)
			}
			want := runHost(t, lines, "eval", "-m", path).ok(t)
			runHost(t, "", "ingest", "-m", path, "--store", dir).ok(t)
			if have := runHost(t, lines, "eval", "-m", path, "--store", dir).ok(t); have != want {
				t.Errorf("have %s\nwant %s", have, want)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			for _, flag := range []string{"--store", "--model"} {
				if have := runHost(t, lines, "eval", flag, dir).ok(t); have != want {
					t.Errorf("%s: have %s\nwant %s", flag, have, want)
				}
			}
		})
	}
}

// A flipped bit in a record ends the run with its layer and expert, one in a dense tensor
// with its name.
func TestStoreDamaged(t *testing.T) {
	needGPU(t)
	whole := filepath.Join(t.TempDir(), "s")
	runHost(t, "", "ingest", "-m", tiny, "--store", whole).ok(t)
	for file, want := range map[string]string{"experts.bin": "layer 2 expert ", "dense.bin": "token_embd.weight"} {
		dir := filepath.Join(t.TempDir(), "s")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		data := readFile(t, filepath.Join(dir, file))
		for at := 100; at < len(data); at += 16 << 10 { // so that each expert of each layer has one
			data[at] ^= 4
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
		r := runHost(t, `{"tokens":[1,2,3]}`+"\n", "eval", "--store", dir)
		if all := r.stdout + r.stderr; r.code != 1 || !strings.Contains(all, want) || !strings.Contains(all, "checksum") || !strings.Contains(all, filepath.Join(dir, file)) {
			t.Errorf("have code %d, want %q and the file:\n%s", r.code, want, all)
		}
		r = runHost(t, "", "store", "verify", dir)
		if r.code != 1 || !strings.Contains(r.stdout, want) || !strings.Contains(r.stderr, " fault") {
			t.Errorf("verify: have code %d, output:\n%s\n%s", r.code, r.stdout, r.stderr)
		}
	}
}

// What is no store, or not that of the file, is refused; none of this needs a GPU.
func TestStoreRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	runHost(t, "", "ingest", "-m", tiny, "--store", dir).ok(t)
	other := gguftest.Edit(t, tiny, func(m *gguftest.Model) { m.Set("general.name", "other") })
	empty := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"another file's":   {[]string{"eval", "-m", other, "--store", dir}, []string{"made from another GGUF", "tiny-lfm2moe.gguf: have "}},
		"no store":         {[]string{"eval", "--store", empty}, []string{empty, "not a store"}},
		"no store, -m":     {[]string{"eval", "-m", empty}, []string{empty, "not a store"}},
		"not there":        {[]string{"tokenize", "--store", "nowhere"}, []string{"nowhere"}},
		"ingest over it":   {[]string{"ingest", "-m", other, "--store", dir}, []string{"a store of another GGUF", "--force"}},
		"ingest of none":   {[]string{"ingest", "-m", "nowhere.gguf"}, []string{"nowhere.gguf"}},
		"ingest elsewhere": {[]string{"ingest", "-m", tiny, "--store", filepath.Dir(tiny)}, []string{"other files in it"}},
		"verify of none":   {[]string{"store", "verify", empty}, []string{empty, "not a store"}},
		"rm of none":       {[]string{"store", "rm", "-y", empty}, []string{empty, "not a store"}},
		"rm of a name":     {[]string{"store", "rm", "-y", "../stores"}, []string{"stores"}},
	} {
		t.Run(name, func(t *testing.T) { runHost(t, "", c.args...).fails(t, c.want...) })
	}
}

// The default place, names in it, and what the store commands do there.
func TestStores(t *testing.T) {
	root := filepath.Join(t.TempDir(), "stores")
	host := func(stdin string, args ...string) result {
		cmd := command(t, args...)
		cmd.Env = append(cmd.Env, storesEnv+"="+root)
		return finish(t, cmd, stdin)
	}
	if r := host("", "store", "ls"); r.ok(t) != "" || !strings.Contains(r.stderr, "no stores in "+root) {
		t.Errorf("have %q, %q", r.stdout, r.stderr)
	}
	dir := host("", "ingest", "-m", tiny).ok(t)
	name := filepath.Base(dir)
	if filepath.Dir(dir) != root || !strings.HasPrefix(name, "tiny-lfm2moe-") {
		t.Errorf("have store %s", dir)
	}
	if r := host("", "ingest", "-m", tiny); r.ok(t) != dir || !strings.Contains(r.stderr, "there already") {
		t.Errorf("have %q, %q", r.stdout, r.stderr)
	}
	if out := host(`{"text":"In"}`+"\n", "tokenize", "--store", name).ok(t); !strings.Contains(out, `"ids"`) {
		t.Errorf("have %q", out)
	}
	if out := host("", "store", "ls").ok(t); !strings.Contains(out, name+"  complete") || !strings.Contains(out, "tiny-lfm2moe.gguf") {
		t.Errorf("have %s", out)
	}
	var rows []storeRow
	if err := json.Unmarshal([]byte(host("", "store", "ls", "--json").ok(t)), &rows); err != nil || len(rows) != 1 || rows[0].Dir != dir || rows[0].Done != 1 {
		t.Errorf("have %+v, %v", rows, err)
	}
	if out := host("", "store", "verify", name).ok(t); !strings.Contains(out, "all checksums are right") {
		t.Errorf("have %s", out)
	}
	for _, answer := range []string{"", "n\n", "maybe\n", "yes sir\n"} {
		host(answer, "store", "rm", name).fails(t, "nothing was deleted", fmt.Sprintf("delete %s (complete, 8.59 MB)?", dir))
	}
	host("y\n", "store", "rm", name).ok(t)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("have %v, want the store gone", err)
	}
}

// A store is found by the beginning of its name, if that is one store's alone.
func TestFindStore(t *testing.T) {
	root := t.TempDir()
	t.Setenv(storesEnv, root)
	for _, name := range []string{"tiny-12345678", "large-1", "large-2", "odd[x]-1"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"tiny": "tiny-12345678", "tiny-12345678": "tiny-12345678", "large-1": "large-1", "odd[x]": "odd[x]-1"} {
		if have := findStore(name); have != filepath.Join(root, want) {
			t.Errorf("%s: have %s, want %s", name, have, want)
		}
	}
	for _, name := range []string{"large", "tin", "*", "nothing"} {
		if have := findStore(name); have != name {
			t.Errorf("%s: have %s, want it as it is", name, have)
		}
	}
}
