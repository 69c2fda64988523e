package program

import (
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// qwen35moe 35B-A3B cut to two layers: Gated DeltaNet and full attention, and
// a guess at the second layer's experts after the first. For one token a
// DeltaNet layer is design.md's 13 dispatches.
func schemaQwen(t testing.TB) *builder {
	b := newBuilder(t, &Model{
		Architecture: "qwen35moe", Layers: 2, Hidden: 2048, Vocab: 248320, Experts: 256, TopK: 8, Context: 262144, MoeLayers: []uint32{0, 1},
	})
	b.embed("token_embd.weight", ggml.Q8_0, 1)
	b.matrix("output.weight", ggml.Q8_0, 2048, 248320)
	b.vector("output_norm.weight", 2048)
	b.tensor("blk.2.nextn.eh_proj.weight", ggml.Q8_0, 4096, 2048)
	b.plan.Unused = []string{"blk.2.nextn.eh_proj.weight"}
	b.rope(&Rope{Name: "rope", Pairs: 32, Base: 1e7, BaseDims: 64})
	b.plan.Chat = &Chat{Template: "{{ messages }}", Stop: []string{"<|im_end|>"}, ThinkOpen: "<think>", ThinkClose: "</think>", OpensThinking: true, ThinkingOptional: true}
	b.scratch(2048, "x", "h", "o", "a", "sd", "gh")
	b.scratch(8192+4096, "qkvz", "mixed")
	b.scratch(64, "ab")
	b.scratch(4096, "delta", "att", "q")
	b.scratch(512, "ms")
	b.scratch(257, "rl", "grl")
	b.scratch(8, "pw")
	b.scratch(8*512, "act")
	b.scratch(8*2048, "rows")
	b.scratch(32*64, "decay")
	b.buffer(&Buffer{Name: "part", PerPos: 16 * (256 + 2), PosDiv: 128})
	b.qwenFFNWeights(0)
	b.qwenFFNWeights(1)
	b.qwenDeltaWeights(0)
	b.qwenAttentionWeights(1)
	for l, mixer := range []func(uint32, bool){b.qwenDelta, b.qwenAttention} {
		b.section(Kind_TRUNK, uint32(l))
		for _, many := range []bool{false, true} {
			b.regime(many)
			mixer(uint32(l), many)
			b.qwenRouter(uint32(l), many)
		}
		if l == 0 {
			b.qwenGuess(0, 1)
		}
		b.qwenExperts(uint32(l))
	}
	b.section(Kind_HEAD, 0)
	b.rows(1, 0)
	b.run("output", "head", "x, OUTS, output_norm.weight, output.weight -> LOGITS", grid(groups(248320/8), perOut(1, 1)),
		consts{"rows", 248320, "eps", 1e-6, "planes", b.planes("output.weight")})
	return b
}

func (b *builder) qwenFFNWeights(l uint32) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.vector(p("attn_norm.weight"), 2048)
	b.vector(p("post_attention_norm.weight"), 2048)
	b.tensor(p("ffn_gate_inp.weight"), ggml.F32, 2048, 256)
	b.tensor(p("ffn_gate_inp_shexp.weight"), ggml.F32, 2048)
	b.stack(p("ffn_router"), p("ffn_gate_inp.weight"), p("ffn_gate_inp_shexp.weight"))
	b.tensor(p("ffn_gate_shexp.weight"), ggml.Q8_0, 2048, 512)
	b.tensor(p("ffn_up_shexp.weight"), ggml.Q8_0, 2048, 512)
	b.stack(p("ffn_gate_up_shexp"), p("ffn_gate_shexp.weight"), p("ffn_up_shexp.weight"))
	b.matrix(p("ffn_down_shexp.weight"), ggml.Q8_0, 512, 2048)
	b.tensor(p("ffn_gate_exps.weight"), ggml.Q8_0, 2048, 512, 256)
	b.tensor(p("ffn_up_exps.weight"), ggml.Q8_0, 2048, 512, 256)
	b.tensor(p("ffn_down_exps.weight"), ggml.Q8_0, 512, 2048, 256)
	b.record(l, "gate_up="+p("ffn_gate_exps.weight")+"|"+p("ffn_up_exps.weight"), "down="+p("ffn_down_exps.weight"))
}

func (b *builder) qwenDeltaWeights(l uint32) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.tensor(p("attn_qkv.weight"), ggml.Q8_0, 2048, 8192)
	b.tensor(p("attn_gate.weight"), ggml.Q8_0, 2048, 4096)
	b.stack(p("attn_qkv_z"), p("attn_qkv.weight"), p("attn_gate.weight"))
	b.tensor(p("ssm_alpha.weight"), ggml.Q8_0, 2048, 32)
	b.tensor(p("ssm_beta.weight"), ggml.Q8_0, 2048, 32)
	b.stack(p("ssm_alpha_beta"), p("ssm_alpha.weight"), p("ssm_beta.weight"))
	b.vector(p("ssm_conv1d.weight"), 4, 8192)
	b.vector(p("ssm_a"), 32)
	b.vector(p("ssm_dt.bias"), 32)
	b.vector(p("ssm_norm.weight"), 128)
	b.matrix(p("ssm_out.weight"), ggml.Q8_0, 4096, 2048)
	b.buffer(&Buffer{Name: p("conv"), Class: Class_STATE, Fixed: 3 * 8192})
	b.buffer(&Buffer{Name: p("delta"), Class: Class_STATE, Fixed: 32 * 128 * 128})
}

func (b *builder) qwenAttentionWeights(l uint32) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.tensor(p("attn_q.weight"), ggml.Q8_0, 2048, 2*256*16)
	b.tensor(p("attn_k.weight"), ggml.Q8_0, 2048, 512)
	b.tensor(p("attn_v.weight"), ggml.Q8_0, 2048, 512)
	b.stack(p("attn_qkv"), p("attn_q.weight"), p("attn_k.weight"), p("attn_v.weight"))
	b.vector(p("attn_q_norm.weight"), 256)
	b.vector(p("attn_k_norm.weight"), 256)
	b.matrix(p("attn_output.weight"), ggml.Q8_0, 4096, 2048)
	b.buffer(&Buffer{Name: p("k"), Class: Class_KV, Elem: Elem_F16, PerPos: 512})
	b.buffer(&Buffer{Name: p("v"), Class: Class_KV, Elem: Elem_F16, PerPos: 512})
}

// normed is a linear layer of x's norm: fused for one token, apart for many.
// weights are stacks, each with its output and rows.
func (b *builder) normed(many bool, norm string, eps float64, weights ...[3]any) {
	b.t.Helper()
	if many {
		b.run(norm, "rmsnorm", "x, "+norm+" -> h", grid(perRow(1, 1)), consts{"n", int(b.plan.Model.Hidden), "eps", eps})
	}
	for _, w := range weights {
		name, out, rows := w[0].(string), w[1].(string), w[2].(int)
		if many {
			b.linear(true, name, "", "h, "+name+" -> "+out, name, rows, nil)
		} else {
			b.linear(false, name, "_norm", "x, "+norm+", "+name+" -> "+out, name, rows, consts{"eps", eps})
		}
	}
}

func (b *builder) qwenDelta(l uint32, many bool) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.normed(many, p("attn_norm.weight"), 1e-6, [3]any{p("attn_qkv_z"), "qkvz", 12288}, [3]any{p("ssm_alpha_beta"), "ab", 64})
	dims := consts{"key_heads", 16, "value_heads", 32}
	gate := "ab, " + p("ssm_a") + ", " + p("ssm_dt.bias")
	if many {
		b.run(p("conv"), "conv4_silu_rows", "qkvz, "+p("ssm_conv1d.weight")+", "+p("conv")+" -> mixed", grid(groups(8192/64), perRow(1, 1)), consts{"n", 8192})
		b.run(p("conv_state"), "conv4_state", "qkvz -> "+p("conv"), grid(groups(8192/64)), consts{"n", 8192})
		b.run(p("delta_decay"), "delta_decay", gate+" -> decay", grid(groups(32), perRow(1, 64)), dims)
		b.run(p("delta"), "delta_chunk", "mixed, ab, decay -> delta, "+p("delta"), grid(groups(32), groups(2)), dims)
	} else {
		b.run(p("conv"), "conv4_silu", "qkvz, "+p("ssm_conv1d.weight")+" -> mixed, "+p("conv"), grid(groups(8192/64)), consts{"n", 8192})
		b.run(p("delta"), "delta_step", "mixed, "+gate+" -> delta, "+p("delta"), grid(groups(32), groups(2)), dims)
	}
	b.run(p("delta_out"), "delta_out", "delta, qkvz, "+p("ssm_norm.weight")+" -> att", grid(groups(32), perRow(1, 1)), consts{"eps", 1e-6})
	b.linear(many, p("ssm_out"), "", "att, "+p("ssm_out.weight")+" -> o", p("ssm_out.weight"), 2048, nil)
}

func (b *builder) qwenAttention(l uint32, many bool) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.normed(many, p("attn_norm.weight"), 1e-6, [3]any{p("attn_qkv"), "qkvz", 9216})
	cache, c := p("k")+", "+p("v"), consts{"heads", 16, "kv_heads", 2, "head_dim", 256}
	b.run(p("heads"), "heads_gated", "qkvz, "+p("attn_q_norm.weight")+", "+p("attn_k_norm.weight")+", rope:rope -> q, "+cache, grid(groups(16+2*2), perRow(1, 1)), c)
	if many {
		b.run(p("attn"), "attn_flash_gated", "q, qkvz, "+cache+" -> att", grid(groups(2), perRow(1, 16)), c)
	} else {
		b.run(p("attn_split"), "attn_split", "q, "+cache+" -> part", grid(groups(2), perPos(1, 128)), c)
		b.run(p("attn_merge"), "attn_merge_gated", "part, qkvz -> att", grid(groups(16)), c)
	}
	b.linear(many, p("attn_output"), "", "att, "+p("attn_output.weight")+" -> o", p("attn_output.weight"), 2048, nil)
}

// qwenRouter ends a trunk: a = x + o, its norm, the shared expert and the
// routing. The shared expert's gate is the router's last row.
func (b *builder) qwenRouter(l uint32, many bool) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.run(p("post_attention_norm"), "add_norm", "x, o, "+p("post_attention_norm.weight")+" -> a, h", grid(perRow(1, 1)), consts{"n", 2048, "eps", 1e-6})
	b.linear(many, p("ffn_router"), "", "h, "+p("ffn_router")+" -> rl", p("ffn_router"), 257, nil)
	b.linear(many, p("ffn_gate_up_shexp"), "_pair_silu", "h, "+p("ffn_gate_up_shexp")+" -> ms", p("ffn_gate_up_shexp"), 512, nil)
	b.run(p("topk"), "topk_softmax", "rl -> PICKS, pw", grid(perRow(1, 1)), consts{"stride", 257})
	b.linear(many, p("ffn_down_shexp"), "", "ms, "+p("ffn_down_shexp.weight")+" -> sd", p("ffn_down_shexp.weight"), 2048, nil)
}

func (b *builder) qwenExperts(l uint32) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	stride := int(b.records[l].Stride / 16)
	gate, down := b.partPlanes(l, "gate_up"), b.partPlanes(l, "down")
	b.section(Kind_EXPERTS, l)
	b.regime(false)
	b.run(p("ffn_exps"), "expert_pair_silu", "h, bank, PICKS, RESIDENCY -> act", grid(groups(512/8), groups(8)), consts{"rows", 512, "stride", stride, "planes", gate})
	b.run(p("ffn_down_exps"), "expert_down_shared", "act, bank, PICKS, RESIDENCY, pw, rl, sd, a -> x", grid(groups(2048/8)), consts{"rows", 2048, "stride", stride, "planes", down})
	b.regime(true)
	b.run(p("ffn_exps"), "expert_matmul_pair_silu", "h, bank, RESIDENCY, PAIRS, TILES -> act", grid(groups(512/64), perTile(1, 1)), consts{"rows", 512, "stride", stride, "planes", gate})
	b.run(p("ffn_down_exps"), "expert_matmul", "act, bank, RESIDENCY, PAIRS, TILES -> rows", grid(groups(2048/64), perTile(1, 1)), consts{"rows", 2048, "stride", stride, "planes", down})
	b.section(Kind_COMBINE, l)
	b.regime(false)
	b.regime(true)
	b.run(p("moe_sum"), "moe_sum_shared", "rows, pw, rl, sd, a -> x", grid(groups(2048/64), perRow(1, 1)), consts{"hidden", 2048})
	b.prog.TileRows = 16
}

// qwenGuess guesses a later layer's picks from a, the state after this layer's attention.
func (b *builder) qwenGuess(l, of uint32) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", of, s) }
	b.section(Kind_GUESS, l).GuessOf = of
	b.rows(1, 0)
	b.run(p("guess_norm"), "rmsnorm", "a, "+p("post_attention_norm.weight")+" -> gh", grid(perRow(1, 1)), consts{"n", 2048, "eps", 1e-6})
	b.linear(true, p("guess_router"), "", "gh, "+p("ffn_router")+" -> grl", p("ffn_router"), 257, nil)
	b.run(p("guess_topk"), "guess_topk", "grl -> GUESSES", grid(perRow(1, 1)), consts{"stride", 257})
}
