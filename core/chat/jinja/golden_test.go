package jinja

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// goldenTime is the time of the golden renderings.
var goldenTime = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// engineTemplates is the folder of real templates in the engine's module.
func engineTemplates(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ardanlabs/jinja").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "testdata", "templates")
}

// goldenCase is one rendering by Python's Jinja2.
type goldenCase struct {
	Name        string
	Context     json.RawMessage
	Text, Error *string
}

type goldenTemplate struct {
	Template string
	Tokens   map[string]string
	Cases    []goldenCase
}

// golden reads the renderings of Python's Jinja2.
func golden(t testing.TB) []goldenTemplate {
	t.Helper()
	dir := os.Getenv("SLUICE_GOLDEN")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "golden")
	}
	b, err := os.ReadFile(filepath.Join(dir, "templates.json"))
	if os.IsNotExist(err) {
		t.Skipf("have no golden renderings: %v (set SLUICE_GOLDEN to their folder)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Templates []goldenTemplate }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	return file.Templates
}

// TestGolden: what Python renders of the real templates, to the byte; what it
// refuses is refused.
func TestGolden(t *testing.T) {
	dir := engineTemplates(t)
	for _, g := range golden(t) {
		source, err := os.ReadFile(filepath.Join(dir, g.Template))
		if err != nil {
			t.Fatal(err)
		}
		template, err := Compile(string(source))
		if err != nil {
			t.Errorf("%s: %v", g.Template, err)
			continue
		}
		for _, c := range g.Cases {
			t.Run(g.Template+"/"+c.Name, func(t *testing.T) {
				request, err := Request(c.Context)
				if err != nil {
					t.Fatal(err)
				}
				pieces, err := template.Render(context.Background(), Vars{Request: request, Tokens: g.Tokens, Now: goldenTime})
				switch {
				case c.Error != nil && err == nil:
					t.Errorf("have %q, want the error %q", joined(pieces), *c.Error)
				case c.Error == nil && err != nil:
					t.Errorf("have the error %v, want %q", err, *c.Text)
				case c.Error == nil && joined(pieces) != *c.Text:
					t.Errorf("have %q\nwant %q", joined(pieces), *c.Text)
				}
			})
		}
	}
}

func joined(pieces []Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}
