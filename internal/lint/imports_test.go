package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module   = "github.com/sluicehost/sluice"
	webgpu   = "github.com/cogentcore/webgpu"
	goPlugin = "github.com/hashicorp/go-plugin"
)

// rule forbids imports. Paths are below the module unless they name another one; each stands
// for the package and all below it.
type rule struct {
	name string
	from []string // whom it binds
	not  []string // but for these
	deny []string
	but  []string // of deny
	test []string // of deny, allowed in tests; helpers always are
	deep bool     // also what the imports import, in code that is not a test
}

// leaves of core know nothing of the rest of it.
var leaves = []string{"core/gguf", "core/tokenizer", "core/gpu", "core/stream", "core/sample", "core/registry", "core/routing"}

// helpers are packages for tests only: any test may import them, and they import what they help to test.
var helpers = []string{"core/gguf/gguftest", "core/gpu/gputest", "core/gpu/kerneltest"}

// readers are what tests read the golden models with.
var readers = []string{"core/gguf"}

var rules = append([]rule{
	{name: "the contract knows neither host nor plugins nor GPU", from: []string{"sdk"}, deny: []string{"core", "cmd", "plugins", "internal", webgpu}},
	{name: "a plugin is built on sdk alone", from: []string{"plugins"}, deny: []string{"core", "cmd", "plugins", "internal", webgpu}},
	{name: "core knows neither commands nor plugins", from: []string{"core"}, deny: []string{"cmd", "plugins", "internal"}},
	{name: "only core/gpu talks to WebGPU", from: []string{""}, not: []string{"core/gpu"}, deny: []string{webgpu}},
	{name: "only core/plugin and the sdk's ends of the wire know go-plugin", from: []string{""}, not: []string{"core/plugin", "sdk/rpc", "sdk"}, deny: []string{goPlugin}},
	{name: "no RPC while a token is made", from: []string{"core/engine", "core/stream", "core/sample"}, deny: []string{"core/plugin", "sdk/rpc", goPlugin, "google.golang.org/grpc"}, deep: true},
	{name: "no one's program depends on test helpers", from: []string{""}, not: helpers, deny: helpers, deep: true},
}, leafRules()...)

func leafRules() (out []rule) {
	for _, l := range leaves {
		out = append(out, rule{name: "leaves of core import nothing else of it", from: []string{l}, not: helpers, deny: []string{"core"}, but: []string{l}, test: readers})
	}
	return out
}

// pkg is what "go list -json" says of a package.
type pkg struct {
	ImportPath                               string
	Imports, TestImports, XTestImports, Deps []string
}

// under says whether path is one of the roots or below one.
func under(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		if !strings.Contains(root, ".") {
			root = strings.TrimSuffix(module+"/"+root, "/")
		}
		return path == root || strings.HasPrefix(path, root+"/")
	})
}

// violations are the imports of p that r forbids.
func (r rule) violations(p pkg) (out []string) {
	if !under(p.ImportPath, r.from) || under(p.ImportPath, r.not) {
		return nil
	}
	check := func(imports []string, how string) {
		for _, i := range imports {
			if i != p.ImportPath && under(i, r.deny) && !under(i, r.but) {
				out = append(out, fmt.Sprintf("%s %s %s: %s", p.ImportPath, how, i, r.name))
			}
		}
	}
	check(p.Imports, "imports")
	if r.deep {
		check(p.Deps, "depends on")
	}
	for _, tests := range [][]string{p.TestImports, p.XTestImports} {
		check(slices.DeleteFunc(slices.Clone(tests), func(i string) bool { return under(i, helpers) || under(i, r.test) }), "in its tests imports")
	}
	return out
}

// watch makes go test's cache heed every source file: it sees what a test opens itself, not
// what "go list" and git read for it.
func watch(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".go":
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImports(t *testing.T) {
	watch(t)
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	seen := map[string]bool{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seen[p.ImportPath] = true
		for _, r := range rules {
			for _, v := range r.violations(p) {
				t.Error(v)
			}
		}
	}
	// A rule about a package that is not there guards nothing.
	for _, r := range rules {
		for _, list := range [][]string{r.from, r.not} {
			for _, path := range list {
				if !slices.ContainsFunc(slices.Collect(keys(seen)), func(p string) bool { return under(p, []string{path}) }) {
					t.Errorf("rule %q names %s, which is not there", r.name, path)
				}
			}
		}
	}
}

func keys(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestPlantedImports shows that each rule finds what it is for.
func TestPlantedImports(t *testing.T) {
	at := func(path string) string { return module + "/" + path }
	for name, c := range map[string]struct {
		p    pkg
		want string // part of the violation; empty for none
	}{
		"sdk imports core":             {pkg{ImportPath: at("sdk/layer"), Imports: []string{at("core/gguf")}}, "the contract"},
		"sdk's test imports core":      {pkg{ImportPath: at("sdk/layer"), XTestImports: []string{at("core/engine")}}, "the contract"},
		"sdk imports webgpu":           {pkg{ImportPath: at("sdk"), Imports: []string{webgpu + "/wgpu"}}, "the contract"},
		"plugin imports core":          {pkg{ImportPath: at("plugins/x"), Imports: []string{at("core/store")}}, "sdk alone"},
		"plugin imports plugin":        {pkg{ImportPath: at("plugins/x"), Imports: []string{at("plugins/y/shape")}}, "sdk alone"},
		"core imports cmd":             {pkg{ImportPath: at("core/engine"), Imports: []string{at("cmd/host")}}, "core knows"},
		"core imports plugins":         {pkg{ImportPath: at("core/engine"), TestImports: []string{at("plugins/x")}}, "core knows"},
		"engine imports webgpu":        {pkg{ImportPath: at("core/engine"), Imports: []string{webgpu + "/wgpu"}}, "only core/gpu"},
		"cmd imports webgpu":           {pkg{ImportPath: at("cmd/host"), Imports: []string{webgpu + "/wgpu"}}, "only core/gpu"},
		"cmd imports go-plugin":        {pkg{ImportPath: at("cmd/host"), Imports: []string{goPlugin}}, "go-plugin"},
		"engine imports core/plugin":   {pkg{ImportPath: at("core/engine"), Imports: []string{at("core/plugin")}}, "no RPC"},
		"engine depends on go-plugin":  {pkg{ImportPath: at("core/engine"), Deps: []string{goPlugin}}, "no RPC"},
		"stream imports sdk/rpc":       {pkg{ImportPath: at("core/stream"), Imports: []string{at("sdk/rpc")}}, "no RPC"},
		"sample imports grpc":          {pkg{ImportPath: at("core/sample"), Imports: []string{"google.golang.org/grpc"}}, "no RPC"},
		"leaf imports leaf":            {pkg{ImportPath: at("core/gpu"), Imports: []string{at("core/gguf")}}, "leaves"},
		"leaf's test imports leaf":     {pkg{ImportPath: at("core/tokenizer"), TestImports: []string{at("core/stream")}}, "leaves"},
		"program depends on a helper":  {pkg{ImportPath: at("cmd/host"), Deps: []string{at("core/gpu/gputest")}}, "test helpers"},
		"engine imports leaves":        {pkg{ImportPath: at("core/engine"), Imports: []string{at("core/gpu"), at("core/stream"), at("sdk/program")}}, ""},
		"gpu imports webgpu":           {pkg{ImportPath: at("core/gpu"), Imports: []string{webgpu + "/wgpu"}}, ""},
		"leaf imports below itself":    {pkg{ImportPath: at("core/gguf"), Imports: []string{at("core/gguf/inner")}}, ""},
		"leaf's test imports a helper": {pkg{ImportPath: at("core/tokenizer"), XTestImports: []string{at("core/gguf/gguftest"), at("core/gguf")}}, ""},
		"sdk's own end of the wire":    {pkg{ImportPath: at("sdk/rpc"), Imports: []string{goPlugin}}, ""},
		"like names are not below":     {pkg{ImportPath: at("corelike"), Imports: []string{at("cmdlike"), module + "2/cmd"}}, ""},
		"plugin imports sdk":           {pkg{ImportPath: at("plugins/x"), Imports: []string{at("sdk"), at("sdk/layer")}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var found []string
			for _, r := range rules {
				found = append(found, r.violations(c.p)...)
			}
			if c.want == "" && len(found) > 0 || c.want != "" && !strings.Contains(strings.Join(found, "\n"), c.want) {
				t.Errorf("have %q, want %q", found, c.want)
			}
		})
	}
}
