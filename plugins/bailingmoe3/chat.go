package main

import (
	_ "embed"

	"github.com/sluicehost/sluice/sdk"
)

//go:embed chat.jinja
var chatTemplate string

// Chat says how Ling 3.0 talks: it thinks, from the generation prompt on, unless
// told not to.
func (c *config) Chat() sdk.Chat {
	return sdk.Chat{
		Template:         chatTemplate,
		Stop:             []string{"<|role_end|>", "<|endoftext|>"},
		ThinkOpen:        "<think>",
		ThinkClose:       "</think>",
		OpensThinking:    true,
		ThinkingOptional: true,
	}
}
