package main

import (
	"slices"

	"github.com/sluicehost/sluice/sdk"
)

// config is the shape of a gemma4 file.
type config struct {
	facts         sdk.Facts
	eps           float64
	heads         []int  // query heads per layer
	kvHeads       []int  // KV heads per layer
	slides        []bool // per layer: attention over a window
	full, sliding attention
	denseFF       []int // per layer
	expertFF      int
	softCap       float64 // of the logits; 0 is none
}

// attention is what the layers of one kind have in common.
type attention struct {
	name     string // of its rope table
	headDim  int
	ropeDims int
	ropeBase float64
	divisor  string // tensor that divides the rotations' angles
	window   int    // positions that a token sees, itself included; 0 is all
}

func readConfig(m *sdk.Metadata) (sdk.Model, error) {
	refuseKinds(m)
	if err := m.Err(); err != nil {
		return nil, err // what else such a file lacks would only hide the reason
	}
	layers := m.Size("block_count")
	c := &config{
		facts:    m.Facts(layers),
		eps:      m.Positive("attention.layer_norm_rms_epsilon"),
		heads:    m.Ints("attention.head_count", layers),
		kvHeads:  m.Ints("attention.head_count_kv", layers),
		slides:   m.Bools("attention.sliding_window_pattern", layers),
		denseFF:  m.Ints("feed_forward_length", layers),
		expertFF: m.Size("expert_feed_forward_length"),
		softCap:  m.Float("final_logit_softcapping", 30), // llama.cpp caps files without the key
	}
	c.full = attention{
		name: "rope", headDim: headDim(m, ""), ropeBase: m.Positive("rope.freq_base", 10000), divisor: "rope_freqs.weight",
	}
	c.full.ropeDims = m.Size("rope.dimension_count", max(c.full.headDim, 1))
	c.sliding = attention{
		name: "rope_swa", headDim: headDim(m, "_swa"), ropeBase: m.Positive("rope.freq_base_swa", 10000),
		ropeDims: m.Size("rope.dimension_count_swa"), window: m.Size("attention.sliding_window"),
	}
	for key, sizes := range map[string][]int{"attention.head_count": c.heads, "attention.head_count_kv": c.kvHeads, "feed_forward_length": c.denseFF} {
		if i := slices.Index(sizes, 0); i >= 0 {
			m.Refuse("key gemma4.%s: have 0 in layer %d, want 1 or more", key, i)
		}
	}
	if t, ok := m.Tensor(c.full.divisor); ok && (len(t.Dims) != 1 || t.Dims[0] != uint64(c.full.headDim/2)) {
		m.Refuse("tensor %s: have shape %v, want [%d]: a divisor for each pair of a head", t.Name, t.Dims, c.full.headDim/2)
	}
	if c.softCap < 0 {
		m.Refuse("key gemma4.final_logit_softcapping: have %g, want 0 (none) or more", c.softCap)
	}
	return c, m.Err()
}

// headDim is the size of the heads of a kind of layer, which keys and values share.
func headDim(m *sdk.Metadata, kind string) int {
	k, v := m.Size("attention.key_length"+kind), m.Size("attention.value_length"+kind)
	if k != v {
		m.Refuse("keys gemma4.attention.key_length%s and value_length%s: have %d and %d, want them equal", kind, kind, k, v)
	}
	return k
}

// refuseKinds refuses the members of the family that are not of this kind.
func refuseKinds(m *sdk.Metadata) {
	if m.Int("expert_count", 0) == 0 {
		m.Refuse("key gemma4.expert_count: have 0 or none, want experts: a dense Gemma 4 model needs all of its weights for every token, " +
			"so that there is nothing to stream from disk (run it with another program)")
	}
	if n := m.Int("attention.shared_kv_layers", 0); n > 0 {
		m.Refuse("key gemma4.attention.shared_kv_layers: have %d, want 0: layers that use another layer's keys and values are not supported", n)
	}
	if n := m.Int("embedding_length_per_layer_input", 0); n > 0 {
		m.Refuse("key gemma4.embedding_length_per_layer_input: have %d, want 0: embeddings per layer are not supported", n)
	}
	if f := m.Float("rope.scaling.factor", 1); f != 1 {
		m.Refuse("key gemma4.rope.scaling.factor: have %g, want 1: scaled rotations are not supported", f)
	}
}

func (c *config) Facts() sdk.Facts { return c.facts }
