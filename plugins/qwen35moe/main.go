// Command qwen35moe is the architecture plugin for Qwen3.5 and Qwen3.6 mixture-of-experts
// models: Gated DeltaNet layers with a full attention layer after every few, and in each
// block routed experts beside a gated shared one. config.go reads the shape, layers.go
// writes the forward pass, chat.go says how the family talks.
package main

import "github.com/sluicehost/sluice/sdk"

func main() { sdk.Serve(architecture{}) }

// architecture runs files whose general.architecture is qwen35moe.
type architecture struct{}

func (architecture) Describe() sdk.Description {
	return sdk.Description{Name: "qwen35moe", Version: "0.1.0"}
}

func (architecture) Configure(m *sdk.Metadata) (sdk.Model, error) { return readConfig(m) }
