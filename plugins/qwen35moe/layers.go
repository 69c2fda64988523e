package main

import "github.com/sluicehost/sluice/sdk/layer"

// Encode is the forward pass: each layer adds its mixer's and its experts' output to the
// residual stream, both on an RMS norm of it. The positions of a text are the same in every
// section of the rope, so it is plain NeoX RoPE.
func (c *config) Encode(e *layer.Encoder) {
	rope := e.RopeTable("rope", c.ropeDims, c.ropeBase, "")
	x := e.Embed("token_embd.weight", 1)
	for i := range c.facts.Layers {
		l := e.Layer(i)
		h := l.RMSNorm(x, "attn_norm.weight", c.eps)
		if c.recurrent[i] {
			x = l.Add(x, c.deltaNet(l, h))
		} else {
			x = l.Add(x, c.attention(l, h, c.kvHeads[i], rope))
		}
		x = l.Result(l.Add(x, c.experts(l, l.RMSNorm(x, "post_attention_norm.weight", c.eps))))
	}
	e.Logits(e.FinalNorm(x, c.eps, "output_norm.weight"), e.First("output.weight", "token_embd.weight"))
}

// deltaNet is Gated DeltaNet: q, k and v through a short convolution, the delta rule, and a
// norm per head that z gates.
func (c *config) deltaNet(l *layer.Layer, x *layer.Value) *layer.Value {
	mixed := 2*c.keyDim() + c.valueDim()
	qkvz := l.Linear(x, mixed+c.valueDim(), "attn_qkv.weight", "attn_gate.weight")
	gates := l.Linear(x, 2*c.valueHeads, "ssm_beta.weight", "ssm_alpha.weight")
	qkv := l.Conv(qkvz, layer.Conv{Width: mixed, Taps: c.taps, Tensors: []string{"ssm_conv1d.weight"}})
	y := l.DeltaRule(qkv, layer.DeltaRule{
		Heads: c.valueHeads, KeyHeads: c.keyHeads, HeadDim: c.state, Eps: c.eps,
		Beta: layer.Columns{Of: gates}, Decay: layer.Columns{Of: gates, Offset: c.valueHeads},
		A: "ssm_a", Bias: "ssm_dt.bias",
	})
	y = l.GatedNorm(y, layer.GatedNorm{
		HeadDim: c.state, Weight: "ssm_norm.weight", Eps: c.eps, Gate: layer.Columns{Of: qkvz, Offset: mixed},
	})
	return l.Linear(y, c.facts.Hidden, "ssm_out.weight")
}

// attention is full attention whose query heads carry a gate on their output.
func (c *config) attention(l *layer.Layer, x *layer.Value, kvHeads int, rope layer.Rope) *layer.Value {
	tensors := []string{"attn_q.weight", "attn_k.weight", "attn_v.weight"}
	if l.First("attn_qkv.weight", "attn_q.weight", "attn_k.weight") == "attn_qkv.weight" {
		tensors = []string{"attn_qkv.weight"}
	}
	qkv := l.Linear(x, 2*(c.heads+kvHeads)*c.headDim, tensors...)
	y := l.Attention(qkv, layer.Attention{
		Heads: c.heads, KVHeads: kvHeads, HeadDim: c.headDim, Gated: true,
		QNorm: "attn_q_norm.weight", KNorm: "attn_k_norm.weight", Eps: c.eps,
		Rope: rope, Scale: c.scale(),
	})
	return l.Linear(y, c.facts.Hidden, "attn_output.weight")
}

// experts are the routed ones, then the shared one times its gate.
func (c *config) experts(l *layer.Layer, x *layer.Value) *layer.Value {
	shared := l.FFN(x, layer.GatedFFN{
		Gate: "ffn_gate_shexp.weight", Up: "ffn_up_shexp.weight", Down: "ffn_down_shexp.weight", FF: c.sharedFF, Act: layer.SiLU,
	})
	gate := l.Linear(x, 1, "ffn_gate_inp_shexp.weight")
	shared = l.Gate(shared, gate, layer.Gate{Width: c.facts.Hidden})
	routed := l.Experts(x, layer.Router{Weight: "ffn_gate_inp.weight", Normalize: true, Scale: 1}, layer.GatedFFN{
		Gate: "ffn_gate_exps.weight", Up: "ffn_up_exps.weight", GateUp: "ffn_gate_up_exps.weight", Down: "ffn_down_exps.weight",
		FF: c.expertFF, Act: layer.SiLU,
	})
	return l.Add(shared, routed)
}
