package main

import "github.com/sluicehost/sluice/sdk"

// Chat says how Gemma 4 talks: it opens a thought itself, as a channel named thought; where
// thinking is off, the generation prompt holds an empty one.
func (c *config) Chat() sdk.Chat {
	return sdk.Chat{
		Stop:             []string{"<turn|>"},
		ThinkOpen:        "<|channel>",
		ThinkClose:       "<channel|>",
		ThinkPreamble:    "thought\n",
		ThinkingOptional: true,
	}
}
