package main

import (
	"math"

	"github.com/sluicehost/sluice/sdk"
	"github.com/sluicehost/sluice/sdk/layer"
)

// config is the shape of a qwen35moe file.
type config struct {
	facts     sdk.Facts
	eps       float64
	recurrent []bool // per layer: Gated DeltaNet, else full attention

	// Gated DeltaNet
	keyHeads, valueHeads int
	state                int // size of a head, and of its square state's sides
	taps                 int // width of the convolution

	// full attention
	heads    int
	kvHeads  []int // per layer
	headDim  int
	ropeDims int // of a head's, from the first on
	ropeBase float64

	expertFF, sharedFF int
}

func readConfig(m *sdk.Metadata) (sdk.Model, error) {
	layers := m.Trunk()
	facts, heads := m.Facts(layers), m.Size("attention.head_count")
	headDim := m.Size("attention.key_length", facts.Hidden/max(heads, 1))
	c := &config{
		facts:      facts,
		eps:        m.Positive("attention.layer_norm_rms_epsilon"),
		recurrent:  recurrent(m, layers),
		keyHeads:   m.Size("ssm.group_count"),
		valueHeads: m.Size("ssm.time_step_rank"),
		state:      m.Size("ssm.state_size"),
		taps:       m.Size("ssm.conv_kernel"),
		heads:      heads,
		kvHeads:    m.Ints("attention.head_count_kv", layers),
		headDim:    headDim,
		ropeDims:   m.Size("rope.dimension_count", headDim),
		ropeBase:   m.Positive("rope.freq_base", 10000),
		expertFF:   m.Size("expert_feed_forward_length"),
		sharedFF:   m.Size("expert_shared_feed_forward_length"),
	}
	c.checkDeltaNet(m)
	c.checkAttention(m)
	return c, m.Err()
}

// recurrent tells the Gated DeltaNet layers from those with full attention: by list where
// the file has one, else every few layers one is full.
func recurrent(m *sdk.Metadata, layers int) []bool {
	interval := m.Size("full_attention_interval", 4)
	if m.Has("attention.recurrent_layers") {
		return m.Bools("attention.recurrent_layers", layers)
	}
	list := m.Bools("attention.recurrent_layers", layers, true)
	for i := range list {
		list[i] = (i+1)%max(interval, 1) != 0
	}
	return list
}

func (c *config) checkDeltaNet(m *sdk.Metadata) {
	if inner := m.Size("ssm.inner_size"); inner != c.valueDim() {
		m.Refuse("key qwen35moe.ssm.inner_size: have %d, want ssm.state_size %d times ssm.time_step_rank %d", inner, c.state, c.valueHeads)
	}
	if c.valueHeads%max(c.keyHeads, 1) != 0 {
		m.Refuse("key qwen35moe.ssm.group_count: have %d key heads, want a divisor of ssm.time_step_rank %d", c.keyHeads, c.valueHeads)
	}
	if c.state%32 != 0 || c.state > layer.MaxDeltaDim {
		m.Refuse("key qwen35moe.ssm.state_size: have %d, want a multiple of 32 up to %d", c.state, layer.MaxDeltaDim)
	}
	if c.taps == 1 {
		m.Refuse("key qwen35moe.ssm.conv_kernel: have 1, want at least 2")
	}
}

func (c *config) checkAttention(m *sdk.Metadata) {
	if v := m.Size("attention.value_length", c.headDim); v != c.headDim {
		m.Refuse("key qwen35moe.attention.value_length: have %d, want attention.key_length %d", v, c.headDim)
	}
	if c.ropeDims%2 != 0 || c.ropeDims > c.headDim {
		m.Refuse("key qwen35moe.rope.dimension_count: have %d, want an even number up to the head size %d", c.ropeDims, c.headDim)
	}
	if f := m.Float("rope.scaling.factor", 1); f != 1 {
		m.Refuse("key qwen35moe.rope.scaling.factor: have %g, want 1 (or none): scaled positions are not supported", f)
	}
	for i, kv := range c.kvHeads {
		if !c.recurrent[i] && (kv == 0 || c.heads%kv != 0) {
			m.Refuse("key qwen35moe.attention.head_count_kv: have %d in layer %d, want a divisor of attention.head_count %d", kv, i, c.heads)
			return
		}
	}
}

func (c *config) Facts() sdk.Facts { return c.facts }

// keyDim and valueDim are how wide the keys and values of all DeltaNet heads are.
func (c *config) keyDim() int   { return c.keyHeads * c.state }
func (c *config) valueDim() int { return c.valueHeads * c.state }

// scale is the factor on attention scores.
func (c *config) scale() float64 { return 1 / math.Sqrt(float64(c.headDim)) }
