package tokenizer

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzNew reads vocabularies that are nonsense: an error or a tokenizer that
// works, never a panic. tokens and merges are cut at newlines; bits choose
// among families, types and what is missing.
func FuzzNew(f *testing.F) {
	f.Add("a\nb\nab\n<s>", []byte{1, 1, 1, 3}, "a b", "ab<s>a", uint32(3), uint8(0))
	f.Add("▁\nx\n▁x\n<0x41>\n\n<|tool_response>\n</s>", []byte{1, 1, 1, 6, 1, 4, 2}, "▁ x", " xA x", uint32(1), uint8(3))
	f.Add("<t\nt\n<\n<t>", []byte{4, 2, 3, 4}, "< t", "<t><t>>", uint32(9), uint8(2))
	f.Fuzz(func(t *testing.T, tokens string, types []byte, merges, text string, id uint32, bits uint8) {
		names := []string{"lfm2", "qwen35", "bailingmoe2", "gemma4"}
		md := meta{
			keyModel: "gpt2", keyPre: names[bits&3], keyTokens: strings.Split(tokens, "\n"), keyBOS: id % 64, keyUNK: id >> 8,
			keyMerges: strings.FieldsFunc(merges, func(r rune) bool { return r == '\n' }), keyTypes: types, "tokenizer.ggml.eot_token_id": id,
		}
		for i, key := range []string{keyTypes, keyUNK, keyBOS, "tokenizer.ggml.eot_token_id"} {
			if bits>>(2+i)&1 != 0 {
				delete(md, key)
			}
		}
		md[keyAddBOS] = bits&64 != 0
		tok, err := New(md)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "tokenizer: tokenizer.ggml.") {
				t.Fatalf("have %q, want an error that names the key", err)
			}
			return
		}
		for _, o := range []Options{{}, {AddSpecial: true, ParseSpecial: true}, {Plain: true}} {
			ids := tok.Encode(text, o)
			if least := tok.Least(len(text)); len(ids) < least {
				t.Fatalf("Encode(%q): have %d tokens, want at least %d", text, len(ids), least)
			}
			for _, id := range ids {
				if !tok.has(id) {
					t.Fatalf("Encode(%q): have token %d of %d", text, id, tok.VocabSize())
				}
			}
			if o.Plain {
				for _, id := range ids {
					if tok.Type(id).hidden() {
						t.Fatalf("Encode(%q, plain): have the hidden token %q", text, tok.Piece(id))
					}
				}
			}
			checkStream(t, tok, ids, true)
		}
	})
}

// FuzzEncodeDecode encodes and decodes any text, and decodes any ids.
func FuzzEncodeDecode(f *testing.F) {
	f.Add(sample, []byte{1, 2, 200})
	f.Add("<think>\n<s>>>>>", []byte{0xff, 0xfe})
	f.Add("\xf0\x9f▁ \u0301\r\n", []byte{})
	var toks []*Tokenizer
	var slows []slow
	for _, fam := range testFamilies {
		md := testVocabulary(f, fam.model, fam.pre, 250)
		tok := newTest(f, md)
		toks, slows = append(toks, tok), append(slows, newSlow(tok, md))
	}
	f.Fuzz(func(t *testing.T, text string, raw []byte) {
		text = text[:min(len(text), 300)] // the slow encoder is quadratic and worse
		for i, tok := range toks {
			if utf8.ValidString(text) {
				checkRoundTrip(t, tok, text)
			}
			ids := tok.Encode(text, Options{ParseSpecial: true})
			if want := slows[i].encode(string([]rune(text)), true); !slices.Equal(ids, want) {
				t.Fatalf("Encode(%q)\nhave %v\nwant %v", text, ids, want)
			}
			ids = ids[:0]
			for _, b := range raw[:min(len(raw), 50)] {
				ids = append(ids, int32(b)*2)
			}
			checkStream(t, tok, inside(tok, ids), bytes.Contains(raw, []byte{1}))
		}
	})
}

// inside leaves out the ids that are none: Piece has no bytes for them.
func inside(tok *Tokenizer, ids []int32) []int32 {
	var out []int32
	for _, id := range ids {
		if tok.has(id) {
			out = append(out, id)
		}
	}
	return out
}
