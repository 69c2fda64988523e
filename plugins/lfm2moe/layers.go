package main

import "github.com/sluicehost/sluice/sdk/layer"

// Encode is the forward pass: each layer adds its mixer's and its feed-forward's output to
// the residual stream, both on an RMS norm of it.
func (c *config) Encode(e *layer.Encoder) {
	rope := e.RopeTable("rope", c.headDim(), c.ropeBase, "")
	x := e.Embed("token_embd.weight", 1)
	for i := range c.facts.Layers {
		l := e.Layer(i)
		x = l.Add(x, c.mixer(l, l.RMSNorm(x, "attn_norm.weight", c.eps), c.kvHeads[i], rope))
		x = l.Result(l.Add(x, c.feedForward(l, l.RMSNorm(x, "ffn_norm.weight", c.eps), i)))
	}
	x = e.FinalNorm(x, c.eps, "token_embd_norm.weight", "output_norm.weight")
	e.Logits(x, e.First("output.weight", "token_embd.weight"))
}

// mixer is attention where the file gives the layer KV heads, and a short convolution elsewhere.
func (c *config) mixer(l *layer.Layer, x *layer.Value, kvHeads int, rope layer.Rope) *layer.Value {
	hidden, kv := c.facts.Hidden, kvHeads*c.headDim()
	if kvHeads == 0 {
		bcx := l.Linear(x, 3*hidden, "shortconv.in_proj.weight")
		return l.Linear(l.ShortConv(bcx, "shortconv.conv.weight", c.taps), hidden, "shortconv.out_proj.weight")
	}
	qkv := l.Linear(x, hidden+2*kv, "attn_q.weight", "attn_k.weight", "attn_v.weight")
	y := l.Attention(qkv, layer.Attention{
		Heads: c.heads, KVHeads: kvHeads, HeadDim: c.headDim(),
		QNorm: "attn_q_norm.weight", KNorm: "attn_k_norm.weight", Eps: c.eps,
		Rope: rope, Scale: c.scale(),
	})
	return l.Linear(y, hidden, "attn_output.weight")
}

// feedForward is a dense SwiGLU in the leading layers, and routed experts after them. The
// router's bias only ranks.
func (c *config) feedForward(l *layer.Layer, x *layer.Value, i int) *layer.Value {
	if i < c.denseLead {
		return l.FFN(x, layer.GatedFFN{
			Gate: "ffn_gate.weight", Up: "ffn_up.weight", Down: "ffn_down.weight", FF: c.denseFF, Act: layer.SiLU,
		})
	}
	router := layer.Router{
		Weight: "ffn_gate_inp.weight", Sigmoid: true, Bias: l.First("exp_probs_b.bias", "exp_probs_b"), Normalize: true, Scale: 1,
	}
	return l.Experts(x, router, layer.GatedFFN{
		Gate: "ffn_gate_exps.weight", Up: "ffn_up_exps.weight", Down: "ffn_down_exps.weight", FF: c.expertFF, Act: layer.SiLU,
	})
}
