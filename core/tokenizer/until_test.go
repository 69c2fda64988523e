package tokenizer

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// lookedAt is a context that ends after so many looks at it, and counts them.
type lookedAt struct {
	context.Context
	most, looks int
}

func (c *lookedAt) Err() error {
	if c.looks++; c.looks > c.most {
		return context.Canceled
	}
	return nil
}

// TestEncodeEnds: whatever a long text is, of many words or of one, its context is looked at all the while, and no more once it has ended.
func TestEncodeEnds(t *testing.T) {
	const n = 1 << 17
	for _, f := range testFamilies {
		tok := newTest(t, testVocabulary(t, f.model, f.pre, 250))
		for name, text := range map[string]string{
			"mixed": strings.Repeat(sample, n/len(sample)), "word": strings.Repeat("thekingsmensaid", n/15), "blanks": strings.Repeat(" ", n), "specials": strings.Repeat("<think>", n/7),
		} {
			for kind, encode := range map[string]func(ctx context.Context) ([]int32, error){
				"encode": func(ctx context.Context) ([]int32, error) {
					return tok.EncodeContext(ctx, text, Options{ParseSpecial: true})
				},
				"plain": func(ctx context.Context) ([]int32, error) {
					return tok.EncodeContext(ctx, text, Options{Plain: true})
				},
				"parts": func(ctx context.Context) ([]int32, error) {
					return tok.EncodePartsContext(ctx, []Part{{text[:n/2], false}, {text[n/2:], true}})
				},
			} {
				all := &lookedAt{Context: t.Context(), most: 1 << 30}
				if ids, err := encode(all); err != nil || len(ids) == 0 || all.looks < len(ids)/looks {
					t.Errorf("%s, %s, %s: have %d ids, %v, the context looked at %d times", f.name, name, kind, len(ids), err, all.looks)
				}
				for _, most := range []int{0, 1, all.looks / 2, all.looks - 1} {
					ctx := &lookedAt{Context: t.Context(), most: most}
					if ids, err := encode(ctx); !errors.Is(err, context.Canceled) || ids != nil || ctx.looks > most+1 {
						t.Errorf("%s, %s, %s: have %d ids, %v, want an end after %d looks, not %d", f.name, name, kind, len(ids), err, most+1, ctx.looks)
					}
				}
			}
		}
	}
}

// TestLeast: no text has fewer tokens than Least says, and where bytes are missing it says nothing.
func TestLeast(t *testing.T) {
	rnd := random(t)
	for _, f := range testFamilies {
		md := testVocabulary(t, f.model, f.pre, 250)
		tok := newTest(t, md)
		if tok.Least(0) != 0 || tok.Least(1) != 1 || tok.Least(64<<20) < 1<<20 {
			t.Errorf("%s: have %d, %d, %d", f.name, tok.Least(0), tok.Least(1), tok.Least(64<<20))
		}
		for range 300 {
			text := randomText(rnd, 100)
			for _, o := range []Options{{}, {ParseSpecial: true}, {Plain: true}} {
				if have, least := len(tok.Encode(text, o)), tok.Least(len(text)); have < least {
					t.Errorf("%s: %q: have %d tokens, want at least %d", f.name, text, have, least)
				}
			}
		}
		tok.atoms.byByte['x'] = none
		if tok.longestPiece() != 0 {
			t.Errorf("%s: have a length without a byte's token", f.name)
		}
	}
}
