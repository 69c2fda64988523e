package kernels

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sources is every WGSL file of the library by path.
func sources(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(library, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := library.ReadFile(name)
		out[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryKernelHasARef(t *testing.T) {
	var files []string
	for name := range sources(t) {
		if path.Dir(name) == "." {
			files = append(files, strings.TrimSuffix(name, ".wgsl"))
		}
	}
	slices.Sort(files)
	if !slices.Equal(files, Names()) {
		t.Errorf("have files %v, references %v", files, Names())
	}
	for _, name := range Names() {
		if loopsOf[name] == nil {
			t.Errorf("%s has no loop formula", name)
		}
	}
}

func TestEveryPieceIsUsed(t *testing.T) {
	all := sources(t)
	used := map[string]bool{}
	for _, src := range all {
		for _, line := range directive.FindAllString(src, -1) {
			f := strings.Fields(line)
			switch f[0] {
			case "//!include":
				used[f[1]] = true
			case "//!choose":
				what, values := f[1], f[2:]
				if n := len(values); n > 2 && values[n-2] == "as" {
					what, values = values[n-1], values[:n-2]
				}
				for _, c := range values {
					used["lib/"+what+"_"+c+".wgsl"] = true
				}
			}
		}
	}
	for name := range all {
		if path.Dir(name) == "lib" && !used[name] {
			t.Errorf("nothing includes %s", name)
		}
	}
}

var (
	bareVar    = regexp.MustCompile(`^\s*var (\w+): [^=]*;`)
	loopHead   = regexp.MustCompile(`\bfor \(`)
	dynamicEnd = regexp.MustCompile(`\bconst \w+\s*:\s*array`)
)

// TestLoopVariables: the WGSL compiler of the 0.19 line gives a variable without an initial value its zero once per
// function, not once per pass of the loop it is declared in. Such a variable must be set in the next statement.
func TestLoopVariables(t *testing.T) {
	for name, src := range sources(t) {
		for _, line := range unsetInLoop(src) {
			t.Errorf("%s: %q keeps its value from pass to pass: set it, or give it an initial value", name, strings.TrimSpace(line))
		}
		if dynamicEnd.MatchString(src) {
			t.Errorf("%s: a const array, which can't be indexed by a variable", name)
		}
	}
}

// unsetInLoop lists the lines that declare a variable inside a loop without a value and without setting it next.
func unsetInLoop(src string) (bad []string) {
	var opened []bool // of each open brace: is it a loop's?
	lines := strings.Split(src, "\n")
	for i, line := range lines {
		line, _, _ = strings.Cut(line, "//")
		if m := bareVar.FindStringSubmatch(line); m != nil && slices.Contains(opened, true) {
			set := regexp.MustCompile(`^\s*(for \([^{]*\) \{ )?` + m[1] + `(\[\w+\])? = `)
			if i+1 == len(lines) || !set.MatchString(lines[i+1]) {
				bad = append(bad, line)
			}
		}
		loop := loopHead.MatchString(line)
		for _, c := range line {
			switch c {
			case '{':
				opened = append(opened, loop)
				loop = false
			case '}':
				if len(opened) > 0 {
					opened = opened[:len(opened)-1]
				}
			}
		}
	}
	return bad
}

func TestUnsetInLoop(t *testing.T) {
	const src = `fn main() {
  var outside: u32;
  for (var i = 0u; i < 4u; i++) {
    var set: array<f32, 4>;
    for (var j = 0u; j < 4u; j++) { set[j] = 0.0; }
    if (i > 0u) {
      var unset: f32;
    }
    var value = 0.0;
    var plain: f32;
    plain = 1.0;
  }
  var after: u32;
}`
	if have := unsetInLoop(src); len(have) != 1 || !strings.Contains(have[0], "unset") {
		t.Errorf("have %q, want the line of unset", have)
	}
}
