// Package tokenizer turns text into token ids and back, as the metadata of a
// GGUF file says: byte-pair encoding by merge rank, over bytes (GPT-2's form)
// or over characters with a byte fallback (Gemma's).
//
// It knows no file format, no chat template and no model: it is a leaf that
// takes key/value metadata ([Metadata]), and which families it speaks is the
// table in pre.go. The reference in every doubtful case is llama.cpp's
// src/llama-vocab.cpp; the golden files compare with its ids.
//
// Start at [New] and [Tokenizer.Encode]; [Stream] decodes tokens as they come.
package tokenizer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// Metadata is what the tokenizer reads of a model file: GGUF key/value pairs.
// A value is a string, a bool, an integer of any width, or a slice of strings
// or integers.
type Metadata interface {
	Value(key string) (any, bool)
}

// Tokenizer encodes and decodes with one vocabulary. It never changes after
// New, so any number of goroutines may use it.
type Tokenizer struct {
	rules  rules
	tokens []string         // by id, as the file has them
	types  []Type           // by id
	ids    map[string]int32 // of the tokens that are not empty
	merges merges
	atoms  atoms
	marked matcher // the tokens that are matched as text before anything else

	bos, eos int32 // or none
	unknown  int32 // or none
	addBOS   bool
	ends     []int32
	longest  int // see longestPiece
}

// none stands for a token that a vocabulary does not have.
const none int32 = -1

// New reads a vocabulary: tokenizer.ggml.model, .pre, .tokens, .token_type,
// .merges, the ids of its special tokens and .add_bos_token. Whatever does not
// fit together is an error that names the key. Time and memory are
// proportional to the metadata's size. The strings are shared with md.
func New(md Metadata) (*Tokenizer, error) {
	r, err := readRules(md)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{rules: r}
	if err := t.readTokens(md); err != nil {
		return nil, err
	}
	if t.merges, err = readMerges(md, t.ids); err != nil {
		return nil, err
	}
	if err := t.readSpecial(md); err != nil {
		return nil, err
	}
	t.atoms = newAtoms(t.ids, r.byteLevel)
	t.marked = newMatcher(t.tokens, t.types)
	t.longest = t.longestPiece()
	return t, nil
}

// readTokens reads the pieces and their types.
func (t *Tokenizer) readTokens(md Metadata) error {
	tokens, err := readStrings(md, keyTokens)
	if err != nil {
		return err
	}
	if len(tokens) == 0 || len(tokens) > math.MaxInt32 {
		return fmt.Errorf("tokenizer: %s: have %d tokens, want 1 to %d: convert the model again", keyTokens, len(tokens), math.MaxInt32)
	}
	t.tokens = tokens
	t.ids = make(map[string]int32, len(tokens))
	for i, text := range tokens {
		if text == "" {
			continue // llama.cpp lets these be, too: an id without a text
		}
		if first, dup := t.ids[text]; dup {
			return fmt.Errorf("tokenizer: %s: have %.99q as token %d and %d, want each once: convert the model again", keyTokens, text, first, i)
		}
		t.ids[text] = int32(i)
	}
	if t.types, err = readTypes(md, len(tokens)); err != nil {
		return err
	}
	return checkLength(md, keyScores, len(tokens)) // merges have ranks: scores are read by nobody
}

// Options say how Encode treats special tokens. The zero value matches
// user-defined tokens only and adds nothing.
type Options struct {
	// AddSpecial puts a BOS in front where the model asks for one (AddBOS). It
	// does so even if the text brings its own, as llama.cpp does. Nothing is
	// ever added at the end, whatever tokenizer.ggml.add_eos_token says: text is
	// encoded here to be continued.
	AddSpecial bool
	// ParseSpecial also matches control and unknown tokens (types 3 and 2).
	ParseSpecial bool
	// Plain is for text that is only text, such as a chat message: no special
	// token is matched, and no control, unknown or user-defined token can come
	// out by other ways (but for user-defined ones of whitespace or of a single
	// character, which are spelling). It overrides ParseSpecial.
	Plain bool
}

// Encode gives the ids of a text. Special tokens are looked for first, the
// longest first, and the text between them is split and merged on its own.
// Invalid UTF-8 counts as one U+FFFD a byte, as in llama.cpp. A character that
// the vocabulary has neither as a token nor as bytes becomes the unknown token
// where the file names one, and is dropped where it does not. Time is
// O(n log n) in the length of the text.
func (t *Tokenizer) Encode(text string, opts Options) []int32 {
	ids, _ := t.EncodeContext(context.Background(), text, opts) // which never ends
	return ids
}

// EncodeContext is Encode until ctx ends; then it soon gives ctx's error.
func (t *Tokenizer) EncodeContext(ctx context.Context, text string, opts Options) ([]int32, error) {
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	var out []int32
	if opts.AddSpecial && t.addBOS {
		out = append(out, t.bos)
	}
	e := newEncoder(ctx, t, opts.Plain)
	parts := []fragment{{text, 0, none}}
	if !opts.Plain {
		parts = t.marked.partition(&e.until, text, opts.ParseSpecial)
	}
	return e.fragments(out, parts)
}

// Least is the fewest tokens that a text of so many bytes can have, whatever it says: 0 where nothing is known, as the
// vocabulary lacks bytes, so that Encode may drop what it can't write.
func (t *Tokenizer) Least(bytes int) int {
	if t.longest == 0 {
		return 0
	}
	return (bytes + t.longest - 1) / t.longest
}

// longestPiece is the length in bytes of the longest token, no less than what any covers of a text; 0 where characters may be dropped.
func (t *Tokenizer) longestPiece() (n int) {
	for _, id := range t.atoms.byByte {
		if id == none || t.types[id].hidden() {
			return 0
		}
	}
	for _, text := range t.tokens {
		n = max(n, len(text))
	}
	return n
}

// BOS is the token that begins a text, if the file names one.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos != none }

// EOS is the token that ends a text, if the file names one.
func (t *Tokenizer) EOS() (int32, bool) { return t.eos, t.eos != none }

// AddBOS says whether the model wants a BOS in front of its prompts: the
// file's add_bos_token, or the family's default where the file is silent.
func (t *Tokenizer) AddBOS() bool { return t.addBOS }

// EndTokens are the ids after which generation stops, ascending: the file's
// eos, eot and eom tokens and those that llama.cpp takes for such by name. The
// slice is the caller's.
func (t *Tokenizer) EndTokens() []int32 { return slices.Clone(t.ends) }

// VocabSize is the number of tokens; ids are 0 to VocabSize()-1.
func (t *Tokenizer) VocabSize() int { return len(t.tokens) }

// ID finds a token by its text in the file, where byte-level vocabularies
// write a space as Ġ and the others as ▁.
func (t *Tokenizer) ID(piece string) (int32, bool) {
	id, ok := t.ids[piece]
	return id, ok
}

// Type is a token's type: the file's, but for tokens that are special by
// their name (see end.go). It is Undefined for an id outside the vocabulary.
func (t *Tokenizer) Type(id int32) Type {
	if !t.has(id) {
		return Undefined
	}
	return t.types[id]
}

func (t *Tokenizer) has(id int32) bool { return id >= 0 && int(id) < len(t.tokens) }
