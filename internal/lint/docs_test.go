package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tour's table of packages names every package that ships, and none that does not exist.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], "/") || m[1] == "sdk" {
			named = append(named, m[1])
		}
	}
	cmd := exec.Command("go", "list", "./cmd/...", "./core/...", "./sdk/...", "./plugins/...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, p := range strings.Fields(string(out)) {
		p = strings.TrimPrefix(p, "github.com/sluicehost/sluice/")
		if testHelper(p) {
			continue
		}
		have = append(have, p)
	}
	for _, p := range have {
		if !slices.Contains(named, p) && !slices.Contains(named, filepath.Dir(p)) {
			t.Errorf("docs/architecture.md does not name package %s", p)
		}
	}
	for _, p := range named {
		if !slices.Contains(have, p) {
			t.Errorf("docs/architecture.md names %s, which is no package", p)
		}
	}
}

// testHelper reports whether a package serves only tests of its neighbours.
func testHelper(p string) bool {
	return strings.HasSuffix(p, "test") && p != "sdk/plugintest" || strings.Contains(p, "testdata")
}
