package main

import "github.com/sluicehost/sluice/sdk"

// Chat says how LFM2.5 talks: it always thinks, from the generation prompt on.
func (c *config) Chat() sdk.Chat {
	return sdk.Chat{
		Stop:          []string{"<|im_end|>", "<|endoftext|>"},
		ThinkOpen:     "<think>",
		ThinkClose:    "</think>",
		OpensThinking: true,
	}
}
