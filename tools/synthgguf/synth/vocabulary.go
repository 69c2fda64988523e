package synth

import (
	"fmt"
	"strings"
)

// tokenType is a token's type in tokenizer.ggml.token_type.
const (
	normalToken  int32 = 1
	unknownToken int32 = 2
	controlToken int32 = 3
	userToken    int32 = 4
	byteToken    int32 = 6
)

// vocabulary is a made-up tokenizer: the family's special tokens, every byte or letter, and for the rest of the published
// size words of two-letter syllables. Only syllables merge, so text that is not made of these words costs a token for every
// letter or two, and the file lacks the hundreds of thousands of merges of a trained tokenizer.
type vocabulary struct {
	tokens []string
	types  []int32
	merges []string
	keys   []KV // the family's own
	model  string
}

// syllables are 64, so that three of them and a space make 262144 words.
func syllables() []string {
	var out []string
	for _, c := range "bdfghjklmnprstvz" {
		for _, v := range "aeio" {
			out = append(out, string(c)+string(v))
		}
	}
	return out
}

func (v *vocabulary) add(typ int32, tokens ...string) {
	for _, t := range tokens {
		v.tokens = append(v.tokens, t)
		v.types = append(v.types, typ)
	}
}

// words appends syllables, and syllables and words after a space, up to n tokens.
func (v *vocabulary) words(space string, n int) {
	s := syllables()
	v.add(normalToken, s...)
	for _, x := range s {
		v.merges = append(v.merges, x[:1]+" "+x[1:])
	}
	for _, x := range s {
		v.add(normalToken, space+x)
		v.merges = append(v.merges, space+" "+x)
	}
	for i := 0; len(v.tokens) < n; i++ {
		word := s[i>>6&63] + s[i&63]
		if i >= 1<<12 {
			j := i - 1<<12
			word = s[j>>12&63] + s[j>>6&63] + s[j&63]
		}
		v.add(normalToken, space+word)
	}
}

// id finds a token that must be there.
func (v *vocabulary) id(token string) uint32 {
	for i, t := range v.tokens {
		if t == token {
			return uint32(i)
		}
	}
	panic("BUG: synth: no token " + token)
}

// special says which tokens are not text.
func (v *vocabulary) special() []bool {
	out := make([]bool, len(v.types))
	for i, t := range v.types {
		out[i] = t == controlToken || t == userToken || t == unknownToken
	}
	return out
}

// tokenKey appends a key of the family's own that names a token.
func (v *vocabulary) tokenKey(key, token string) {
	v.keys = append(v.keys, KV{"tokenizer.ggml." + key, v.id(token)})
}

func (v *vocabulary) key(key string, value any) {
	v.keys = append(v.keys, KV{"tokenizer." + key, value})
}

func (v *vocabulary) metadata() []KV {
	out := []KV{{"tokenizer.ggml.model", v.model}}
	rest := []KV{
		{"tokenizer.ggml.tokens", v.tokens},
		{"tokenizer.ggml.token_type", v.types},
		{"tokenizer.ggml.merges", v.merges},
	}
	return append(append(out, rest...), v.keys...)
}

// byteTokens appends a token for each byte as GPT-2 writes them: printable Latin-1 as itself, the others from U+0100 on.
func (v *vocabulary) byteTokens() {
	var printable, others []string
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= 0xa1 && b != 0xad {
			printable = append(printable, string(rune(b)))
		} else {
			others = append(others, string(rune(0x100+len(others))))
		}
	}
	v.add(normalToken, printable...)
	v.add(normalToken, others...)
}

// byteLevel is a vocabulary of byte-level BPE of n tokens, with its special tokens at the beginning or at the end. user
// tells the special tokens that are user-defined.
func byteLevel(pre string, n int, first, last []string, user string) vocabulary {
	const space = "Ġ"
	v := vocabulary{model: "gpt2"}
	special := func(tokens []string) {
		for _, t := range tokens {
			typ := controlToken
			if strings.Contains(user, t) {
				typ = userToken
			}
			v.add(typ, t)
		}
	}
	special(first)
	v.byteTokens()
	v.words(space, n-len(last))
	special(last)
	v.key("ggml.pre", pre)
	return v
}

func lfm2Vocabulary(n int) vocabulary {
	v := byteLevel("lfm2", n, []string{
		"<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|fim_pre|>", "<|fim_mid|>", "<|fim_suf|>", "<|im_start|>", "<|im_end|>",
		"<|tool_list_start|>", "<|tool_list_end|>", "<|tool_call_start|>", "<|tool_call_end|>", "<think>", "</think>",
	}, nil, "<think></think>")
	v.tokenKey("bos_token_id", "<|startoftext|>")
	v.tokenKey("eos_token_id", "<|im_end|>")
	v.tokenKey("padding_token_id", "<|pad|>")
	v.key("ggml.add_bos_token", true)
	v.key("chat_template", "{{ bos_token }}"+chatML+"{% if add_generation_prompt %}<|im_start|>assistant\n<think>{% endif %}")
	return v
}

func qwen35Vocabulary(n int) vocabulary {
	v := byteLevel("qwen35", n, nil, []string{
		"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
		"<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>",
	}, "<tool_call></tool_call><tool_response></tool_response><think></think>")
	v.tokenKey("eos_token_id", "<|im_end|>")
	v.tokenKey("padding_token_id", "<|endoftext|>")
	v.key("ggml.add_bos_token", false)
	v.key("chat_template", chatML+"{% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}{% endif %}")
	return v
}

// chatML is the turns of the families that talk in ChatML.
const chatML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"

func bailingVocabulary(n int) vocabulary {
	v := byteLevel("bailingmoe2", n, nil, []string{
		"<|startoftext|>", "<|endoftext|>", "[CLS]", "[gMASK]", "<|role_end|>", "<role>", "</role>",
		"<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>",
	}, "<role></role><tool_call></tool_call><tool_response></tool_response><think></think>")
	v.tokenKey("bos_token_id", "<|startoftext|>")
	v.tokenKey("eos_token_id", "<|role_end|>")
	v.tokenKey("padding_token_id", "<|endoftext|>")
	v.key("ggml.add_bos_token", false)
	v.key("chat_template", "{% for m in messages %}<role>{{ {'system': 'SYSTEM', 'user': 'HUMAN', 'assistant': 'ASSISTANT'}[m.role] }}</role>{{ m.content }}<|role_end|>{% endfor %}"+
		"{% if add_generation_prompt %}<role>ASSISTANT</role>\n<think>{% if enable_thinking is defined and not enable_thinking %}</think>{% endif %}{% endif %}")
	return v
}

// gemma4Vocabulary is of characters, with a token for each byte of the others. A space is ▁.
func gemma4Vocabulary(n int) vocabulary {
	const space = "▁"
	v := vocabulary{model: "gemma4"}
	v.add(controlToken, "<pad>", "<eos>", "<bos>")
	v.add(unknownToken, "<unk>")
	v.add(controlToken, "<mask>", "[multimodal]", "<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|think|>")
	v.add(userToken, "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>")
	for i := 1; i <= 8; i++ {
		v.add(normalToken, strings.Repeat("\n", i))
	}
	for b := range 256 {
		v.add(byteToken, fmt.Sprintf("<0x%02X>", b))
	}
	v.add(normalToken, space)
	for c := '!'; c <= '~'; c++ {
		v.add(normalToken, string(c))
	}
	v.words(space, n)
	scores := make([]float32, n)
	for i := range scores {
		scores[i] = -float32(i)
		if v.types[i] == controlToken {
			scores[i] = -1000
		}
	}
	v.key("ggml.scores", scores)
	v.tokenKey("bos_token_id", "<bos>")
	v.tokenKey("eos_token_id", "<eos>")
	v.tokenKey("padding_token_id", "<pad>")
	v.tokenKey("unknown_token_id", "<unk>")
	v.key("ggml.add_bos_token", true)
	v.key("chat_template", "{{ bos_token }}{% for m in messages %}<|turn>{% if m.role == 'assistant' %}model{% else %}{{ m.role }}{% endif %}\n{{ m.content | trim }}<turn|>\n{% endfor %}"+
		"{% if add_generation_prompt %}<|turn>model\n{% if not (enable_thinking is defined and enable_thinking) %}<|channel>thought\n<channel|>{% endif %}{% endif %}")
	return v
}
