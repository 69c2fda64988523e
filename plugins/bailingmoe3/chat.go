package main

import "github.com/sluicehost/sluice/sdk"

// Chat says how Ling 3.0 talks: the generation prompt opens a thought, and closes it at once
// where thinking is off.
func (c *config) Chat() sdk.Chat {
	return sdk.Chat{
		Stop:             []string{"<|role_end|>", "<|endoftext|>"},
		ThinkOpen:        "<think>",
		ThinkClose:       "</think>",
		OpensThinking:    true,
		ThinkingOptional: true,
	}
}
