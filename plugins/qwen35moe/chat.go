package main

import (
	_ "embed"

	"github.com/sluicehost/sluice/sdk"
)

//go:embed chat.jinja
var chatTemplate string

// Chat says how Qwen3.5 and 3.6 talk: they think, from the generation prompt on,
// unless told not to.
func (c *config) Chat() sdk.Chat {
	return sdk.Chat{
		Template:         chatTemplate,
		Stop:             []string{"<|im_end|>", "<|endoftext|>"},
		ThinkOpen:        "<think>",
		ThinkClose:       "</think>",
		OpensThinking:    true,
		ThinkingOptional: true,
	}
}
