package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// modelFlags name the model.
type modelFlags struct {
	Model string `short:"m" placeholder:"FILE" help:"GGUF file; any part of a split model will do. A store's folder is taken as --store."`
	Store string `placeholder:"DIR" help:"Store that ingest has made: its folder, or its name in the default place, as store ls shows it. With --model, too, it must be made from that file."`
}

// registryPath names the registry.
type registryPath struct {
	Registry string `placeholder:"FILE" help:"Registry of plugins. Default: $$SLUICE_REGISTRY, registry.yaml beside this program or in the folder above, or sluice/registry.yaml in the user's config folder."`
}

// registryFlags say where plugins come from.
type registryFlags struct {
	registryPath
	PluginDev []devPlugin `sep:"none" placeholder:"NAME[=PATH]" help:"Run this plugin without a checksum: the registry's program, or the one at PATH. For development only; may be repeated."`
}

// devPlugin is a plugin that runs unchecked.
type devPlugin struct{ name, path string }

// UnmarshalText reads NAME or NAME=PATH.
func (d *devPlugin) UnmarshalText(text []byte) error {
	name, path, given := strings.Cut(string(text), "=")
	if name == "" || given && path == "" {
		return errors.New("want NAME or NAME=PATH")
	}
	*d = devPlugin{name, path}
	return nil
}

// engineFlags shape how a model is loaded.
type engineFlags struct {
	GPUBudget budget   `name:"gpu-budget" default:"auto" placeholder:"SIZE" help:"Bytes of GPU memory to use in all, as in 512MB, 4GB or 1.5GiB; max to hold every expert; auto (the default) for what the driver reports free less a tenth, half of the available memory on a CPU device, or 4GiB where nothing is known."`
	Ctx       int      `short:"c" placeholder:"N" help:"Tokens that prompt and answer together may have. Default: the file's context length, at most 4096."`
	KV        string   `name:"kv" enum:"f16,f32" default:"${kv=f16}" help:"Precision of the KV caches: f16 or f32 (default ${kv=f16})."`
	Chunk     int      `placeholder:"N" help:"Most tokens of a prompt that go through the model at once (default 256, and up to 2048 where the experts don't all fit: each chunk reads them once)."`
	Evict     eviction `default:"freq" placeholder:"POLICY" help:"Which experts make room for others: freq (default), those with the lowest frequency, where a use counts half as much after 8 tokens, or with freq:TOKENS after that many; or lru, the least recently used."`
	Routing   string   `enum:"gpu,wait" default:"${routing=gpu}" help:"How a token finds its experts: gpu (default) resolves them on the GPU, several layers ahead; wait reads each layer's routing back first. Tokens are the same."`
	Lookahead depth    `default:"${lookahead=auto}" placeholder:"N" help:"MoE layers ahead whose experts are guessed and read: auto (default) for what pays, or 0 for none, or as many as N, up to what the model's plan guesses; with --routing gpu only."`
	readingFlags
	Adapter string `placeholder:"NAME" help:"Use the GPU whose name or driver contains this. Default: the strongest."`
}

// depth is the value of --lookahead in the engine's terms: 0 for auto, below 0 for none.
type depth int

// maxDepth is far above any plan's.
const maxDepth = 1 << 16

// UnmarshalText reads auto or a number of layers.
func (d *depth) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 64)
	switch {
	case string(text) == "auto":
		*d = 0
	case err != nil || n > maxDepth:
		return fmt.Errorf("have %q, want auto or a number of layers", text)
	case n == 0:
		*d = -1
	default:
		*d = depth(n)
	}
	return nil
}

// check refuses numbers that mean nothing.
func (e engineFlags) check() error {
	switch {
	case e.Routing == "wait" && e.Lookahead > 0:
		return fmt.Errorf("--lookahead: have %d with --routing wait, want none: guesses are made where routing is on the GPU", e.Lookahead)
	case e.Ctx < 0:
		return fmt.Errorf("--ctx: have %s, want 1 or more, or 0 for the default", plural(e.Ctx, "token"))
	case e.Chunk < 0:
		return fmt.Errorf("--chunk: have %s, want 1 or more, or 0 for the default", plural(e.Chunk, "token"))
	}
	return e.readingFlags.check()
}
