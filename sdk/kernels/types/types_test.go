package types

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// supported is every type with a GPU form.
func supported() []ggml.Type {
	var types []ggml.Type
	for t := ggml.Type(0); t < 256; t++ {
		if _, ok := ggml.Form(t); ok {
			types = append(types, t)
		}
	}
	return types
}

func TestEveryFormHasASnippet(t *testing.T) {
	files, err := fs.Glob(snippets, "*.wgsl")
	if err != nil {
		t.Fatal(err)
	}
	types := supported()
	for _, typ := range types {
		if _, ok := Source(typ); !ok {
			t.Errorf("%v has a GPU form but no snippet", typ)
		}
	}
	if len(files) != len(types) {
		t.Errorf("have %d snippets, want %d: one per type with a form", len(files), len(types))
	}
	for _, typ := range []ggml.Type{ggml.I32, ggml.IQ1_S, 999} {
		if _, ok := Source(typ); ok {
			t.Errorf("%v has a snippet but no form", typ)
		}
	}
}

// TestEveryPieceIsUsed: what lib/ has, a snippet or a piece includes.
func TestEveryPieceIsUsed(t *testing.T) {
	used := map[string]bool{}
	var pieces []string
	for _, pattern := range []string{"*.wgsl", "lib/*.wgsl"} {
		files, err := fs.Glob(snippets, pattern)
		if err != nil {
			t.Fatal(err)
		}
		pieces = files
		for _, name := range files {
			raw, _ := snippets.ReadFile(name)
			for _, m := range include.FindAllStringSubmatch(string(raw), -1) {
				used[m[1]] = true
			}
		}
	}
	for _, name := range pieces {
		if !used[name] {
			t.Errorf("nothing includes %s", name)
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	if src, err := expand("lib/none.wgsl"); err == nil {
		t.Errorf("have %q of a file that is not there", src)
	}
}

const (
	wantLoad  = "fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {"
	wantFetch = "fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {"
	wantDot   = "fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {"
)

func TestSnippets(t *testing.T) {
	for _, typ := range supported() {
		t.Run(typ.String(), func(t *testing.T) {
			src, _ := Source(typ)
			for _, want := range []string{wantLoad, wantFetch, wantDot} {
				if strings.Count(src, want) != 1 {
					t.Errorf("want exactly one %q", want)
				}
			}
			if !strings.HasPrefix(src, "// "+typ.String()) || !strings.Contains(src, "Plane 0:") {
				t.Error("the head comment should give the type, its formula and its planes")
			}
			if strings.Contains(src, "$") || strings.Contains(src, "//!") {
				t.Error("an include is left, or a name that it should fill")
			}
			form, _ := ggml.Form(typ)
			for i := range 4 {
				described := strings.Contains(src, fmt.Sprintf("Plane %d:", i))
				read := regexp.MustCompile(`\bp\.` + "xyzw"[i:i+1] + `\b`).MatchString(src)
				if want := i < form.PlaneCount(); described != want || read != want {
					t.Errorf("plane %d: described %v, read %v, want %v", i, described, read, want)
				}
			}
			for _, name := range strays(src) {
				t.Errorf("%s is neither declared in a function, nor prefixed T_, nor plain WGSL", name)
			}
		})
	}
}

// builtins are the WGSL words that snippets may use: no f16, no loops, nothing
// that this wgpu lacks.
var builtins = strings.Fields(`fn struct const let var return array vec2 vec3 vec4 f32 u32 i32 bool
	bitcast select fma unpack2x16float extractBits`)

var (
	comment = regexp.MustCompile(`//[^\n]*`)
	// A name, but neither a number's suffix nor a member or swizzle.
	word     = regexp.MustCompile(`(^|[^\w.])([A-Za-z_]\w*)`)
	global   = regexp.MustCompile(`(?m)^(?:fn|const|override|alias|struct|var(?:<\w+>)?)\s+(\w+)`)
	declared = regexp.MustCompile(`(?:\blet\s+|\bvar\s+|[({,]\s*)(\w+)\s*(?::|=)`)
)

// strays lists the names in src that would clash with, or depend on, the
// including kernel.
func strays(src string) []string {
	src = comment.ReplaceAllString(src, "")
	var found []string
	for _, m := range global.FindAllStringSubmatch(src, -1) {
		if !strings.HasPrefix(m[1], "T_") {
			found = append(found, m[1])
		}
	}
	locals := []string{"T"}
	for _, m := range declared.FindAllStringSubmatch(src, -1) {
		locals = append(locals, m[1])
	}
	for _, m := range word.FindAllStringSubmatch(src, -1) {
		name := m[2]
		known := strings.HasPrefix(name, "T_") || slices.Contains(builtins, name) || slices.Contains(locals, name)
		if !known && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

func TestStrays(t *testing.T) {
	for _, c := range []struct {
		src  string
		want []string
	}{
		{"fn T_a(p: u32) -> u32 { let q = T[p].x; return q + 0x1fu; }", nil},
		{"fn helper(p: u32) -> u32 { return p; }", []string{"helper"}},
		{"const K: u32 = 1u;\nfn T_a() -> u32 { return K; }", []string{"K"}},
		{"fn T_a() -> f32 { return eps; } // a comment", []string{"eps"}},
		{"fn T_a() -> f16 { return dot4(TT); }", []string{"f16", "dot4", "TT"}},
	} {
		if have := strays(c.src); !slices.Equal(have, c.want) {
			t.Errorf("%s: have %v, want %v", c.src, have, c.want)
		}
	}
}
