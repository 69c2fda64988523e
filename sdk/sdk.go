// Package sdk is what the author of an architecture plugin imports: the
// interfaces to implement, typed access to GGUF metadata, and Serve. A plugin
// turns a GGUF header into data (a plan and a program); it sees no weights, no
// GPU and no tokens, and is asked only while a model loads.
//
// The main starting point is the Architecture interface; sdk/layer holds the
// layers that Encode is written with.
package sdk

import (
	"github.com/sluicehost/sluice/sdk/layer"
	"github.com/sluicehost/sluice/sdk/rpc"
)

// Protocol is the version of the contract that this sdk speaks. Host and
// plugin agree on one at the handshake.
const Protocol = rpc.Protocol

// Description says which plugin this is.
type Description struct {
	Name          string   // as in registry.yaml
	Version       string   // of the plugin, semver
	Architectures []string // values of general.architecture that it runs; empty means Name
}

// Architecture is what a plugin implements: one family of models.
type Architecture interface {
	Describe() Description
	// Configure reads a model's shape from the metadata. It refuses what the
	// plugin can't run by naming the key or tensor; m.Err() reports every
	// missing or mistyped key at once.
	Configure(m *Metadata) (Model, error)
}

// Model is one file of the family, configured.
type Model interface {
	// Facts says what the host must know besides the program.
	Facts() Facts
	// Encode writes the program of one step. It runs several times: to find
	// which weights and expert records the program needs, then, once the host
	// has placed them, for one token and for many. It must do the same each time.
	Encode(e *layer.Encoder)
}

// ModelWithChat is a Model that knows how its family talks, for files without
// a chat template of their own.
type ModelWithChat interface {
	Model
	Chat() Chat
}

// Facts are a model's dimensions, in the terms of GGUF's keys.
type Facts struct {
	Layers  int // layers that run (block_count less those of nextn_predict_layers)
	Hidden  int // embedding_length
	Vocab   int // rows of the head
	Experts int // expert_count
	TopK    int // expert_used_count
	Context int // context_length, tokens
}

// Chat is how a family talks.
type Chat struct {
	Template         string   // Jinja, used where the file carries none
	Stop             []string // tokens that end a turn, beside the file's end tokens
	ThinkOpen        string   // token that opens a thought, empty where there are none
	ThinkClose       string
	ThinkPreamble    string // what stands between ThinkOpen and the thought itself
	OpensThinking    bool   // the generation prompt ends inside a thought
	ThinkingOptional bool   // thinking can be switched off
}
