// Package kernels is the library's compute shaders: one .wgsl file each, shared
// pieces in lib/, a snippet per ggml type in types/, and a float64 reference
// beside every one. sdk/layer picks and binds them; plugins build kernels of
// their own with the same Build.
//
// A source file is WGSL with four kinds of extra lines, which Build resolves:
//
//	override W: u32 = 64u;       becomes const W: u32 = <Params["W"]>;
//	//!include lib/step.wgsl     is replaced by that file
//	//!choose x plain norm       is replaced by lib/x_plain.wgsl or lib/x_norm.wgsl, by Choices["x"]
//	//!choose x plain norm as y  by lib/y_plain.wgsl or lib/y_norm.wgsl
//	//!type gate from bank       is replaced by the snippet of Types["gate"], reading the binding bank
//	//!each r R: code of $r      is replaced by that code for each $r from 0 to R - 1, a constant; it may be indented
//
// An each without a colon repeats all lines to its //!end. With "m in gate up" $m is each of these words, with
// "m at in gate c.gate up c.up" $m and $at are two of them at a time. An include may fill one name of the file it
// names: //!include lib/products.wgsl of w c.planes has w c.planes for each $of.
// @binding numbers are given anew in the order of appearance.
package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels/types"
	"github.com/sluicehost/sluice/sdk/program"
)

//go:embed *.wgsl lib/*.wgsl
var library embed.FS

// Spec names a kernel and everything its code depends on.
type Spec struct {
	Name    string               // file name without .wgsl
	Choices map[string]string    // by //!choose name
	Types   map[string]ggml.Type // by weight slot
	Params  map[string]uint32    // override constants that differ from the file's own
}

// String is the kernel's name within a program: equal specs, equal names.
func (s Spec) String() string {
	var b strings.Builder
	b.WriteString(s.Name)
	for _, k := range slices.Sorted(maps.Keys(s.Choices)) {
		b.WriteString("." + s.Choices[k])
	}
	var args []string
	for _, k := range slices.Sorted(maps.Keys(s.Types)) {
		args = append(args, k+"="+strings.ToLower(s.Types[k].String()))
	}
	for _, k := range slices.Sorted(maps.Keys(s.Params)) {
		args = append(args, k+"="+strconv.FormatUint(uint64(s.Params[k]), 10))
	}
	if len(args) > 0 {
		b.WriteString("[" + strings.Join(args, " ") + "]")
	}
	return b.String()
}

// Build specializes a kernel of this library.
func Build(s Spec) (*program.Kernel, error) { return BuildFrom(library, s) }

// BuildFrom specializes a kernel whose file lies in files; its includes may
// name the library's lib/ too.
func BuildFrom(files fs.FS, s Spec) (*program.Kernel, error) {
	src, err := expand(files, s, s.Name+".wgsl", 0)
	if err != nil {
		return nil, fmt.Errorf("kernels: %s: %w", s.Name, err)
	}
	params := map[string]uint32{}
	src = specialize(src, s.Params, params)
	if src, err = repeat(src, params); err != nil {
		return nil, fmt.Errorf("kernels: %s: %w", s.Name, err)
	}
	for name := range s.Params {
		if _, ok := params[name]; !ok {
			return nil, fmt.Errorf("kernels: %s: no override constant %s", s.Name, name)
		}
	}
	src = renumber(src)
	decl, err := program.ParseWGSL(src)
	if err != nil {
		return nil, fmt.Errorf("kernels: %s: %w", s.Name, err)
	}
	k := &program.Kernel{Name: s.String(), Wgsl: src, Slots: decl.Slots, ConstantBytes: decl.ConstantBytes,
		Ref: s.Name, Params: params, Types: map[string]uint32{}}
	for slot, t := range s.Types {
		k.Types[slot] = uint32(t)
	}
	return k, nil
}

var directive = regexp.MustCompile(`(?m)^//!.*$`)

// expand resolves the directives of one file, and of those it includes.
func expand(files fs.FS, s Spec, name string, depth int) (string, error) {
	if depth > 8 {
		return "", fmt.Errorf("%s: includes nest deeper than 8", name)
	}
	raw, err := fs.ReadFile(files, name)
	if err != nil && files != fs.FS(library) {
		raw, err = library.ReadFile(name)
	}
	if err != nil {
		return "", err
	}
	var failed error
	out := directive.ReplaceAllStringFunc(string(raw), func(line string) string {
		text, err := resolve(files, s, line, depth)
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %s: %w", name, line, err)
		}
		return text
	})
	return out, failed
}

// resolve gives the text that a directive line stands for.
func resolve(files fs.FS, s Spec, line string, depth int) (string, error) {
	f := strings.Fields(strings.TrimPrefix(line, "//!"))
	switch {
	case len(f) == 0:
	case f[0] == "each" || f[0] == "end":
		return line, nil // repeat's
	case f[0] == "include" && len(f) == 2:
		return expand(files, s, f[1], depth+1)
	case f[0] == "include" && len(f) > 3:
		text, err := expand(files, s, f[1], depth+1)
		if err == nil && !strings.Contains(text, "$"+f[2]) {
			err = fmt.Errorf("%s has no $%s", f[1], f[2])
		}
		return strings.ReplaceAll(text, "$"+f[2], strings.Join(f[3:], " ")), err
	case f[0] == "choose" && len(f) >= 3:
		what, values := f[1], f[2:]
		if n := len(values); n > 2 && values[n-2] == "as" {
			what, values = values[n-1], values[:n-2]
		}
		c := s.Choices[f[1]]
		if !slices.Contains(values, c) {
			return "", fmt.Errorf("have choice %q, want one of %v", c, values)
		}
		return expand(files, s, "lib/"+what+"_"+c+".wgsl", depth+1)
	case f[0] == "type" && len(f) == 4 && f[2] == "from":
		t, ok := s.Types[f[1]]
		if !ok {
			return "", fmt.Errorf("no type given for weight slot %s", f[1])
		}
		src, ok := types.Source(t)
		if !ok {
			return "", fmt.Errorf("no kernel reads ggml type %v", t)
		}
		return rename(src, f[1], f[3]), nil
	}
	return "", fmt.Errorf("not a directive")
}

var typeName = regexp.MustCompile(`\bT(_\w+)?\b`)

// rename gives a type snippet its slot's prefix and its binding's name.
func rename(src, slot, binding string) string {
	return typeName.ReplaceAllStringFunc(src, func(id string) string {
		if id == "T" {
			return binding
		}
		return slot + id[1:]
	})
}

var overrideLine = regexp.MustCompile(`(?m)^override (\w+)\s*:\s*u32\s*=\s*(\d+)u?\s*;`)

// specialize turns override lines into constants and records every value in all.
func specialize(src string, params, all map[string]uint32) string {
	return overrideLine.ReplaceAllStringFunc(src, func(line string) string {
		m := overrideLine.FindStringSubmatch(line)
		v, ok := params[m[1]]
		if !ok {
			def, _ := strconv.ParseUint(m[2], 10, 32)
			v = uint32(def)
		}
		all[m[1]] = v
		return fmt.Sprintf("const %s: u32 = %du;", m[1], v)
	})
}

var eachLine = regexp.MustCompile(`^\s*//!each (\w+(?: \w+)*?) (\w+|in [^:]+)(?::\s*(.*))?$`)

// repeat writes the code of each //!each out: what a driver keeps as a loop, it gives no registers and no loads in flight.
func repeat(src string, params map[string]uint32) (string, error) {
	lines := strings.Split(src, "\n")
	var out []string
	for i := 0; i < len(lines); i++ {
		m := eachLine.FindStringSubmatch(lines[i])
		if m == nil {
			out = append(out, lines[i])
			continue
		}
		body := m[3]
		if body == "" {
			end := blockEnd(lines, i)
			if end < 0 {
				return "", fmt.Errorf("%s: no //!end", strings.TrimSpace(lines[i]))
			}
			body, i = strings.Join(lines[i+1:end], "\n"), end
		}
		passes, err := eachPasses(strings.Fields(m[1]), m[2], params)
		if err != nil {
			return "", fmt.Errorf("//!each %s %s: %w", m[1], m[2], err)
		}
		for _, p := range passes {
			text, err := repeat(p.Replace(body), params)
			if err != nil {
				return "", err
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n"), nil
}

// eachPasses gives for each pass of an each what its names stand for: the numbers below a param, or the words behind in.
func eachPasses(names []string, of string, params map[string]uint32) ([]*strings.Replacer, error) {
	list, given := strings.CutPrefix(of, "in ")
	words := strings.Fields(list)
	if !given {
		n, ok := params[of]
		if !ok || n > maxRepeats {
			return nil, fmt.Errorf("have a param of %d, want at most %d", n, maxRepeats)
		}
		words = nil
		for j := range n {
			words = append(words, strconv.Itoa(int(j)))
		}
	}
	if len(words)%len(names) != 0 {
		return nil, fmt.Errorf("have %d words, want a multiple of %d", len(words), len(names))
	}
	var passes []*strings.Replacer
	for pass := range slices.Chunk(words, len(names)) {
		var pairs []string
		for i, name := range names {
			pairs = append(pairs, "$"+name, pass[i])
		}
		passes = append(passes, strings.NewReplacer(pairs...))
	}
	return passes, nil
}

// maxRepeats keeps a wrong param from filling the memory.
const maxRepeats = 64

// blockEnd is the //!end of the //!each at line i, or -1.
func blockEnd(lines []string, i int) int {
	open := 0
	for j := i; j < len(lines); j++ {
		if m := eachLine.FindStringSubmatch(lines[j]); m != nil && m[3] == "" {
			open++
		}
		if strings.TrimSpace(lines[j]) == "//!end" {
			if open--; open == 0 {
				return j
			}
		}
	}
	return -1
}

var bindingAttr = regexp.MustCompile(`@binding\(\d+\)`)

// renumber counts the bindings from 0 in their order of appearance.
func renumber(src string) string {
	n := -1
	return bindingAttr.ReplaceAllStringFunc(src, func(string) string {
		n++
		return fmt.Sprintf("@binding(%d)", n)
	})
}
