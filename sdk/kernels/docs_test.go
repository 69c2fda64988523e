package kernels

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

var (
	docSection = regexp.MustCompile(`(?m)^## ([a-z_]+)$`)
	docRow     = regexp.MustCompile(`(?m)^\| (\w+) \| (.*)\|$`)
	docName    = regexp.MustCompile("`(\\w+)`")
)

// docTables reads docs/kernels.md: per kernel the rows of its table.
func docTables(t *testing.T) map[string]map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/kernels.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]string{}
	doc := string(raw)
	heads := docSection.FindAllStringSubmatchIndex(doc, -1)
	for i, h := range heads {
		end := len(doc)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		rows := map[string]string{}
		for _, m := range docRow.FindAllStringSubmatch(doc[h[1]:end], -1) {
			rows[m[1]] = m[2]
		}
		name := doc[h[2]:h[3]]
		if out[name] != nil {
			t.Errorf("docs/kernels.md has %s twice", name)
		}
		out[name] = rows
	}
	return out
}

// declared is the union over a kernel's forms of what it declares.
func declared(t *testing.T, name string) (bindings, constants, params []string) {
	t.Helper()
	add := func(list []string, s string) []string {
		if slices.Contains(list, s) {
			return list
		}
		return append(list, s)
	}
	for _, s := range specs(name, ggml.F32) {
		k, err := Build(s)
		if err != nil {
			t.Fatal(err)
		}
		d, err := program.ParseWGSL(k.Wgsl)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range k.Slots {
			if s.Access != program.Access_UNIFORM {
				bindings = add(bindings, s.Name)
			}
		}
		for _, f := range d.Constants {
			constants = add(constants, f.Name)
		}
		for p := range k.Params {
			params = add(params, p)
		}
	}
	return bindings, constants, params
}

// TestDocs: every kernel has a section in docs/kernels.md and the reverse, and its table names what the WGSL declares.
func TestDocs(t *testing.T) {
	docs := docTables(t)
	for name := range docs {
		if Ref(name) == nil {
			t.Errorf("docs/kernels.md: there is no kernel %s", name)
		}
	}
	for _, name := range Names() {
		rows := docs[name]
		if rows == nil {
			t.Errorf("docs/kernels.md has no section %s", name)
			continue
		}
		bindings, constants, params := declared(t, name)
		for what, want := range map[string][]string{"bindings": bindings, "constants": constants, "params": params} {
			var have []string
			for _, m := range docName.FindAllStringSubmatch(rows[what], -1) {
				have = append(have, m[1])
			}
			slices.Sort(have)
			slices.Sort(want)
			if !slices.Equal(have, want) {
				t.Errorf("docs/kernels.md: %s: have %s %v, the WGSL has %v", name, what, have, want)
			}
		}
		for what, values := range allChoices[name] {
			if list := what + ": " + strings.Join(values, ", "); !strings.Contains(rows["choices"], list) {
				t.Errorf("docs/kernels.md: %s: have choices %q, want %q in it", name, rows["choices"], list)
			}
		}
		for _, what := range []string{"grid", "cost", "limits"} {
			if strings.TrimSpace(rows[what]) == "" {
				t.Errorf("docs/kernels.md: %s: no %s", name, what)
			}
		}
	}
}
