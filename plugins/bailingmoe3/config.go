package main

import (
	"math"

	"github.com/sluicehost/sluice/sdk"
	"github.com/sluicehost/sluice/sdk/layer"
)

// config is the shape of a bailingmoe3 file.
type config struct {
	facts     sdk.Facts
	eps       float64
	heads     int
	kvHeads   []int // per layer; 0 is Kimi Delta Attention, else it is latent attention
	denseLead int   // layers before the first with routed experts
	denseFF   int
	expertFF  int
	sharedFF  int

	// Kimi Delta Attention
	kdaDim     int // size of a head, and of its square state's sides
	taps       int // width of the convolutions
	lowerBound float64

	// latent attention
	qRank    int // of the queries' own low rank; 0 is none
	rank     int // values of the latent
	nope     int // values of a query head without RoPE
	rot      int // and with it
	value    int // values of a head's result
	ropeBase float64

	// routing
	groups, groupsUsed int
	normalize          bool
	scale              float64

	// SwiGLU clamps per layer, 0 for none: of the routed experts, and of the shared one and the dense blocks
	clamp, clampShared []float64
}

func readConfig(m *sdk.Metadata) (sdk.Model, error) {
	layers := m.Trunk()
	c := &config{
		facts:       m.Facts(layers),
		eps:         m.Positive("attention.layer_norm_rms_epsilon"),
		heads:       m.Size("attention.head_count"),
		kvHeads:     m.Ints("attention.head_count_kv", layers),
		denseLead:   m.Int("leading_dense_block_count"),
		denseFF:     m.Size("feed_forward_length"),
		kdaDim:      m.Size("kda.head_dim"),
		taps:        m.Size("ssm.conv_kernel"),
		lowerBound:  m.Float("kda.gate_lower_bound"),
		qRank:       m.Int("attention.q_lora_rank", 0),
		rank:        m.Size("attention.kv_lora_rank"),
		rot:         m.Size("rope.dimension_count"),
		value:       m.Size("attention.value_length_mla"),
		ropeBase:    m.Positive("rope.freq_base", 10000),
		clamp:       clamps(m, "swiglu_clamp_exp", layers),
		clampShared: clamps(m, "swiglu_clamp_shexp", layers),
	}
	c.readExperts(m)
	c.checkKDA(m)
	c.checkLatent(m)
	return c, m.Err()
}

func (c *config) readExperts(m *sdk.Metadata) {
	c.expertFF = m.Size("expert_feed_forward_length")
	c.sharedFF = m.Size("expert_shared_feed_forward_length", min(c.expertFF, math.MaxInt16)*min(m.Size("expert_shared_count"), math.MaxInt16))
	c.normalize, c.scale = m.Bool("expert_weights_norm", false), m.Positive("expert_weights_scale", 1)
	if c.groups = m.Int("expert_group_count", 1); c.groups > 1 {
		c.groupsUsed = m.Size("expert_group_used_count")
	}
	m.SigmoidGating()
	if c.denseLead >= c.facts.Layers {
		m.Refuse("key bailingmoe3.leading_dense_block_count: have %d of %d layers, want a layer with routed experts", c.denseLead, c.facts.Layers)
	}
}

// clamps are a SwiGLU clamp per layer, 0 where there is none.
func clamps(m *sdk.Metadata, key string, layers int) []float64 {
	list := m.Floats(key, layers, 0)
	for i, limit := range list {
		if limit < 0 {
			m.Refuse("key bailingmoe3.%s: have %g in layer %d, want a clamp above 0, or 0 for none", key, limit, i)
			break
		}
	}
	return list
}

func (c *config) checkKDA(m *sdk.Metadata) {
	if !m.Bool("kda.safe_gate", true) {
		m.Refuse("key bailingmoe3.kda.safe_gate: have false, want true: decays without a lower bound are not supported")
	}
	if c.lowerBound >= 0 {
		m.Refuse("key bailingmoe3.kda.gate_lower_bound: have %g, want a number below 0", c.lowerBound)
	}
	if c.kdaDim%32 != 0 || c.kdaDim > layer.MaxDeltaDim {
		m.Refuse("key bailingmoe3.kda.head_dim: have %d, want a multiple of 32 up to %d", c.kdaDim, layer.MaxDeltaDim)
	}
	if c.taps == 1 {
		m.Refuse("key bailingmoe3.ssm.conv_kernel: have 1, want at least 2")
	}
}

func (c *config) checkLatent(m *sdk.Metadata) {
	key := m.Size("attention.key_length_mla")
	if c.nope = key - c.rot; c.nope < 32 || c.nope%32 != 0 || c.rot%8 != 0 {
		m.Refuse("key bailingmoe3.attention.key_length_mla: have %d with rope.dimension_count %d, want the latter a multiple of 8, and a multiple of 32 above 0 besides", key, c.rot)
	}
	if c.rank%32 != 0 || c.rank > layer.MaxLatent {
		m.Refuse("key bailingmoe3.attention.kv_lora_rank: have %d, want a multiple of 32 up to %d", c.rank, layer.MaxLatent)
	}
	if n := m.Size("attention.key_length", c.rank+c.rot); n != c.rank+c.rot {
		m.Refuse("key bailingmoe3.attention.key_length: have %d, want attention.kv_lora_rank %d and rope.dimension_count %d", n, c.rank, c.rot)
	}
	if m.Has("rope.dimension_sections") {
		m.Refuse("key bailingmoe3.rope.dimension_sections: have positions in several sections, want a file without it: vision models (VL) are not supported")
	}
	if f := m.Float("rope.scaling.factor", 1); f != 1 {
		m.Refuse("key bailingmoe3.rope.scaling.factor: have %g, want 1 (or none): scaled positions are not supported", f)
	}
}

func (c *config) Facts() sdk.Facts { return c.facts }
