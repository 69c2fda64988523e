package chat_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/chat"
	"github.com/sluicehost/sluice/core/tokenizer"
	"github.com/sluicehost/sluice/sdk/program"
)

var (
	tags    = &program.Chat{ThinkOpen: "<think>", ThinkClose: "</think>"}
	channel = &program.Chat{ThinkOpen: "<|channel>", ThinkClose: "<channel|>", ThinkPreamble: "thought\n"}
)

// merged joins neighbours of one kind.
func merged(parts []chat.Part) (out []chat.Part) {
	for _, p := range parts {
		if n := len(out); n > 0 && out[n-1].Thought == p.Thought {
			out[n-1].Text += p.Text
			continue
		}
		out = append(out, p)
	}
	return out
}

// splitAt feeds a text in these pieces.
func splitAt(facts *program.Chat, thinking bool, pieces []string) []chat.Part {
	s := chat.NewSplit(facts, thinking)
	var parts []chat.Part
	for _, p := range pieces {
		parts = append(parts, s.Push(p)...)
	}
	return merged(append(parts, s.Flush()...))
}

func TestSplit(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	say, think := func(s string) chat.Part { return chat.Part{Text: s} }, func(s string) chat.Part { return chat.Part{Text: s, Thought: true} }
	for name, c := range map[string]struct {
		facts    *program.Chat
		thinking bool
		text     string
		want     []chat.Part
	}{
		"plain":                {tags, false, " Paris.\n", []chat.Part{say(" Paris.\n")}},
		"no delimiters":        {&program.Chat{}, false, "<think>x</think>y", []chat.Part{say("<think>x</think>y")}},
		"no facts":             {nil, false, "x", []chat.Part{say("x")}},
		"opened by the prompt": {tags, true, "I know.\n</think>\n\nParis.", []chat.Part{think("I know."), say("Paris.")}},
		"opened by the model":  {tags, false, "<think>\nI\n\nknow.\n</think>\n\nParis. ", []chat.Part{think("I\n\nknow."), say("Paris. ")}},
		"empty thought":        {tags, false, "<think>\n\n</think>\n\nParis.", []chat.Part{say("Paris.")}},
		"cut off":              {tags, true, "hm \n", []chat.Part{think("hm")}},
		"cut in a delimiter":   {tags, true, "hm</thi", []chat.Part{think("hm</thi")}},
		"begun delimiter":      {tags, false, "a <thin b <think", []chat.Part{say("a <thin b <think")}},
		"preamble":             {channel, false, "<|channel>thought\nhm<channel|>Paris.", []chat.Part{think("hm"), say("Paris.")}},
		"other preamble":       {channel, false, "<|channel>plan\nhm<channel|>Paris.", []chat.Part{think("plan\nhm"), say("Paris.")}},
		"preamble alone":       {channel, false, "<|channel>thought\n<channel|>Paris.", []chat.Part{say("Paris.")}},
		"half a preamble":      {channel, false, "<|channel>tho", []chat.Part{think("tho")}},
		"two thoughts":         {channel, false, "A<|channel>thought\nb<channel|> C<|channel>thought\nd<channel|>E", []chat.Part{say("A"), think("b"), say("C"), think("d"), say("E")}},
		"closed twice":         {tags, true, "a</think>b</think>c", []chat.Part{think("a"), say("b</think>c")}},
		"looks like an end":    {tags, true, "a</<</think>b", []chat.Part{think("a</<"), say("b")}},
		"nothing":              {tags, true, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if have := splitAt(c.facts, c.thinking, []string{c.text}); !slices.Equal(have, c.want) {
				t.Errorf("have %+v, want %+v", have, c.want)
			}
			if have := splitAt(c.facts, c.thinking, strings.Split(c.text, "")); !slices.Equal(have, c.want) {
				t.Errorf("byte by byte: have %+v, want %+v", have, c.want)
			}
			for range 50 {
				var pieces []string
				for rest := c.text; rest != ""; {
					n := 1 + rnd.IntN(len(rest))
					pieces, rest = append(pieces, rest[:n]), rest[n:]
				}
				if have := splitAt(c.facts, c.thinking, pieces); !slices.Equal(have, c.want) {
					t.Fatalf("%q: have %+v, want %+v", pieces, have, c.want)
				}
			}
		})
	}
}

// TestSplitStreams: text that can be no delimiter comes at once.
func TestSplitStreams(t *testing.T) {
	s := chat.NewSplit(tags, false)
	for _, p := range []string{"The ", "answer", " is 4"} {
		if have := merged(s.Push(p)); len(have) != 1 || have[0].Text != p {
			t.Errorf("have %+v, want %q at once", have, p)
		}
	}
}

// TestReader: control tokens open and close thoughts though they have no text of
// their own, and characters may be cut anywhere.
func TestReader(t *testing.T) {
	for _, f := range families(t) {
		facts := tags
		if _, ok := f.tok.ID("<|channel>"); ok {
			facts = channel
		}
		format, err := chat.New(f.templates["file"], f.tok, facts)
		if err != nil {
			t.Fatal(err)
		}
		text := facts.ThinkOpen + facts.ThinkPreamble + "Zoë 中文?" + facts.ThinkClose + "Ja 🦊."
		r := format.Read(chat.Prompt{})
		var parts []chat.Part
		for _, id := range f.tok.EncodeParts([]tokenizer.Part{{Text: text}}) {
			parts = append(parts, r.Push(id)...)
		}
		want := []chat.Part{{Text: "Zoë 中文?", Thought: true}, {Text: "Ja 🦊."}}
		if have := merged(append(parts, r.Flush()...)); !slices.Equal(have, want) {
			t.Errorf("%s: have %+v, want %+v", f.name, have, want)
		}
	}
}
