package main

import (
	_ "embed"

	"github.com/sluicehost/sluice/sdk"
)

//go:embed chat.jinja
var chatTemplate string

// Chat says how Gemma 4 talks: it thinks only where asked to, and opens its
// thought itself, as a channel with a name.
func (c *config) Chat() sdk.Chat {
	return sdk.Chat{
		Template:         chatTemplate,
		Stop:             []string{"<turn|>", "<eos>"},
		ThinkOpen:        "<|channel>",
		ThinkClose:       "<channel|>",
		ThinkPreamble:    "thought\n",
		ThinkingOptional: true,
	}
}
