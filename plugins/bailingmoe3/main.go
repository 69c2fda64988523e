// Command bailingmoe3 is the architecture plugin for Ling 3.0 mixture-of-experts models: Kimi
// Delta Attention with a multi-head latent attention layer after every few, dense feed-forward
// blocks first, then routed experts, picked by groups, beside a shared one. config.go reads the
// shape, layers.go writes the forward pass, chat.go says how the family talks.
package main

import "github.com/sluicehost/sluice/sdk"

func main() { sdk.Serve(architecture{}) }

// architecture runs files whose general.architecture is bailingmoe3.
type architecture struct{}

func (architecture) Describe() sdk.Description {
	return sdk.Description{Name: "bailingmoe3", Version: "0.1.0"}
}

func (architecture) Configure(m *sdk.Metadata) (sdk.Model, error) { return readConfig(m) }
