package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// BenchmarkEncode is MB/s of mixed text (the sample), of one 1 MB word, and of
// the sample cut into short messages.
func BenchmarkEncode(b *testing.B) {
	long := strings.Repeat(sample, 1<<20/len(sample))
	texts := []struct{ name, text string }{
		{"mixed", long}, {"word", strings.Repeat("thekingsmensaid", 1<<20/15)}, {"short", sample[:200]},
	}
	for _, f := range testFamilies {
		tok := newTest(b, testVocabulary(b, f.model, f.pre, 250))
		for _, c := range texts {
			b.Run(f.name+"/"+c.name, func(b *testing.B) {
				b.SetBytes(int64(len(c.text)))
				b.ReportAllocs()
				for b.Loop() {
					tok.Encode(c.text, Options{ParseSpecial: true})
				}
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	text := strings.Repeat(sample, 100)
	tok := newTest(b, testVocabulary(b, "gpt2", "qwen35", 250))
	ids := tok.Encode(text, Options{})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.Decode(ids, false)
	}
}

// BenchmarkNew reads a vocabulary of gemma4's size: 262,144 tokens and about
// twice as many merges.
func BenchmarkNew(b *testing.B) {
	md := bigVocabulary(262144, 514906)
	for b.Loop() {
		newTest(b, md)
	}
}

// BenchmarkEncodeBig encodes with it.
func BenchmarkEncodeBig(b *testing.B) {
	tok := newTest(b, bigVocabulary(262144, 514906))
	rnd := rand.New(rand.NewPCG(1, 1))
	var text strings.Builder
	for text.Len() < 1<<20 {
		text.WriteString(strings.ReplaceAll(tok.tokens[300+rnd.IntN(20000)], "▁", " "))
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		tok.Encode(text.String(), Options{ParseSpecial: true})
	}
}

// bigVocabulary has random words; every merge's parts are tokens.
func bigVocabulary(tokens, merges int) meta {
	rnd := rand.New(rand.NewPCG(1, 2))
	list := []string{"<unk>", "<bos>", "<eos>"}
	have := map[string]bool{}
	add := func(s string) {
		if !have[s] {
			have[s] = true
			list = append(list, s)
		}
	}
	for _, c := range "▁etaoinshrdlucmfwypvbgkjqxzETAOINSHRDLU.,!?0123456789" {
		add(string(c))
	}
	var pairs []string
	for len(list) < tokens {
		// Skewed towards early tokens, which are short and frequent.
		n := len(list) - 3
		l, r := list[3+rnd.IntN(1+rnd.IntN(n))], list[3+rnd.IntN(1+rnd.IntN(n))]
		if len(l)+len(r) < 24 && !have[l+r] {
			pairs = append(pairs, l+" "+r)
			add(l + r)
		}
	}
	for _, s := range slices.Clone(list) {
		for i := 1; i < len(s) && len(pairs) < merges; i++ {
			if have[s[:i]] && have[s[i:]] {
				pairs = append(pairs, s[:i]+" "+s[i:])
			}
		}
	}
	types := make([]int32, len(list))
	for i := range types {
		types[i] = int32(Normal)
	}
	for i := len(types) - 6000; i < len(types); i++ {
		types[i] = int32(UserDefined) // as many specials as gemma has
		list[i] = "<unused" + list[i] + ">"
	}
	have = map[string]bool{}
	for _, s := range list {
		have[s] = true
	}
	pairs = slices.DeleteFunc(pairs, func(p string) bool {
		l, r, _ := strings.Cut(p, " ")
		return !have[l] || !have[r] || !have[l+r]
	})
	return meta{keyModel: "gemma4", keyTokens: list, keyTypes: types, keyMerges: pairs, keyBOS: uint32(1), keyEOS: uint32(2)}
}
