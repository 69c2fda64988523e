package tokenizer_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/tokenizer"
)

// golden is the part of a golden file (golden/README.md) that is about tokens.
type golden struct {
	Tokenize []struct {
		Text         string
		ParseSpecial bool `json:"parse_special"`
		IDs          []int32
	}
	Cases []struct {
		Name         string
		PromptText   *string `json:"prompt_text"`
		AddSpecial   bool    `json:"prompt_add_special"`
		ParseSpecial bool    `json:"prompt_parse_special"`
		Tokens       []int32
	}
}

// absent skips, but fails where the data must be there.
func absent(t *testing.T, dir string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s: have no golden files there, want them in CI", dir)
	}
	t.Skipf("%s: no golden files there (SLUICE_GOLDEN names their folder)", dir)
}

// TestGolden compares with llama.cpp's ids on the random models.
func TestGolden(t *testing.T) {
	dir := os.Getenv("SLUICE_GOLDEN")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "golden")
	} else if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", "..", dir)
	}
	if _, err := os.Stat(dir); err != nil {
		absent(t, dir)
	}
	for _, arch := range []string{"lfm2moe", "qwen35moe", "gemma4", "bailingmoe3"} {
		files, err := filepath.Glob(filepath.Join(dir, arch, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Errorf("%s/%s: have no golden files, want some", dir, arch)
		}
		for _, f := range files {
			model := f[:len(f)-len(".json")] + ".gguf"
			t.Run(arch+"/"+filepath.Base(f), func(t *testing.T) { compareGolden(t, f, model) })
		}
	}
}

// TestGoldenTiny compares with llama.cpp's ids on the models that are shipped.
func TestGoldenTiny(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "models")
	files, err := filepath.Glob(filepath.Join(dir, "golden", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		absent(t, dir)
	}
	for _, f := range files {
		arch := filepath.Base(f[:len(f)-len(".json")])
		t.Run(arch, func(t *testing.T) { compareGolden(t, f, filepath.Join(dir, "tiny-"+arch+".gguf")) })
	}
}

func open(t testing.TB, path string) *tokenizer.Tokenizer {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.New(f.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func compareGolden(t *testing.T, file, model string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	tok := open(t, model)
	if len(g.Tokenize) == 0 || len(g.Cases) == 0 {
		t.Fatalf("%s: have %d texts and %d cases, want some", file, len(g.Tokenize), len(g.Cases))
	}
	for _, c := range g.Tokenize {
		got := tok.Encode(c.Text, tokenizer.Options{ParseSpecial: c.ParseSpecial})
		if !slices.Equal(got, c.IDs) {
			t.Errorf("Encode(%q, parse %v)\nhave %v\nwant %v", c.Text, c.ParseSpecial, got, c.IDs)
		}
		roundTrip(t, tok, c.Text)
	}
	prompts := 0
	for _, c := range g.Cases {
		if c.PromptText == nil {
			continue
		}
		prompts++
		got := tok.Encode(*c.PromptText, tokenizer.Options{AddSpecial: c.AddSpecial, ParseSpecial: c.ParseSpecial})
		if !slices.Equal(got, c.Tokens) {
			t.Errorf("%s: Encode(%q)\nhave %v\nwant %v", c.Name, *c.PromptText, got, c.Tokens)
		}
	}
	if prompts == 0 {
		t.Errorf("%s: have no case with a text, want some", file)
	}
	userText(t, tok)
}

// roundTrip decodes what was encoded in each way that a text can be.
func roundTrip(t *testing.T, tok *tokenizer.Tokenizer, text string) {
	t.Helper()
	want := text
	if _, byteLevel := tok.ID("Ġ"); !byteLevel {
		want = strings.ReplaceAll(text, "▁", " ") // the same to gemma4
	}
	for _, o := range []tokenizer.Options{{}, {ParseSpecial: true}, {Plain: true}} {
		if got := tok.Decode(tok.Encode(text, o), true); got != want {
			t.Errorf("%+v: have %q, want %q", o, got, want)
		}
	}
}

// userText checks that special tokens that a user types are plain pieces.
func userText(t *testing.T, tok *tokenizer.Tokenizer) {
	t.Helper()
	for id := range int32(tok.VocabSize()) {
		switch tok.Type(id) {
		case tokenizer.Control, tokenizer.Unknown, tokenizer.UserDefined:
		default:
			continue
		}
		text := fmt.Sprintf("say %s twice: %[1]s%[1]s", tok.Piece(id))
		for _, got := range tok.Encode(text, tokenizer.Options{Plain: true, ParseSpecial: true}) {
			switch tok.Type(got) {
			case tokenizer.Control, tokenizer.Unknown, tokenizer.UserDefined:
				t.Errorf("Encode(%q, plain): have token %d %q, want plain pieces", text, got, tok.Piece(got))
			}
		}
		roundTrip(t, tok, text)
	}
}
