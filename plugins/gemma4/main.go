// Command gemma4 is the architecture plugin for Gemma 4 mixture-of-experts models: attention
// over a sliding window with a full layer now and then, and in every layer a dense
// feed-forward block beside the routed experts, with RMS norms before and after each branch.
// config.go reads the shape, layers.go writes the forward pass, chat.go says how the family talks.
package main

import "github.com/sluicehost/sluice/sdk"

func main() { sdk.Serve(architecture{}) }

// architecture runs files whose general.architecture is gemma4.
type architecture struct{}

func (architecture) Describe() sdk.Description {
	return sdk.Description{Name: "gemma4", Version: "0.1.0"}
}

func (architecture) Configure(m *sdk.Metadata) (sdk.Model, error) { return readConfig(m) }
