package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

// TestNewRefuses has one fault each; the error must name the key.
func TestNewRefuses(t *testing.T) {
	md := testVocabulary(t, "gpt2", "lfm2", 30)
	tokens := md[keyTokens].([]string)
	n := len(tokens)
	for _, c := range []struct {
		name, key string
		value     any // nil: no such key
		want      string
	}{
		{"no model", keyModel, nil, "gemma4, gpt2"},
		{"model of another type", keyModel, 7, "have a int"},
		{"unknown model", keyModel, "llama", `have "llama", want one of gemma4, gpt2`},
		{"no pre", keyPre, nil, "qwen35"},
		{"unknown pre", keyPre, "tekken", `have "tekken", want one of`},
		{"pre of another type", keyPre, []string{"lfm2"}, "have a []string"},
		{"no tokens", keyTokens, nil, "have none"},
		{"tokens of another type", keyTokens, []int32{1}, "have a []int32"},
		{"zero tokens", keyTokens, []string{}, "have 0 tokens"},
		{"token twice", keyTokens, slices.Concat(tokens[:n-1], []string{"Ġ"}), `"Ġ"`},
		{"too few types", keyTypes, make([]int32, n-1), "entries"},
		{"too many types", keyTypes, make([]uint8, n+1), "entries"},
		{"types of another type", keyTypes, make([]string, n), "have a []string"},
		{"fractional types", keyTypes, make([]float32, n), "have a []float32"},
		{"too few scores", keyScores, make([]float32, n-1), "entries"},
		{"scores of another type", keyScores, "none", "have a string"},
		{"no merges", keyMerges, nil, "have none"},
		{"merges of another type", keyMerges, []uint32{}, "have a []uint32"},
		{"merge of one", keyMerges, []string{"a"}, "entry 0"},
		{"empty merge", keyMerges, []string{md[keyMerges].([]string)[0], ""}, "entry 1"},
		{"merge with nothing", keyMerges, []string{"a "}, "entry 0"},
		{"merge with an empty left", keyMerges, []string{" a"}, "entry 0"},
		{"merge of an absent token", keyMerges, []string{"qqq a"}, `"qqq a"`},
		{"merge with an absent token", keyMerges, []string{"a qqq"}, `"a qqq"`},
		{"merge into an absent token", keyMerges, []string{"q q"}, `"q q"`},
		{"merge of three", keyMerges, []string{"a b c"}, `"a b c"`},
		{"bos outside", keyBOS, uint32(n), "have"},
		{"bos below", keyBOS, int32(-1), "have -1"},
		{"bos of another type", keyBOS, "1", "have a string"},
		{"eos outside", keyEOS, uint64(1 << 63), "have 9223372036854775808"},
		{"no bos", keyBOS, nil, "have none"},
		{"add_bos_token of another type", keyAddBOS, uint8(1), "have a uint8"},
		{"unknown token outside", keyUNK, int64(1) << 40, "have 1099511627776"},
		{"eot outside", "tokenizer.ggml.eot_token_id", uint32(1 << 31), "have 2147483648"},
		{"eom of another type", "tokenizer.ggml.eom_token_id", 1.5, "have a float64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(md.with(c.key, c.value))
			if err == nil {
				t.Fatal("have no error, want one")
			}
			if s := err.Error(); !strings.HasPrefix(s, "tokenizer: "+c.key+": ") || !strings.Contains(s, c.want) {
				t.Errorf("have %q, want it to name %s and to contain %q", s, c.key, c.want)
			}
		})
	}
	if _, err := New(md); err != nil {
		t.Errorf("without a fault: %v", err)
	}
}

// TestFamilies: every name of the table, and what it makes of digits, marks,
// whole words and a BOS.
func TestFamilies(t *testing.T) {
	for _, f := range families {
		for _, name := range f.names {
			md := testVocabulary(t, "gpt2", f.names[0], 0).with(keyPre, name)
			tok := newTest(t, md)
			if tok.AddBOS() != f.rules.addBOS {
				t.Errorf("%s: AddBOS: have %v, want %v", name, tok.AddBOS(), f.rules.addBOS)
			}
		}
	}
	for pre, want := range map[string][]int{
		"llama3": {4, 3, 1, 2, 2}, "qwen2": {4, 1, 1, 1, 1, 2, 2}, "qwen35": {4, 1, 1, 1, 1, 4},
	} {
		r, err := readRules(meta{keyModel: "gpt2", keyPre: pre})
		if err != nil {
			t.Fatal(err)
		}
		var have []int
		for s := " abc1234 " + "e\u0301"; s != ""; {
			n := r.split(s)
			have, s = append(have, n), s[n:]
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s: have pieces of %v bytes, want %v", pre, have, want)
		}
	}
}

func TestBOS(t *testing.T) {
	byteLevel, gemma := testVocabulary(t, "gpt2", "qwen35", 0), testVocabulary(t, "gemma4", "", 0)
	lfm2 := byteLevel.with(keyPre, "lfm2")
	for _, c := range []struct {
		name string
		md   meta
		want bool
	}{
		{"silent, no default", byteLevel, false},
		{"asked for", byteLevel.with(keyAddBOS, true), true},
		{"default of lfm2", lfm2, true},
		{"lfm2 without", lfm2.with(keyAddBOS, false), false},
		{"gemma", gemma, true},
		{"gemma, whatever the file says", gemma.with(keyAddBOS, false), true},
	} {
		tok := newTest(t, c.md)
		have := tok.Encode("", Options{AddSpecial: true})
		if c.want != (len(have) == 1 && have[0] == 0) || tok.AddBOS() != c.want {
			t.Errorf("%s: have %v, want a BOS: %v", c.name, have, c.want)
		}
		if id, ok := tok.BOS(); id != 0 || !ok {
			t.Errorf("%s: BOS: have %d %v, want 0", c.name, id, ok)
		}
		if plain := tok.Encode("<s>", Options{AddSpecial: true, ParseSpecial: true}); c.want && !slices.Equal(plain, []int32{0, 0}) {
			t.Errorf("%s: have %v, want two: the text's own stays", c.name, plain)
		}
	}
	tok := newTest(t, byteLevel.with(keyBOS, nil).with(keyEOS, nil).with(keyAddBOS, nil))
	if _, ok := tok.BOS(); ok {
		t.Error("BOS: have one, want none")
	}
	if _, ok := tok.EOS(); ok {
		t.Error("EOS: have one, want none")
	}
}

// TestEndTokens checks ends and types by name and by key.
func TestEndTokens(t *testing.T) {
	base := testVocabulary(t, "gpt2", "qwen35", 0) // <|im_end|> is token 1
	grow := func(md meta, texts ...string) meta {
		types := md[keyTypes].([]int32)
		for range texts {
			types = append(slices.Clip(types), int32(UserDefined))
		}
		return md.with(keyTokens, slices.Concat(md[keyTokens].([]string), texts)).with(keyTypes, types)
	}
	n := int32(len(base[keyTokens].([]string)))
	for _, c := range []struct {
		name    string
		md      meta
		want    []int32
		control []int32 // user-defined in the file
		not     []int32
	}{
		{"by name", base.with(keyEOS, nil), []int32{1}, nil, nil},
		{"eos key", base.with(keyEOS, uint32(3)), []int32{1, 3}, nil, []int32{3}},
		{"all keys", base.with("tokenizer.ggml.eot_token_id", uint16(4)).with("tokenizer.ggml.eom_token_id", int8(5)), []int32{1, 4, 5}, nil, nil},
		{"names that are user-defined", grow(base, "<turn|>", "<eos>"), []int32{1, n, n + 1}, []int32{n, n + 1}, nil},
		{"</s>", grow(base, "</s>"), []int32{1, n}, []int32{n}, nil},
		{"</s> of gemma", grow(base, "</s>", "<|tool_response>"), []int32{1, n + 1}, []int32{n + 1}, []int32{n}},
		{"fill in the middle", grow(base, "<|fim_pad|>", "<|fim_prefix|>"), []int32{1, n}, []int32{n, n + 1}, nil},
		{"fill in the middle by key", grow(base, "<|fim_pad|>").with("tokenizer.ggml.fim_pad_token_id", uint32(3)), []int32{1, 3}, nil, []int32{n}},
	} {
		tok := newTest(t, c.md)
		if have := tok.EndTokens(); !slices.Equal(have, c.want) {
			t.Errorf("%s: have %v, want %v", c.name, have, c.want)
		}
		for _, id := range c.control {
			if tok.Type(id) != Control {
				t.Errorf("%s: token %d: have type %d, want control", c.name, id, tok.Type(id))
			}
		}
		for _, id := range c.not {
			if tok.Type(id) == Control {
				t.Errorf("%s: token %d: have a control token, want none", c.name, id)
			}
		}
	}
}

// TestTypes reads token types of every width.
func TestTypes(t *testing.T) {
	md := meta{keyModel: "gpt2", keyPre: "qwen2", keyTokens: []string{"a", "b", "c"}, keyMerges: []string{}}
	for _, v := range []any{
		[]int32{3, 4, 77}, []uint32{3, 4, 77}, []int64{3, 4, -1}, []uint64{3, 4, 1 << 60},
		[]int16{3, 4, 7}, []uint16{3, 4, 300}, []int8{3, 4, -4}, []uint8{3, 4, 255},
	} {
		tok := newTest(t, md.with(keyTypes, v))
		if tok.Type(0) != Control || tok.Type(1) != UserDefined || tok.Type(2) != Undefined {
			t.Errorf("%T: have %d %d %d, want 3 4 0", v, tok.Type(0), tok.Type(1), tok.Type(2))
		}
	}
	if tok := newTest(t, md); tok.Type(2) != Normal {
		t.Errorf("without types: have %d, want normal", tok.Type(2))
	}
	tok := newTest(t, md)
	if id, ok := tok.ID("b"); id != 1 || !ok || tok.VocabSize() != 3 {
		t.Errorf("ID: have %d %v of %d, want 1 of 3", id, ok, tok.VocabSize())
	}
	if _, ok := tok.ID("x"); ok {
		t.Error("ID of no token: have one")
	}
}

// TestDuplicateMerge: of a merge that is there twice the first counts.
func TestDuplicateMerge(t *testing.T) {
	md := meta{
		keyModel: "gpt2", keyPre: "qwen2", keyTokens: []string{"a", "b", "c", "ab", "bc"},
		keyMerges: []string{"a b", "b c", "a b"},
	}
	if have := newTest(t, md).Encode("abc", Options{}); !slices.Equal(have, []int32{3, 2}) {
		t.Errorf("have %v, want ab c", have)
	}
}
