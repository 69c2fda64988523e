package main

import (
	_ "embed"

	"github.com/sluicehost/sluice/sdk"
)

//go:embed chat.jinja
var chatTemplate string

// Chat says how LFM2.5 talks: it always thinks, from the generation prompt on.
func (c *config) Chat() sdk.Chat {
	return sdk.Chat{
		Template:      chatTemplate,
		Stop:          []string{"<|im_end|>", "<|endoftext|>"},
		ThinkOpen:     "<think>",
		ThinkClose:    "</think>",
		OpensThinking: true,
	}
}
