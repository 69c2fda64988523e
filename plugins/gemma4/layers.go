package main

import (
	"math"

	"github.com/sluicehost/sluice/sdk/layer"
)

// Encode is the forward pass. In every layer the residual stream gets the norm of what
// attention says, then the norm of what the feed-forward branches say, and may be scaled.
func (c *config) Encode(e *layer.Encoder) {
	x := e.Embed("token_embd.weight", math.Sqrt(float64(c.facts.Hidden)))
	for i := range c.facts.Layers {
		l := e.Layer(i)
		y := c.attention(l, l.RMSNorm(x, "attn_norm.weight", c.eps), i)
		x = l.Add(x, l.RMSNorm(y, "post_attention_norm.weight", c.eps))
		x = l.Add(x, l.RMSNorm(c.feedForward(l, x, i), "post_ffw_norm.weight", c.eps))
		if l.Has("layer_output_scale.weight") {
			x = l.Scale(x, "layer_output_scale.weight")
		}
		x = l.Result(x)
	}
	x = e.FinalNorm(x, c.eps, "output_norm.weight")
	e.CappedLogits(x, e.First("output.weight", "token_embd.weight"), c.softCap)
}

// attention is over a window or all positions, with head sizes and rotations by kind. Scores have
// no factor: the norms of q and k set their size. A layer without attn_v takes its keys, before
// norm and RoPE, for values.
func (c *config) attention(l *layer.Layer, x *layer.Value, i int) *layer.Value {
	kind := c.full
	if c.slides[i] {
		kind = c.sliding
	}
	queries, kv := c.heads[i]*kind.headDim, c.kvHeads[i]*kind.headDim
	rows, tensors := queries+kv, []string{"attn_q.weight", "attn_k.weight"}
	if l.Has("attn_v.weight") {
		rows, tensors = rows+kv, append(tensors, "attn_v.weight")
	}
	y := l.Attention(l.Linear(x, rows, tensors...), layer.Attention{
		Heads: c.heads[i], KVHeads: c.kvHeads[i], HeadDim: kind.headDim, Window: kind.window,
		QNorm: "attn_q_norm.weight", KNorm: "attn_k_norm.weight", VNorm: true, Eps: c.eps,
		KeyAsValue: len(tensors) == 2, Scale: 1,
		Rope: l.RopeTable(kind.name, kind.ropeDims, kind.ropeBase, kind.divisor),
	})
	return l.Linear(y, c.facts.Hidden, "attn_output.weight")
}

// feedForward is the sum of a dense branch and of routed experts, each with a norm before and
// after. The router has a norm of its own, and its weights each expert's scale as a factor.
func (c *config) feedForward(l *layer.Layer, x *layer.Value, i int) *layer.Value {
	dense := l.FFN(l.RMSNorm(x, "ffn_norm.weight", c.eps), layer.GatedFFN{
		Gate: "ffn_gate.weight", Up: "ffn_up.weight", Down: "ffn_down.weight", FF: c.denseFF[i], Act: layer.GELU,
	})
	router := layer.Router{
		From:   l.RMSNorm(x, "ffn_gate_inp.scale", c.eps),
		Weight: "ffn_gate_inp.weight", InputScale: 1 / math.Sqrt(float64(c.facts.Hidden)),
		Normalize: true, Scale: 1, ExpertScale: "ffn_down_exps.scale",
	}
	experts := l.Experts(l.RMSNorm(x, "pre_ffw_norm_2.weight", c.eps), router, layer.GatedFFN{
		GateUp: "ffn_gate_up_exps.weight", Gate: "ffn_gate_exps.weight", Up: "ffn_up_exps.weight", Down: "ffn_down_exps.weight",
		FF: c.expertFF, Act: layer.GELU,
	})
	return l.Add(l.RMSNorm(dense, "post_ffw_norm_1.weight", c.eps), l.RMSNorm(experts, "post_ffw_norm_2.weight", c.eps))
}
