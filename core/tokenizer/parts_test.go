package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// cutText cuts a text into parts at random characters, plain as the coin falls.
func cutText(rnd *rand.Rand, text string, plain func() bool) (parts []Part) {
	for text != "" {
		rs := []rune(text)
		n := len(string(rs[:1+rnd.IntN(min(len(rs), 12))]))
		parts = append(parts, Part{text[:n], plain()})
		text = text[n:]
	}
	return parts
}

// TestEncodePartsIsEncode: parts that are all trusted are one text, and so are
// parts without special tokens however they are cut.
func TestEncodePartsIsEncode(t *testing.T) {
	rnd := random(t)
	for _, f := range testFamilies {
		t.Run(f.name, func(t *testing.T) {
			tok := newTest(t, testVocabulary(t, f.model, f.pre, 250))
			for range 500 {
				text := strings.ToValidUTF8(randomText(rnd, 80), "")
				want := tok.Encode(text, Options{ParseSpecial: true})
				if have := tok.EncodeParts(cutText(rnd, text, func() bool { return false })); !slices.Equal(have, want) {
					t.Fatalf("%q trusted: have %v, want %v", text, have, want)
				}
				if slices.ContainsFunc(want, func(id int32) bool { return tok.marksText(id) }) {
					continue
				}
				if have := tok.EncodeParts(cutText(rnd, text, func() bool { return rnd.IntN(2) == 0 })); !slices.Equal(have, want) {
					t.Fatalf("%q cut: have %v, want %v", text, have, want)
				}
			}
		})
	}
}

// marksText is whether a token is special and no spelling.
func (t *Tokenizer) marksText(id int32) bool {
	return (t.types[id].hidden() || t.types[id] == UserDefined) && !t.isSpelling(id)
}

// TestEncodePartsSafe: special tokens come only of trusted parts, also where a
// message completes what the template has begun.
func TestEncodePartsSafe(t *testing.T) {
	rnd := random(t)
	for _, f := range testFamilies {
		t.Run(f.name, func(t *testing.T) {
			tok := newTest(t, testVocabulary(t, f.model, f.pre, 250))
			for _, s := range specialTokens {
				for cut := range len(s.text) {
					parts := []Part{{s.text[:cut], false}, {s.text[cut:], true}, {"x", false}}
					ids := tok.EncodeParts(parts)
					if have := tok.Decode(ids, true); have != s.text+"x" {
						t.Fatalf("%v: have %q back", parts, have)
					}
					for _, id := range ids {
						if tok.tokens[id] == s.text && len(s.text) > 1 {
							t.Errorf("%v: have the token %q", parts, s.text)
						}
					}
				}
			}
			for range 300 {
				message := specialTokens[rnd.IntN(len(specialTokens))].text + randomText(rnd, 10)
				ids := tok.EncodeParts([]Part{{"<|im_end|>", false}, {message, true}, {"<|im_end|>", false}})
				end := tok.ids["<|im_end|>"]
				if len(ids) < 2 || ids[0] != end || ids[len(ids)-1] != end {
					t.Fatalf("%q: have %v, want the template's tokens around it", message, ids)
				}
				checkPlain(t, tok, ids[1:len(ids)-1])
			}
		})
	}
}

// FuzzEncodeParts: whatever the message, its text comes back and no special
// token comes of it.
func FuzzEncodeParts(f *testing.F) {
	f.Add("<|im_end|>", "<think>", uint8(0))
	f.Add("aXa<king!", ">>>\n\n\n", uint8(3))
	f.Add("im_end|>", "<t", uint8(2))
	var toks []*Tokenizer
	for _, fam := range testFamilies {
		toks = append(toks, newTest(f, testVocabulary(f, fam.model, fam.pre, 250)))
	}
	f.Fuzz(func(t *testing.T, message, other string, family uint8) {
		tok := toks[int(family)%len(toks)]
		checkPlain(t, tok, tok.EncodeParts([]Part{{message, true}, {other, true}}))
		ids := tok.EncodeParts([]Part{{"<|im_end|>", false}, {message, true}, {"<|", false}, {other, true}})
		checkPlain(t, tok, ids[1:])
		want := "<|im_end|>" + string([]rune(message)) + "<|" + string([]rune(other))
		if !tok.rules.byteLevel {
			want = strings.ReplaceAll(want, underscore, " ")
		}
		if have := tok.Decode(ids, true); have != want {
			t.Fatalf("have %q, want %q", have, want)
		}
	})
}
