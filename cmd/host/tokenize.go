package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/core/tokenizer"
)

type tokenizeCmd struct {
	modelFlags
	Decode  bool `help:"Turn ids into text."`
	Special bool `help:"With --decode: control tokens appear in the text."`
}

// Help is the command's long help.
func (tokenizeCmd) Help() string {
	return `Each line in is an object {"text":"...","parse_special":true}, each line out {"ids":[...]}, never with a BOS. parse_special (default true) says whether control tokens in the text are recognized.

With --decode each line in is {"ids":[...]} and each line out {"text":"..."}; invalid UTF-8 becomes U+FFFD.

A line that can't be used gives {"error":"..."}, and the exit code is 1 in the end.`
}

// tokenizeLine is a line of input of either direction, so that a line may hold both.
type tokenizeLine struct {
	Text         *string `json:"text"`
	ParseSpecial *bool   `json:"parse_special"`
	IDs          idList  `json:"ids"`
}

// Run answers line by line.
func (c *tokenizeCmd) Run(a *app) error {
	if c.Special && !c.Decode {
		return errors.New("--special goes with --decode")
	}
	f, err := c.open()
	if err != nil {
		return err
	}
	defer f.Close()
	t, err := tokenizer.New(f.Metadata)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return a.eachLine(func(ctx context.Context, l line) (any, bool) {
		out, err := c.answer(ctx, t, l)
		if err != nil {
			return map[string]string{"error": err.Error()}, true
		}
		return out, false
	})
}

func (c *tokenizeCmd) answer(ctx context.Context, t *tokenizer.Tokenizer, l line) (any, error) {
	if l.err != nil {
		return nil, l.err
	}
	var in tokenizeLine
	if err := parse(l.text, &in); err != nil {
		return nil, err
	}
	if c.Decode {
		if in.IDs == nil {
			return nil, errors.New(`have no "ids", want a list of token ids`)
		}
		if err := checkIDs(t, in.IDs); err != nil {
			return nil, err
		}
		return map[string]string{"text": t.Decode(in.IDs, c.Special)}, nil
	}
	if in.Text == nil {
		return nil, errors.New(`have no "text", want a string`)
	}
	ids, err := t.EncodeContext(ctx, *in.Text, tokenizer.Options{ParseSpecial: in.ParseSpecial == nil || *in.ParseSpecial})
	if err != nil {
		return nil, err
	}
	return map[string][]int32{"ids": append([]int32{}, ids...)}, nil
}

// checkIDs refuses ids outside the vocabulary.
func checkIDs(t *tokenizer.Tokenizer, ids []int32) error {
	for i, id := range ids {
		if id < 0 || int(id) >= t.VocabSize() {
			return fmt.Errorf("token %d: have id %d, want 0 to %d", i, id, t.VocabSize()-1)
		}
	}
	return nil
}
