// Command lfm2moe is the architecture plugin for LFM2 and LFM2.5 mixture-of-experts
// models: gated short convolutions with a few attention layers between them, dense
// feed-forward blocks first and routed experts after. config.go reads the shape,
// layers.go writes the forward pass, chat.go says how the family talks.
package main

import "github.com/sluicehost/sluice/sdk"

func main() { sdk.Serve(architecture{}) }

// architecture runs files whose general.architecture is lfm2moe.
type architecture struct{}

func (architecture) Describe() sdk.Description {
	return sdk.Description{Name: "lfm2moe", Version: "0.1.0"}
}

func (architecture) Configure(m *sdk.Metadata) (sdk.Model, error) { return readConfig(m) }
