package tokenizer

import (
	"fmt"
	"slices"
)

// endNames are the tokens that end generation by their name, in any
// vocabulary (llama.cpp's list of end-of-generation tokens).
var endNames = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
	"<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
	"<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>",
	"<｜end▁of▁sentence｜>", "[e~[",
}

// named are tokens that a file names by key, or else by their text. Those that
// are found by their text are control tokens, whatever type the file gives.
var named = []struct {
	keys  []string
	names []string
	end   bool
}{
	{keys: []string{keyEOS}, end: true},
	{keys: []string{"tokenizer.ggml.eot_token_id"}, end: true}, // its names are all endNames
	{keys: []string{"tokenizer.ggml.eom_token_id"}, end: true},
	{
		[]string{"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"},
		[]string{"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>"},
		false,
	},
	{
		[]string{"tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"},
		[]string{"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>"},
		false,
	},
	{
		[]string{"tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"},
		[]string{"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>"},
		false,
	},
	{
		[]string{"tokenizer.ggml.fim_pad_token_id"},
		[]string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"},
		true,
	},
	{
		[]string{"tokenizer.ggml.fim_rep_token_id"},
		[]string{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"},
		true,
	},
	{[]string{"tokenizer.ggml.fim_sep_token_id"}, []string{"<|file_sep|>"}, true},
}

// readSpecial reads which tokens begin and end a text, and corrects the types
// of those that are control tokens by their name, as llama.cpp does.
func (t *Tokenizer) readSpecial(md Metadata) error {
	var err error
	if t.bos, err = readID(md, keyBOS, len(t.tokens)); err != nil {
		return err
	}
	if t.eos, err = readID(md, keyEOS, len(t.tokens)); err != nil {
		return err
	}
	if t.unknown, err = readID(md, keyUNK, len(t.tokens)); err != nil {
		return err
	}
	add, err := readBool(md, keyAddBOS, t.rules.addBOS)
	if err != nil {
		return err
	}
	t.addBOS = add || t.rules.forceBOS
	if t.addBOS && t.bos == none {
		return fmt.Errorf("tokenizer: %s: have none, want the token that this model's prompts begin with: "+
			"set it, or %s to false", keyBOS, keyAddBOS)
	}
	return t.readEnds(md)
}

func (t *Tokenizer) readEnds(md Metadata) error {
	for _, n := range named {
		id, err := t.namedToken(md, n.keys, n.names)
		if err != nil {
			return err
		}
		if id != none && n.end {
			t.ends = append(t.ends, id)
		}
	}
	// Gemma has </s> as a tag of HTML.
	_, gemma := t.ids["<|tool_response>"]
	for _, name := range endNames {
		id, ok := t.ids[name]
		if !ok {
			continue
		}
		if gemma && name == "</s>" {
			t.types[id] = Normal
			continue
		}
		t.types[id] = Control
		t.ends = append(t.ends, id)
	}
	slices.Sort(t.ends)
	t.ends = slices.Compact(t.ends)
	return nil
}

// namedToken finds a token by the first key that the file has, else by the
// first name that the vocabulary has.
func (t *Tokenizer) namedToken(md Metadata, keys, names []string) (int32, error) {
	for _, key := range keys {
		if id, err := readID(md, key, len(t.tokens)); err != nil || id != none {
			return id, err
		}
	}
	for _, name := range names {
		if id, ok := t.ids[name]; ok {
			t.types[id] = Control
			return id, nil
		}
	}
	return none, nil
}
