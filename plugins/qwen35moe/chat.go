package main

import "github.com/sluicehost/sluice/sdk"

// Chat says how Qwen3.5 talks: the generation prompt opens a thought unless thinking is off.
func (c *config) Chat() sdk.Chat {
	return sdk.Chat{
		Stop:             []string{"<|im_end|>", "<|endoftext|>"},
		ThinkOpen:        "<think>",
		ThinkClose:       "</think>",
		OpensThinking:    true,
		ThinkingOptional: true,
	}
}
