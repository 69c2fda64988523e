package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// rules are what sets one family's tokenizer apart from another's.
type rules struct {
	// split gives the length in bytes of the first pre-token of a text that is
	// not empty. Merges never cross the border between two pre-tokens.
	split func(s string) int
	// byteLevel: merges run over bytes, written as GPT-2 writes them. Otherwise
	// they run over characters, a space is ▁, and a character that the
	// vocabulary lacks becomes <0xXX> tokens.
	byteLevel bool
	// whole says whether a pre-token that is itself a token stays whole, though
	// merges might give another result.
	whole func(pretoken string) bool
	// addBOS holds where the file says nothing of add_bos_token.
	addBOS bool
	// forceBOS: a BOS is added even if the file says not to.
	forceBOS bool
}

// families maps the names of tokenizer.ggml.pre to rules, under every name
// that llama.cpp gives the same rules. Another family is another entry.
var families = []struct {
	names []string
	rules rules
}{
	{
		[]string{"lfm2", "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "jina-v5-nano"},
		rules{split: words{digits: 3}.next, byteLevel: true, whole: always, addBOS: true},
	},
	{
		[]string{"qwen35"},
		rules{split: words{digits: 1, marks: true}.next, byteLevel: true, whole: never},
	},
	{
		[]string{
			"bailingmoe2", "bailingmoe", "llada-moe",
			"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2",
		},
		rules{split: words{digits: 1}.next, byteLevel: true, whole: never},
	},
	{
		[]string{"gemma4"},
		rules{split: lines, whole: newlines, addBOS: true, forceBOS: true},
	},
}

// models maps the names of tokenizer.ggml.model to the pre-tokenizer that
// goes with it, or to "" where tokenizer.ggml.pre names one.
var models = map[string]string{"gpt2": "", "gemma4": "gemma4"}

func always(string) bool { return true }

func never(string) bool { return false }

// newlines is true of runs of newlines: gemma4 has tokens for them to which no
// merges lead.
func newlines(pretoken string) bool { return pretoken[0] == '\n' }

// readRules finds the rules that the file asks for.
func readRules(md Metadata) (rules, error) {
	model, err := readString(md, keyModel, "one of "+modelNames())
	if err != nil {
		return rules{}, err
	}
	pre, ok := models[model]
	if !ok {
		return rules{}, unknown(keyModel, model, modelNames())
	}
	if pre == "" {
		if pre, err = readString(md, keyPre, "one of "+preNames()); err != nil {
			return rules{}, err
		}
	}
	for _, f := range families {
		if slices.Contains(f.names, pre) {
			return f.rules, nil
		}
	}
	return rules{}, unknown(keyPre, pre, preNames())
}

func unknown(key, have, want string) error {
	return fmt.Errorf("tokenizer: %s: have %.99q, want one of %s: this tokenizer is not known here", key, have, want)
}

func modelNames() string {
	var names []string
	for name := range models {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func preNames() string {
	var names []string
	for _, f := range families {
		names = append(names, f.names...)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
