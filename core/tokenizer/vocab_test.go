package tokenizer

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// meta is metadata for tests.
type meta map[string]any

func (m meta) Value(key string) (any, bool) {
	v, ok := m[key]
	return v, ok
}

// with is a copy with one value changed, or without it if v is nil.
func (m meta) with(key string, v any) meta {
	c := maps.Clone(m)
	if v == nil {
		delete(c, key)
	} else {
		c[key] = v
	}
	return c
}

// sample is the text that the vocabularies of the tests are made from: words,
// marks, numbers, blanks and newlines next to each other in every way.
const sample = "The king's men said they'd LL've seen 12 or 1234567 ships; don't DON'T I'm we're\n\n" +
	"  indented\n\tcode { x = a[10] + 3.14; } // ok\r\n\r\n   \u00a0\u2003wide\u3000blanks \u2028 and more   \n \n" +
	"नमस्ते दुनिया café cafe\u0301 Größe Привет 你好，世界！１２３ ½²Ⅷ 👩\u200d💻👍🏽 !!! ... --- ''' \"quoted\" '" + "s'S'll'LL're" +
	"\u0301\u0301 1\u0301a\u0301 a\u0301b \n\n\n\n\nend  \n"

// families of the tests: a model and a pre-tokenizer each.
var testFamilies = []struct{ name, model, pre string }{
	{"lfm2", "gpt2", "lfm2"}, {"qwen35", "gpt2", "qwen35"}, {"bailingmoe2", "gpt2", "bailingmoe2"}, {"gemma4", "gemma4", ""},
}

// specialTokens are in every test vocabulary; several contain one another.
var specialTokens = []struct {
	text string
	typ  Type
}{
	{"<s>", Control}, {"<|im_end|>", Control}, {"<unk>", Unknown}, {"<think>", UserDefined}, {"</think>", UserDefined},
	{"<t", UserDefined}, {"think>\n", UserDefined}, {">>", UserDefined}, {">>>", Control}, {"aXa", UserDefined}, {"king", UserDefined},
	{"<king!", UserDefined},
}

// testVocabulary learns n merges from the sample for one of the families.
func testVocabulary(t testing.TB, model, pre string, n int) meta {
	t.Helper()
	md := meta{keyModel: model}
	if pre != "" {
		md[keyPre] = pre
	}
	r, err := readRules(md)
	if err != nil {
		t.Fatal(err)
	}
	var tokens []string
	var types []int32
	add := func(text string, typ Type) {
		if !slices.Contains(tokens, text) {
			tokens, types = append(tokens, text), append(types, int32(typ))
		}
	}
	for _, s := range specialTokens {
		add(s.text, s.typ)
	}
	for b := range 256 {
		if r.byteLevel {
			add(string(byteRunes[b]), Normal)
		} else {
			add(fmt.Sprintf("<0x%02X>", b), Byte)
		}
	}
	if !r.byteLevel {
		for _, c := range "▁abcdefghiklmnoprstuwxyT\t.0123456789ПриветGö" {
			add(string(c), Normal)
		}
		add("\n", Normal)
		add("\n\n", Normal)
		add("\n\n\n", Normal)
	}
	merges := learn(pretokens(r, sample), tokens, n)
	for _, m := range merges {
		add(strings.Replace(m, " ", "", 1), Normal)
	}
	md[keyTokens], md[keyTypes], md[keyMerges] = tokens, types, merges
	md[keyBOS], md[keyEOS] = uint32(0), uint32(1)
	return md
}

// pretokens splits a text and writes the pieces in the vocabulary's form.
func pretokens(r rules, text string) [][]string {
	var out [][]string
	for text != "" {
		n := r.split(text)
		s := strings.ReplaceAll(text[:n], " ", "▁")
		if r.byteLevel {
			s = string(appendByteLevel(nil, text[:n]))
		}
		out = append(out, strings.Split(s, ""))
		text = text[n:]
	}
	return out
}

// learn finds merges as BPE does, the most frequent pair first.
func learn(words [][]string, tokens []string, n int) []string {
	have := map[string]bool{}
	for _, t := range tokens {
		have[t] = true
	}
	var merges []string
	for range n {
		count := map[[2]string]int{}
		for _, w := range words {
			for i := 1; i < len(w); i++ {
				if have[w[i-1]] && have[w[i]] && !strings.Contains(w[i], "\n") {
					count[[2]string{w[i-1], w[i]}]++
				}
			}
		}
		if len(count) == 0 {
			break
		}
		pairs := slices.SortedFunc(maps.Keys(count), func(a, b [2]string) int {
			return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a[0]+" "+a[1], b[0]+" "+b[1]))
		})
		best := pairs[0]
		merges = append(merges, best[0]+" "+best[1])
		have[best[0]+best[1]] = true
		for i := range words {
			words[i] = join(words[i], best[0], best[1])
		}
	}
	return merges
}

// join replaces each pair by one piece, from left to right.
func join(w []string, left, right string) []string {
	var out []string
	for i := 0; i < len(w); i++ {
		if i+1 < len(w) && w[i] == left && w[i+1] == right {
			out = append(out, left+right)
			i++
			continue
		}
		out = append(out, w[i])
	}
	return out
}

func newTest(t testing.TB, md Metadata) *Tokenizer {
	t.Helper()
	tok, err := New(md)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// random is a source of fresh numbers whose seed is in the test's output.
func random(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// hard are characters that sit on the borders of the patterns' classes.
var hard = []rune(" \t\n\r\v\f'sStTrReEvVmMlLdDxé1２½Ⅷ.,!<>|ſK\u0085\u00a0\u1680\u2028\u202f\u3000\u200d\ufeff\u0301\u0903\u20dd" +
	"निé你𮯰\U0002ebf0\U0002ee5e👍\U000e0101\ufffd\u2581Ġ")

// randomText mixes hard characters, any characters, specials and the sample.
func randomText(rnd *rand.Rand, n int) string {
	var b strings.Builder
	for range rnd.IntN(n + 1) {
		switch rnd.IntN(12) {
		case 0:
			b.WriteRune(anyRune(rnd))
		case 1:
			i := rnd.IntN(len(sample))
			b.WriteString(strings.ToValidUTF8(sample[i:min(len(sample), i+rnd.IntN(12))], ""))
		case 2:
			if rnd.IntN(3) == 0 {
				b.WriteString(specialTokens[rnd.IntN(len(specialTokens))].text)
			}
		default:
			b.WriteRune(hard[rnd.IntN(len(hard))])
		}
	}
	return b.String()
}

func anyRune(rnd *rand.Rand) rune {
	for {
		if r := rune(rnd.IntN(0x110000)); utf8.ValidRune(r) {
			return r
		}
	}
}
