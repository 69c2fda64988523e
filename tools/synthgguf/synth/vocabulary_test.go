package synth

import (
	"testing"

	"github.com/sluicehost/sluice/core/tokenizer"
)

// The tokenizer takes the made-up vocabularies, and decoding undoes encoding.
func TestVocabulary(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.Arch+" "+s.Name, func(t *testing.T) {
			_, f := parsed(t, Options{Arch: s.Arch, Shape: s.Name, Type: "q8_0", Layers: s.Lead + 1})
			tok, err := tokenizer.New(f.Metadata)
			if err != nil {
				t.Fatal(err)
			}
			if tok.VocabSize() != s.Vocab {
				t.Errorf("have %d tokens, want %d", tok.VocabSize(), s.Vocab)
			}
			for _, text := range []string{" bakelu dito", "Hello, world! 12345\n\n\tx", "naïve 漢字 🙂", "  two  spaces ", "it's <think> here"} {
				if have := tok.Decode(tok.Encode(text, tokenizer.Options{Plain: true}), true); have != text {
					t.Errorf("have %q back, want %q", have, text)
				}
			}
			// Words are tokens, and so the text of any of them.
			for id := int32(400); id < int32(s.Vocab)-20; id += int32(s.Vocab) / 50 {
				if text := tok.Decode([]int32{id}, false); text == "" {
					t.Errorf("token %d has no text", id)
				}
			}
			if len(tok.Encode(" baba", tokenizer.Options{})) > 2 {
				t.Errorf("have %v for \" baba\", want at most two tokens", tok.Encode(" baba", tokenizer.Options{}))
			}
			if eos, ok := tok.EOS(); !ok || tok.Type(eos) != tokenizer.Control {
				t.Errorf("have end token %d, want a control token", eos)
			}
			if _, ok := tok.BOS(); tok.AddBOS() && !ok {
				t.Error("a BOS is to be added and there is none")
			}
		})
	}
}
