package main

import (
	"math"

	"github.com/sluicehost/sluice/sdk/layer"
)

// Encode is the forward pass: each layer adds its attention's and its feed-forward's output to
// the residual stream, both on an RMS norm of it.
func (c *config) Encode(e *layer.Encoder) {
	rope := e.RopeTable("rope", c.rot, c.ropeBase, "")
	x := e.Embed("token_embd.weight", 1)
	for i := range c.facts.Layers {
		l := e.Layer(i)
		h := l.RMSNorm(x, "attn_norm.weight", c.eps)
		if c.kvHeads[i] > 0 {
			x = l.Add(x, c.latentAttention(l, h, rope))
		} else {
			x = l.Add(x, c.deltaAttention(l, h))
		}
		x = l.Result(l.Add(x, c.feedForward(l, l.RMSNorm(x, "ffn_norm.weight", c.eps), i)))
	}
	e.Logits(e.FinalNorm(x, c.eps, "output_norm.weight"), e.First("output.weight", "token_embd.weight"))
}

// deltaAttention is Kimi Delta Attention: q, k and v through short convolutions, the delta rule
// with a decay for each channel of the keys, and a norm per head under a gate.
func (c *config) deltaAttention(l *layer.Layer, x *layer.Value) *layer.Value {
	inner := c.heads * c.kdaDim
	p := l.Linear(x, 5*inner+c.heads,
		"attn_q.weight", "attn_k.weight", "attn_v.weight", "ssm_f_a.weight", "ssm_g_a.weight", "ssm_beta.weight")
	decay, gate, beta := layer.Columns{Of: p, Offset: 3 * inner}, layer.Columns{Of: p, Offset: 4 * inner}, layer.Columns{Of: p, Offset: 5 * inner}
	qkv := l.Conv(p, layer.Conv{
		Width: 3 * inner, Taps: c.taps,
		Tensors: []string{"ssm_conv1d_q.weight", "ssm_conv1d_k.weight", "ssm_conv1d_v.weight"},
	})
	y := l.DeltaRule(qkv, layer.DeltaRule{
		Heads: c.heads, KeyHeads: c.heads, HeadDim: c.kdaDim, Eps: c.eps,
		Beta: beta, Decay: decay, A: "ssm_a", Bias: "ssm_dt.bias", PerChannel: true, LowerBound: c.lowerBound,
	})
	y = l.GatedNorm(y, layer.GatedNorm{HeadDim: c.kdaDim, Weight: "ssm_norm.weight", Eps: c.eps, Gate: gate, Sigmoid: true})
	return l.Linear(y, c.facts.Hidden, "attn_output.weight")
}

// latentAttention is multi-head latent attention with a gate on each head's output.
func (c *config) latentAttention(l *layer.Layer, x *layer.Value, rope layer.Rope) *layer.Value {
	kv := l.Linear(x, c.rank+c.rot+c.heads, "attn_kv_a_mqa.weight", "attn_gate.weight")
	y := l.Latent(c.queries(l, x), kv, layer.Latent{
		Heads: c.heads, Rank: c.rank, Nope: c.nope, Rot: c.rot, Value: c.value,
		Norm: "attn_kv_a_norm.weight", KeyUp: "attn_k_b.weight", ValueUp: "attn_v_b.weight", Eps: c.eps,
		Rope: rope, Scale: 1 / math.Sqrt(float64(c.nope+c.rot)),
	})
	y = l.Gate(y, kv, layer.Gate{Width: c.value, Offset: c.rank + c.rot})
	return l.Linear(y, c.facts.Hidden, "attn_output.weight")
}

// queries are the heads' queries, through a normed low rank where the file has one.
func (c *config) queries(l *layer.Layer, x *layer.Value) *layer.Value {
	n := c.heads * (c.nope + c.rot)
	if c.qRank == 0 {
		return l.Linear(x, n, "attn_q.weight")
	}
	low := l.Linear(x, c.qRank, "attn_q_a.weight")
	return l.Linear(l.RMSNorm(low, "attn_q_a_norm.weight", c.eps), n, "attn_q_b.weight")
}

// feedForward is a dense SwiGLU in the leading layers, and after them the routed experts and
// the shared one. Where a layer has a clamp, the activation and the up values are cut.
func (c *config) feedForward(l *layer.Layer, x *layer.Value, i int) *layer.Value {
	if i < c.denseLead {
		return l.FFN(x, layer.GatedFFN{
			Gate: "ffn_gate.weight", Up: "ffn_up.weight", Down: "ffn_down.weight",
			FF: c.denseFF, Act: layer.SiLU, Limit: c.clampShared[i],
		})
	}
	shared := l.FFN(x, layer.GatedFFN{
		Gate: "ffn_gate_shexp.weight", Up: "ffn_up_shexp.weight", Down: "ffn_down_shexp.weight",
		FF: c.sharedFF, Act: layer.SiLU, Limit: c.clampShared[i],
	})
	routed := l.Experts(x, layer.Router{
		Weight: "ffn_gate_inp.weight", Sigmoid: true, Bias: l.First("exp_probs_b.bias", "exp_probs_b"),
		Groups: c.groups, GroupsUsed: c.groupsUsed, Normalize: c.normalize, Scale: c.scale,
	}, layer.GatedFFN{
		Gate: "ffn_gate_exps.weight", Up: "ffn_up_exps.weight", GateUp: "ffn_gate_up_exps.weight", Down: "ffn_down_exps.weight",
		FF: c.expertFF, Act: layer.SiLU, Limit: c.clamp[i],
	})
	return l.Add(shared, routed)
}
