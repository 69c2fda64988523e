package main

import (
	"math"

	"github.com/sluicehost/sluice/sdk"
)

// config is the shape of an lfm2moe file.
type config struct {
	facts     sdk.Facts
	eps       float64
	heads     int
	kvHeads   []int // per layer; 0 is a short-convolution layer
	ropeBase  float64
	taps      int // width of the short convolution
	denseLead int // layers before the first with routed experts
	denseFF   int
	expertFF  int
}

func readConfig(m *sdk.Metadata) (sdk.Model, error) {
	layers := m.Size("block_count")
	c := &config{
		facts:     m.Facts(layers),
		eps:       m.Positive("attention.layer_norm_rms_epsilon"),
		heads:     m.Size("attention.head_count"),
		kvHeads:   m.Ints("attention.head_count_kv", layers),
		ropeBase:  m.Positive("rope.freq_base", 10000),
		taps:      m.Size("shortconv.l_cache"),
		denseLead: m.Int("leading_dense_block_count", 0),
		denseFF:   m.Size("feed_forward_length"),
		expertFF:  m.Size("expert_feed_forward_length"),
	}
	m.SigmoidGating()
	if c.facts.Hidden%max(c.heads, 1) != 0 {
		m.Refuse("key lfm2moe.attention.head_count: have %d heads, want a divisor of embedding_length %d", c.heads, c.facts.Hidden)
	}
	if c.denseLead >= layers {
		m.Refuse("key lfm2moe.leading_dense_block_count: have %d of %d layers, want a layer with routed experts", c.denseLead, layers)
	}
	return c, m.Err()
}

func (c *config) Facts() sdk.Facts { return c.facts }

// headDim is the size of an attention head.
func (c *config) headDim() int { return c.facts.Hidden / c.heads }

// scale is the factor on attention scores.
func (c *config) scale() float64 { return 1 / math.Sqrt(float64(c.headDim())) }
