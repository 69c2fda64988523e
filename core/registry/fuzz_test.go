package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoad: any bytes give a registry that keeps its promises or an error that
// names the file; and the same for a lock.
func FuzzLoad(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("..", "..", FileName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(twoPlugins + oneFile))
	f.Add([]byte("plugins: &a [*a]\n---\nx"))
	f.Add([]byte("plugins:\n  - name: a\n    version: 1\n    sha256: {linux/amd64: " + sumA + "}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parse("/r/registry.yaml", data)
		if err != nil && (r != nil || !strings.HasPrefix(err.Error(), "registry: /r/registry.yaml:")) {
			t.Fatalf("have %v, %v, want an error that names the file, alone", r, err)
		}
		if err == nil {
			promises(t, r)
		}
		if l, err := parseLock("/r/registry.lock.yaml", data); err == nil {
			for _, e := range l.Plugins {
				for on, sum := range e.SHA256 {
					if !sha256Form.ok(sum) || !platformForm.ok(on) || !nameForm.ok(e.Name) {
						t.Fatalf("lock entry %+v", e)
					}
				}
			}
		}
	})
}

// promises checks what callers of Load rely on.
func promises(t *testing.T, r *Registry) {
	for _, p := range r.Plugins {
		rel, err := filepath.Rel("/r", p.Path)
		if err != nil || !filepath.IsLocal(rel) || len(p.Protocols) == 0 || len(p.Architectures) == 0 || p.Version == "" {
			t.Fatalf("plugin %+v", p)
		}
		if got, err := r.PluginFor(p.Architectures[0]); err != nil || got.Name != p.Name {
			t.Fatalf("PluginFor %s: %v", p.Architectures[0], err)
		}
	}
	for _, f := range r.Files {
		for _, p := range f.Parts {
			if p.Size <= 0 || !sha256Form.ok(p.SHA256) || !filepath.IsLocal(p.File) || (p.Path == "") != (f.Repo != "") {
				t.Fatalf("file %+v", f)
			}
		}
		if got, ok := r.FileBySHA256(f.Parts[0].SHA256); !ok || got.Name != f.Name {
			t.Fatalf("FileBySHA256 of %s", f.Name)
		}
	}
}
