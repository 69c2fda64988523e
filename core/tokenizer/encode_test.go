package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// slow encodes as llama.cpp's source reads: on strings, without any index.
type slow struct {
	*Tokenizer
	rank map[string]int // "left right"
}

func newSlow(t *Tokenizer, md meta) slow {
	s := slow{t, map[string]int{}}
	for i, m := range md[keyMerges].([]string) {
		if _, dup := s.rank[m]; !dup {
			s.rank[m] = i
		}
	}
	return s
}

func (s slow) encode(text string, parse bool) []int32 {
	parts := []fragment{{text: text, id: none}}
	order := []int32{}
	for id := range s.tokens {
		order = append(order, int32(id))
	}
	slices.SortStableFunc(order, func(a, b int32) int { return len(s.tokens[b]) - len(s.tokens[a]) })
	for _, id := range order {
		if t := s.types[id]; t == UserDefined || t.hidden() && parse {
			var next []fragment
			for _, p := range parts {
				next = append(next, cutAll(p, s.tokens[id], id)...)
			}
			parts = next
		}
	}
	var out []int32
	for _, p := range parts {
		if p.id != none {
			out = append(out, p.id)
			continue
		}
		for _, w := range pretokens(s.rules, p.text) {
			out = append(out, s.word(w)...)
		}
	}
	return out
}

func cutAll(f fragment, text string, id int32) []fragment {
	if f.id != none {
		return []fragment{f}
	}
	var out []fragment
	for i, piece := range strings.Split(f.text, text) {
		if i > 0 {
			out = append(out, fragment{id: id})
		}
		if piece != "" {
			out = append(out, fragment{text: piece, id: none})
		}
	}
	return out
}

func (s slow) word(w []string) []int32 {
	whole := strings.Join(w, "")
	if id, ok := s.ids[whole]; ok && s.rules.whole(whole) {
		return []int32{id}
	}
	for {
		best, at := 1<<30, 0
		for i := 1; i < len(w); i++ {
			if r, ok := s.rank[w[i-1]+" "+w[i]]; ok && r < best {
				best, at = r, i
			}
		}
		if at == 0 {
			break
		}
		w = append(append(slices.Clone(w[:at-1]), w[at-1]+w[at]), w[at+1:]...)
	}
	var out []int32
	for _, piece := range w {
		if id, ok := s.ids[piece]; ok {
			out = append(out, id)
			continue
		}
		for i := range len(piece) {
			out = append(out, s.ids[fmt.Sprintf("<0x%02X>", piece[i])])
		}
	}
	return out
}

func TestEncodeEqualsSlow(t *testing.T) {
	rnd := random(t)
	for _, f := range testFamilies {
		t.Run(f.name, func(t *testing.T) {
			md := testVocabulary(t, f.model, f.pre, 250)
			tok := newTest(t, md)
			reference := newSlow(tok, md)
			for i := range 2000 {
				text := randomText(rnd, 60)
				if i == 0 {
					text = sample
				}
				for _, parse := range []bool{false, true} {
					have, want := tok.Encode(text, Options{ParseSpecial: parse}), reference.encode(text, parse)
					if !slices.Equal(have, want) {
						t.Fatalf("Encode(%q, parse %v)\nhave %v\nwant %v", text, parse, have, want)
					}
				}
			}
		})
	}
}

// TestLongSpecials has special tokens that begin alike for longer than the
// matcher knows them, one of which is longer than the text.
func TestLongSpecials(t *testing.T) {
	head := strings.Repeat("<a", known)
	tokens := []string{head + "b>", head + "c>", head, head + strings.Repeat("x", 1<<20), head[:known-1]}
	m := newMatcher(tokens, []Type{Control, Control, Control, Control, Control})
	if have, most := len(m.nodes), known+1; have > most {
		t.Errorf("have %d nodes, want at most %d", have, most)
	}
	got := m.partition(&until{ctx: t.Context()}, "."+head+"c>"+head+"b>"+head+"d"+head[:known], true)
	n := len(head)
	want := []fragment{
		{".", 0, none}, {"", 1, 1}, {"", n + 3, 0}, {"", 2*n + 5, 2}, {"d", 3*n + 5, none}, {"", 3*n + 6, 4}, {head[known-1 : known], 3*n + 5 + known, none},
	}
	if !slices.Equal(got, want) {
		t.Errorf("have %v, want %v", got, want)
	}
}

// TestSpecialOrder has texts in which it matters which token is taken first.
func TestSpecialOrder(t *testing.T) {
	tok := newTest(t, testVocabulary(t, "gpt2", "qwen35", 0))
	for _, c := range []struct {
		text  string
		parse bool
		want  []string
	}{
		{"<think>", false, []string{"<think>"}},
		{"<think>\n", false, []string{"<think>", "Ċ"}}, // not "<t" before "think>\n"
		{"think>\n", false, []string{"think>\n"}},      // user-defined text is raw
		{">>>>", false, []string{">>", ">>"}},          // the control token is not looked for
		{">>>>", true, []string{">>>", ">"}},           // the longest first, from the left
		{"<kings", false, []string{"<", "king", "s"}},  // found inside of what might have been "<king!"
		{"aXaXa", false, []string{"aXa", "X", "a"}},    // no overlap
		{"<s>", false, []string{"<", "s", ">"}},        // control
		{"<unk>", false, []string{"<", "u", "n", "k", ">"}},
		{"<s><unk>", true, []string{"<s>", "<unk>"}},
	} {
		var have []string
		for _, id := range tok.Encode(c.text, Options{ParseSpecial: c.parse}) {
			have = append(have, tok.tokens[id])
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("Encode(%q, parse %v): have %q, want %q", c.text, c.parse, have, c.want)
		}
	}
}

// TestPlain has vocabularies in which merges, whole pre-tokens and single
// characters lead to special tokens: plain text must not become one.
func TestPlain(t *testing.T) {
	base := testVocabulary(t, "gpt2", "lfm2", 0)
	tokens := slices.Concat(base[keyTokens].([]string), []string{"ab", "abc", "xy", "ĠĠ"})
	types := slices.Concat(base[keyTypes].([]int32), []int32{int32(Control), int32(Normal), int32(UserDefined), int32(UserDefined)})
	types[slices.Index(tokens, "q")] = int32(Control)
	types[slices.Index(tokens, "z")] = int32(UserDefined)
	tok := newTest(t, base.with(keyTokens, tokens).with(keyTypes, types).with(keyMerges, []string{"a b", "ab c", "x y", "Ġ Ġ"}))
	for _, c := range []struct {
		text  string
		plain bool
		want  []string
	}{
		{"ab", false, []string{"ab"}}, // as llama.cpp: a control token by its spelling
		{"ab", true, []string{"a", "b"}},
		{"abc", true, []string{"abc"}}, // a whole pre-token of lfm2
		{"abcc", false, []string{"abc", "c"}},
		{"abcc", true, []string{"a", "b", "c", "c"}},
		{"xy", false, []string{"xy"}},
		{"xy", true, []string{"x", "y"}},
		{"xyx", true, []string{"x", "y", "x"}},
		{"king <think>", true, []string{"k", "i", "n", "g", "Ġ", "<", "t", "h", "i", "n", "k", ">"}},
		{"   1", false, []string{"ĠĠ", "Ġ", "1"}},
		{"   1", true, []string{"Ġ", "Ġ", "Ġ", "1"}},
		{"q", true, nil},
		{"z", true, []string{"z"}},
	} {
		var have []string
		for _, id := range tok.Encode(c.text, Options{Plain: c.plain}) {
			have = append(have, tok.tokens[id])
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("Encode(%q, plain %v): have %q, want %q", c.text, c.plain, have, c.want)
		}
	}
}

// TestPlainNewlines: a run of newlines is spelling, whatever its type.
func TestPlainNewlines(t *testing.T) {
	md := testVocabulary(t, "gemma4", "", 0)
	types := slices.Clone(md[keyTypes].([]int32))
	types[slices.Index(md[keyTokens].([]string), "\n\n")] = int32(UserDefined)
	types[slices.Index(md[keyTokens].([]string), "\n\n\n")] = int32(Control)
	tok := newTest(t, md.with(keyTypes, types))
	two, _ := tok.ID("\n\n")
	one, _ := tok.ID("\n")
	for text, want := range map[string][]int32{"\n\n": {two}, "\n\n\n": {one, one, one}} {
		if have := tok.Encode(text, Options{Plain: true}); !slices.Equal(have, want) {
			t.Errorf("%q: have %v, want %v", text, have, want)
		}
	}
}

// TestLongWords would take hours if merging or matching were quadratic.
func TestLongWords(t *testing.T) {
	const size = 1 << 18
	texts := map[string]string{
		"one letter":    strings.Repeat("a", size),
		"letters":       strings.Repeat("thekingsmensaid", 4*size/15), // 1 MB
		"symbols":       strings.Repeat("!.-", size/3),
		"spaces":        strings.Repeat(" ", size),
		"newlines":      strings.Repeat("\n", size),
		"blank lines":   strings.Repeat(" \n", size/2),
		"digits":        strings.Repeat("12", size/2),
		"marks":         strings.Repeat("e\u0301", size/3),
		"half specials": strings.Repeat("<think<", size/7),
		"specials":      strings.Repeat("<think>", size/7),
	}
	for _, f := range testFamilies {
		tok := newTest(t, testVocabulary(t, f.model, f.pre, 250))
		for name, text := range texts {
			ids := tok.Encode(text, Options{ParseSpecial: true})
			if got := tok.Decode(ids, true); got != text {
				t.Errorf("%s: %s: decoding does not give the text back", f.name, name)
			}
		}
	}
}

// TestQueueLength holds merging to its bound: 3n entries for n symbols.
func TestQueueLength(t *testing.T) {
	tok := newTest(t, testVocabulary(t, "gemma4", "", 250))
	rnd := random(t)
	for range 200 {
		e := newEncoder(t.Context(), tok, false)
		text := strings.ReplaceAll(randomText(rnd, 200), "\n", "")
		if text == "" {
			continue
		}
		e.pretoken(nil, text)
		if n := len(e.symbols); cap(e.queue) > 8+6*n {
			t.Errorf("%d symbols: have room for %d entries, want 3 a symbol at most", n, cap(e.queue))
		}
	}
}

func TestInvalidUTF8(t *testing.T) {
	for _, f := range testFamilies {
		tok := newTest(t, testVocabulary(t, f.model, f.pre, 250))
		for text, want := range map[string]string{
			"\xff":            "\ufffd",
			"a\xe2\x82b":      "a\ufffd\ufffdb", // llama.cpp: one a byte
			"\xed\xa0\x80":    "\ufffd\ufffd\ufffd",
			"ok\xc3":          "ok\ufffd",
			"<think>\xf0\x9f": "<think>\ufffd\ufffd",
		} {
			if got := tok.Decode(tok.Encode(text, Options{}), false); got != want {
				t.Errorf("%s: %q: have %q, want %q", f.name, text, got, want)
			}
		}
	}
}

// TestMissing has characters and bytes that a vocabulary cannot write.
func TestMissing(t *testing.T) {
	md := meta{
		keyModel: "gemma4", keyTokens: []string{"<unk>", "<bos>", "a", "<0xC3>"}, keyMerges: []string{}, keyBOS: uint32(1),
		keyTypes: []int32{2, 3, 1, 6},
	}
	for _, c := range []struct {
		md    meta
		plain bool
		want  []int32
	}{
		{md, false, []int32{2, 3, 2}}, // é is C3 A9, b is nothing
		{md.with(keyUNK, uint32(0)), false, []int32{2, 3, 0, 2}},
		{md.with(keyUNK, uint32(0)), true, []int32{2, 3, 2}},
	} {
		if got := newTest(t, c.md).Encode("aéba", Options{Plain: c.plain}); !slices.Equal(got, c.want) {
			t.Errorf("%v, plain %v: have %v, want %v", c.md, c.plain, got, c.want)
		}
	}
	// A space is the three bytes of ▁, which this vocabulary lacks, as in llama.cpp.
	tok := newTest(t, md.with(keyTokens, []string{"<unk>", "<bos>", "<0xE2>", "<0x20>"}))
	if got := tok.Encode(" ", Options{}); !slices.Equal(got, []int32{2}) {
		t.Errorf("a space: have %v, want 2", got)
	}
}
