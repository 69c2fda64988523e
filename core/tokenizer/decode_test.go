package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
)

// TestRoundTrip: decode(encode(x)) is x for any Unicode text.
func TestRoundTrip(t *testing.T) {
	rnd := random(t)
	for _, f := range testFamilies {
		t.Run(f.name, func(t *testing.T) {
			tok := newTest(t, testVocabulary(t, f.model, f.pre, 250))
			for range 3000 {
				checkRoundTrip(t, tok, randomText(rnd, 80))
			}
			var all strings.Builder
			for r := rnd.Int32N(16); r < 0x110000; r += 16 {
				if utf8.ValidRune(r) {
					all.WriteRune(r)
				}
			}
			checkRoundTrip(t, tok, all.String())
		})
	}
}

func checkRoundTrip(t *testing.T, tok *Tokenizer, text string) {
	t.Helper()
	want := text
	if !tok.rules.byteLevel {
		want = strings.ReplaceAll(text, underscore, " ")
	}
	for _, o := range []Options{{}, {ParseSpecial: true}, {Plain: true}} {
		ids := tok.Encode(text, o)
		if have := tok.Decode(ids, true); have != want {
			t.Fatalf("%+v: have %.200q, want %.200q", o, have, want)
		}
		if o.Plain {
			checkPlain(t, tok, ids)
		}
	}
}

// checkPlain: no special token came of plain text.
func checkPlain(t *testing.T, tok *Tokenizer, ids []int32) {
	t.Helper()
	for _, id := range ids {
		if tok.Type(id).hidden() || tok.Type(id) == UserDefined && len(tok.Piece(id)) > 1 && strings.TrimSpace(tok.tokens[id]) != "" {
			t.Fatalf("have token %d %q of type %d, want plain pieces", id, tok.Piece(id), tok.Type(id))
		}
	}
}

// TestStream: however the tokens are divided, the parts are valid and make up
// what Decode gives, which is what another decoder makes of the bytes.
func TestStream(t *testing.T) {
	rnd := random(t)
	for _, f := range testFamilies {
		t.Run(f.name, func(t *testing.T) {
			tok := newTest(t, testVocabulary(t, f.model, f.pre, 250))
			for i := range 3000 {
				ids := randomIDs(rnd, tok)
				if i%3 == 0 {
					ids = tok.Encode(randomText(rnd, 20), Options{})
				}
				checkStream(t, tok, ids, rnd.IntN(2) == 0)
			}
		})
	}
}

// randomIDs are tokens in no order, most of them single bytes.
func randomIDs(rnd *rand.Rand, tok *Tokenizer) []int32 {
	ids := make([]int32, rnd.IntN(12))
	for i := range ids {
		ids[i] = rnd.Int32N(int32(len(tok.tokens)))
		if rnd.IntN(3) > 0 {
			ids[i] = tok.atoms.byByte[0x80+rnd.IntN(0x80)]
		}
	}
	return ids
}

func checkStream(t *testing.T, tok *Tokenizer, ids []int32, special bool) {
	t.Helper()
	var raw []byte
	for _, id := range ids {
		if special || !tok.Type(id).hidden() {
			raw = append(raw, tok.Piece(id)...)
		}
	}
	want, err := unicode.UTF8.NewDecoder().Bytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	if have := tok.Decode(ids, special); have != string(want) {
		t.Fatalf("Decode(%v): have %q, want %q of the bytes %x", ids, have, want, raw)
	}
	for cut := 0; cut <= len(ids); cut += 1 + len(ids)/100 { // all of them would take a fuzzer's long inputs too long
		s := tok.Stream(special)
		parts := []string{s.Push(ids[:cut]...), s.Push(ids[cut:]...), s.Flush()}
		checkParts(t, parts, string(want))
	}
	var parts []string
	s := tok.Stream(special)
	for _, id := range ids {
		parts = append(parts, s.Push(id))
		if len(s.rest) > 3 {
			t.Fatalf("have %d bytes waiting, want 3 at most", len(s.rest))
		}
	}
	checkParts(t, append(parts, s.Flush()), string(want))
	if again := s.Flush(); again != "" {
		t.Fatalf("a second Flush: have %q, want nothing", again)
	}
}

func checkParts(t *testing.T, parts []string, want string) {
	t.Helper()
	if have := strings.Join(parts, ""); have != want {
		t.Fatalf("parts %q: have %q, want %q", parts, have, want)
	}
	for _, p := range parts {
		if strings.ToValidUTF8(p, "!") != p {
			t.Fatalf("parts %q: want each valid", parts)
		}
	}
}

// TestStreamHolds: the first bytes of a character wait, but no whole one does.
func TestStreamHolds(t *testing.T) {
	tok := newTest(t, testVocabulary(t, "gpt2", "qwen35", 0))
	s := tok.Stream(false)
	for _, c := range []struct {
		b    byte
		want string
	}{
		{'a', "a"},
		{0xF0, ""}, {0x9F, ""}, {0x91, ""}, {0x8D, "👍"},
		{0xE2, ""}, {0x82, ""}, {'b', "\ufffdb"},
		{0xFF, "\ufffd"}, {0xC3, ""}, {0xC3, "\ufffd"}, {0xA9, "é"},
		{0xE0, ""}, {0x80, "\ufffd\ufffd"}, // E0 80 starts no character
		{0xE2, ""},
	} {
		if have := s.Push(tok.atoms.byByte[c.b]); have != c.want {
			t.Errorf("byte %x: have %q, want %q", c.b, have, c.want)
		}
	}
	if have := s.Flush(); have != "\ufffd" {
		t.Errorf("Flush: have %q, want one U+FFFD", have)
	}
}

func TestDecodeSpecial(t *testing.T) {
	for _, f := range testFamilies {
		tok := newTest(t, testVocabulary(t, f.model, f.pre, 250))
		const text = "a<s><think>b</think><unk><|im_end|> c"
		ids := tok.Encode(text, Options{ParseSpecial: true})
		if have := tok.Decode(ids, true); have != text {
			t.Errorf("%s: special: have %q, want %q", f.name, have, text)
		}
		if have, want := tok.Decode(ids, false), "a<think>b</think> c"; have != want {
			t.Errorf("%s: not special: have %q, want %q", f.name, have, want)
		}
		n := int32(tok.VocabSize())
		if have, want := tok.Decode([]int32{-1, ids[0], n, 1 << 30}, false), "\ufffda\ufffd\ufffd"; have != want {
			t.Errorf("%s: ids outside: have %q, want %q", f.name, have, want)
		}
		if p := tok.Piece(n); p != nil || tok.Piece(-1) != nil || tok.Type(n) != Undefined {
			t.Errorf("%s: a token outside: have %q, want none", f.name, p)
		}
	}
}

// TestPieces decodes texts that are in no vocabulary's form.
func TestPieces(t *testing.T) {
	tokens := []string{"a b", "Ġ你Ā", "\xffĠ", "<0x41>", "<0xZZ>", "▁▁x", "<0x0a>", "", "▁Ġ"}
	types := []int32{1, 5, 0, 6, 6, 1, 6, 1, 4}
	for _, c := range []struct {
		model string
		want  []string
	}{
		{"gpt2", []string{"a b", " 你\x00", "\xff ", "A", "<0xZZ>", "▁▁x", "\n", "", "▁Ġ"}},
		{"gemma4", []string{"a b", "Ġ你Ā", "\xffĠ", "A", "<0xZZ>", "  x", "\n", "", "▁Ġ"}},
	} {
		md := meta{keyModel: c.model, keyPre: "qwen2", keyTokens: tokens, keyTypes: types, keyMerges: []string{}, keyBOS: int32(0)}
		tok := newTest(t, md)
		for id, want := range c.want {
			if have := string(tok.Piece(int32(id))); have != want {
				t.Errorf("%s: token %q: have %q, want %q", c.model, tokens[id], have, want)
			}
		}
	}
}
