package synth

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
)

// dims are the shapes of tensors in words: products of metadata values (see sizes) and numbers. Where a name has several,
// the layer's kind decides. The table is of llama.cpp's tensors; TestDims holds golden files and made ones against it.
var dims = map[string]map[string][]string{
	"lfm2moe": {
		"token_embd.weight": {"H V"}, "token_embd_norm.weight": {"H"}, "attn_norm.weight": {"H"}, "ffn_norm.weight": {"H"},
		"shortconv.in_proj.weight": {"H 3*H"}, "shortconv.out_proj.weight": {"H H"}, "shortconv.conv.weight": {"taps H"},
		"attn_q.weight": {"H H"}, "attn_k.weight": {"H H/heads*kv"}, "attn_v.weight": {"H H/heads*kv"}, "attn_output.weight": {"H H"},
		"attn_q_norm.weight": {"H/heads"}, "attn_k_norm.weight": {"H/heads"},
		"ffn_gate.weight": {"H dense"}, "ffn_up.weight": {"H dense"}, "ffn_down.weight": {"dense H"},
		"ffn_gate_inp.weight": {"H E"}, "exp_probs_b.bias": {"E"},
		"ffn_gate_exps.weight": {"H F E"}, "ffn_up_exps.weight": {"H F E"}, "ffn_down_exps.weight": {"F H E"},
	},
	"qwen35moe": {
		"token_embd.weight": {"H V"}, "output.weight": {"H V"}, "output_norm.weight": {"H"}, "attn_norm.weight": {"H"}, "post_attention_norm.weight": {"H"},
		"attn_qkv.weight": {"H 2*128*groups+128*rank"}, "attn_gate.weight": {"H 128*rank"}, "ssm_conv1d.weight": {"4 2*128*groups+128*rank"},
		"ssm_alpha.weight": {"H rank"}, "ssm_beta.weight": {"H rank"}, "ssm_a": {"rank"}, "ssm_dt.bias": {"rank"}, "ssm_norm.weight": {"128"}, "ssm_out.weight": {"128*rank H"},
		"attn_q.weight": {"H 2*dim*heads"}, "attn_k.weight": {"H dim*kv"}, "attn_v.weight": {"H dim*kv"}, "attn_output.weight": {"dim*heads H"},
		"attn_q_norm.weight": {"dim"}, "attn_k_norm.weight": {"dim"},
		"ffn_gate_inp.weight": {"H E"}, "ffn_gate_exps.weight": {"H F E"}, "ffn_up_exps.weight": {"H F E"}, "ffn_down_exps.weight": {"F H E"},
		"ffn_gate_inp_shexp.weight": {"H"}, "ffn_gate_shexp.weight": {"H shared"}, "ffn_up_shexp.weight": {"H shared"}, "ffn_down_shexp.weight": {"shared H"},
	},
	"gemma4": {
		"token_embd.weight": {"H V"}, "output_norm.weight": {"H"}, "rope_freqs.weight": {"dim/2"},
		"attn_norm.weight": {"H"}, "post_attention_norm.weight": {"H"}, "ffn_norm.weight": {"H"}, "post_ffw_norm.weight": {"H"},
		"post_ffw_norm_1.weight": {"H"}, "post_ffw_norm_2.weight": {"H"}, "pre_ffw_norm_2.weight": {"H"},
		"attn_q.weight": {"H dim*heads", "H swa*heads"}, "attn_k.weight": {"H dim*kv", "H swa*kv"}, "attn_v.weight": {"H swa*kv"},
		"attn_output.weight": {"dim*heads H", "swa*heads H"}, "attn_q_norm.weight": {"dim", "swa"}, "attn_k_norm.weight": {"dim", "swa"},
		"ffn_gate.weight": {"H dense"}, "ffn_up.weight": {"H dense"}, "ffn_down.weight": {"dense H"},
		"ffn_gate_inp.weight": {"H E"}, "ffn_gate_inp.scale": {"H"}, "ffn_gate_up_exps.weight": {"H 2*F E"}, "ffn_down_exps.weight": {"F H E"},
		"ffn_down_exps.scale": {"E"}, "layer_output_scale.weight": {"1"},
	},
	"bailingmoe3": {
		"token_embd.weight": {"H V"}, "output.weight": {"H V"}, "output_norm.weight": {"H"}, "attn_norm.weight": {"H"}, "ffn_norm.weight": {"H"},
		"attn_q.weight": {"H 128*heads", "H heads*mlakey"}, "attn_k.weight": {"H 128*heads"}, "attn_v.weight": {"H 128*heads"},
		"ssm_conv1d_q.weight": {"4 1 128*heads"}, "ssm_conv1d_k.weight": {"4 1 128*heads"}, "ssm_conv1d_v.weight": {"4 1 128*heads"},
		"ssm_f_a.weight": {"H 128*heads"}, "ssm_g_a.weight": {"H 128*heads"}, "ssm_beta.weight": {"H heads"}, "ssm_a": {"1 heads"},
		"ssm_dt.bias": {"128*heads"}, "ssm_norm.weight": {"128"}, "attn_output.weight": {"128*heads H", "heads*mlavalue H"},
		"attn_kv_a_mqa.weight": {"H latent+rot"}, "attn_kv_a_norm.weight": {"latent"}, "attn_k_b.weight": {"mlakey-rot latent heads"},
		"attn_v_b.weight": {"latent mlavalue heads"}, "attn_gate.weight": {"H heads"},
		"ffn_gate.weight": {"H dense"}, "ffn_up.weight": {"H dense"}, "ffn_down.weight": {"dense H"},
		"ffn_gate_inp.weight": {"H E"}, "exp_probs_b.bias": {"E"}, "ffn_gate_exps.weight": {"H F E"}, "ffn_up_exps.weight": {"H F E"}, "ffn_down_exps.weight": {"F H E"},
		"ffn_gate_shexp.weight": {"H shared"}, "ffn_up_shexp.weight": {"H shared"}, "ffn_down_shexp.weight": {"shared H"},
		"nextn.eh_proj.weight": {"2*H H"}, "nextn.enorm.weight": {"H"}, "nextn.hnorm.weight": {"H"}, "layer_output_norm.weight": {"H"},
	},
}

// sizes names the keys that dims speaks of.
var sizes = map[string]string{
	"H": "embedding_length", "heads": "attention.head_count", "dense": "feed_forward_length", "E": "expert_count", "F": "expert_feed_forward_length",
	"shared": "expert_shared_feed_forward_length", "taps": "shortconv.l_cache", "groups": "ssm.group_count", "rank": "ssm.time_step_rank",
	"dim": "attention.key_length", "swa": "attention.key_length_swa", "latent": "attention.kv_lora_rank", "rot": "rope.dimension_count",
	"mlakey": "attention.key_length_mla", "mlavalue": "attention.value_length_mla",
}

var word = regexp.MustCompile(`[A-Za-z]+`)

// shape works out one of dims' entries for a layer of f.
func shape(f *gguf.File, arch, words string, layer int) (out []uint64, err error) {
	for _, term := range strings.Fields(words) {
		term = word.ReplaceAllStringFunc(term, func(name string) string { return fmt.Sprint(sizeOf(f, arch, name, layer)) })
		n, sum := 0, 0
		for rest := term; rest != ""; {
			// Products and quotients from left to right, after + or -.
			end := strings.IndexAny(rest[1:], "+-") + 1
			if end == 0 {
				end = len(rest)
			}
			if n, err = product(strings.TrimPrefix(rest[:end], "+")); err != nil {
				return nil, err
			}
			sum, rest = sum+n, rest[end:]
		}
		out = append(out, uint64(sum))
	}
	return out, nil
}

// product works out a term of numbers, * and /, which may begin with a minus.
func product(term string) (int, error) {
	value, op := 1, byte('*')
	for term != "" {
		end := strings.IndexAny(term, "*/")
		if end < 0 {
			end = len(term)
		}
		var n int
		if _, err := fmt.Sscan(term[:end], &n); err != nil {
			return 0, fmt.Errorf("%q: %v", term, err)
		}
		if op == '*' {
			value *= n
		} else {
			value /= n
		}
		if end == len(term) {
			break
		}
		op, term = term[end], term[end+1:]
	}
	return value, nil
}

func sizeOf(f *gguf.File, arch, name string, layer int) int {
	switch name {
	case "V":
		v, _ := f.Metadata.Value("tokenizer.ggml.tokens")
		return len(v.([]string))
	case "kv":
		v, _ := f.Metadata.Value(arch + ".attention.head_count_kv")
		if all, ok := v.([]int32); ok {
			return int(all[layer])
		}
		return int(v.(uint32))
	}
	v, _ := f.Metadata.Value(arch + "." + sizes[name])
	n, _ := v.(uint32)
	return int(n)
}

func checkDims(t *testing.T, f *gguf.File, arch string) {
	t.Helper()
	for _, tensor := range f.Tensors {
		layer, name := 0, tensor.Name
		if m := inBlock.FindStringSubmatch(name); m != nil {
			fmt.Sscan(m[1], &layer)
			name = m[2]
		}
		var want []string
		found := false
		for _, words := range dims[arch][name] {
			d, err := shape(f, arch, words, layer)
			if err != nil {
				t.Fatal(err)
			}
			found = found || slices.Equal(d, tensor.Dims)
			want = append(want, fmt.Sprint(d))
		}
		if !found {
			t.Errorf("tensor %s: have %v, want %s", tensor.Name, tensor.Dims, strings.Join(want, " or "))
		}
	}
}

func TestDims(t *testing.T) {
	for _, g := range goldenFiles {
		t.Run("golden "+g.arch+" "+g.file, func(t *testing.T) { checkDims(t, golden(t, g.arch+"/"+g.file+".gguf"), g.arch) })
	}
	for _, s := range shapes {
		t.Run(s.Arch+" "+s.Name, func(t *testing.T) {
			_, f := parsed(t, Options{Arch: s.Arch, Shape: s.Name, Type: "q4_k_m", MTP: s.Arch == "bailingmoe3"})
			checkDims(t, f, s.Arch)
		})
	}
}
