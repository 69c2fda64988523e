package synth

import (
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// recipe is how real files of one kind choose their matrices' types; everything that is no matrix is F32.
type recipe struct {
	name     string
	fileType uint32 // general.file_type
	matrix   ggml.Type
	over     func(a *arch, name string, layer, blocks int) ggml.Type // exceptions; matrix where it has none
}

var recipes = []recipe{
	{"q4_0", 2, ggml.Q4_0, func(a *arch, name string, _, _ int) ggml.Type {
		if name == a.head {
			return ggml.Q6_K
		}
		return ggml.Q4_0
	}},
	{"q8_0", 7, ggml.Q8_0, func(*arch, string, int, int) ggml.Type { return ggml.Q8_0 }},
	{"q4_k_m", 15, ggml.Q4_K, func(a *arch, name string, layer, blocks int) ggml.Type { return a.mixed(name, layer, blocks) }},
}

func recipeOf(name string) (recipe, error) {
	var names []string
	for _, r := range recipes {
		if r.name == name {
			return r, nil
		}
		names = append(names, r.name)
	}
	return recipe{}, fmt.Errorf("synth: have type %q, want one of %s", name, strings.Join(names, ", "))
}

// typeOf is the type of a matrix with rows of n values. Rows that are no whole number of superblocks take the type that
// llama.cpp falls back to.
func (r *recipe) typeOf(a *arch, name string, layer, blocks int, n uint64) ggml.Type {
	t := r.over(a, name, layer, blocks)
	if n%t.BlockSize() == 0 {
		return t
	}
	switch t {
	case ggml.Q4_K:
		return ggml.Q5_0
	case ggml.Q6_K:
		return ggml.Q8_0
	}
	panic(fmt.Sprintf("BUG: synth: %s: rows of %d values have no %v and nothing to fall back to", name, n, t))
}

// mixedMost is q4_k_m as most files have it.
func mixedMost(name string, _, _ int) ggml.Type {
	switch name {
	case "ffn_down_exps.weight", "output.weight":
		return ggml.Q6_K
	case "attn_qkv.weight", "attn_v.weight", "attn_output.weight":
		return ggml.Q5_K
	}
	return ggml.Q4_K
}

// mixedLing is q4_k_m as Ling's files have it: down projections have more bits in the first and last eighth of the blocks
// and in every third between them, llama.cpp's rule (with which the file comes out within 0.1 % of the published size).
func mixedLing(name string, layer, blocks int) ggml.Type {
	switch name {
	case "attn_v.weight", "attn_v_b.weight", "output.weight":
		return ggml.Q6_K
	case "ffn_down.weight", "ffn_down_exps.weight", "ffn_down_shexp.weight":
		eighth := blocks / 8
		if layer < eighth || layer >= 7*blocks/8 || (layer-eighth)%3 == 2 {
			return ggml.Q6_K
		}
	}
	return ggml.Q4_K
}
