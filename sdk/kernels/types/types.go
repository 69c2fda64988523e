// Package types holds a WGSL snippet per ggml type: how a kernel reads one unit
// (32 consecutive values of a row) of a weight in its GPU form. The form itself
// is defined, packed and unpacked in sdk/ggml; the kernels that include the
// snippets lie in sdk/kernels. Start with q4_0.wgsl.
//
// A snippet defines a struct and three functions, and helpers beside them:
//
//	struct T_raw
//	fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8>
//	fn T_fetch(p: vec4<u32>, g: u32) -> T_raw
//	fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32
//
// T_load is the 32 values of unit g, equal to ggml's own float32 result. T_fetch
// is the memory that holds them as it is: a kernel fetches many units before it
// uses one, so that their loads are in flight at once. T_dot is the dot product
// of a fetched unit g with x, in natural order, summed in f32 with the scale
// taken out of the sum. p holds the starts of the planes in T, counted in
// vec4<u32>; unused components are not read.
//
// T stands for the binding, a var<storage, read> of array<vec4<u32>> which the
// including kernel declares, and the prefix T_ for its weight slot: whoever
// includes a snippet replaces both as whole identifiers. Nothing else is named
// at module scope, so a kernel may include several snippets, or one twice.
//
// What several types have in common lies in lib/: a line //!include lib/word.wgsl
// is replaced by that file, with //!include lib/nibbles.wgsl scale T_half(w.d, g)
// the words behind scale stand for each $scale in it.
package types

import (
	"embed"
	"errors"
	"regexp"
	"strings"

	"github.com/sluicehost/sluice/sdk/ggml"
)

//go:embed *.wgsl lib/*.wgsl
var snippets embed.FS

// Source is the snippet of t, or false where no kernel can read t. There is one
// for every type that ggml.Form knows.
func Source(t ggml.Type) (string, bool) {
	src, err := expand(strings.ToLower(t.String()) + ".wgsl")
	return src, err == nil
}

var include = regexp.MustCompile(`(?m)^//!include (\S+)(?: (\w+) (.+))?$`)

// expand is the text of a file and of the pieces that it includes.
func expand(name string) (string, error) {
	raw, err := snippets.ReadFile(name)
	out := include.ReplaceAllStringFunc(string(raw), func(line string) string {
		m := include.FindStringSubmatch(line)
		text, failed := expand(m[1])
		err = errors.Join(err, failed)
		if m[2] != "" {
			text = strings.ReplaceAll(text, "$"+m[2], m[3])
		}
		return strings.TrimSuffix(text, "\n")
	})
	return out, err
}
