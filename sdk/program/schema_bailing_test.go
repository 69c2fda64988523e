package program

import (
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// bailingmoe3 flash cut to three layers: a dense lead layer and a MoE layer of
// KDA, and a MoE layer of MLA, whose cache is the latent in f32.
func schemaBailing(t testing.TB) *builder {
	b := newBuilder(t, &Model{
		Architecture: "bailingmoe3", Layers: 3, Hidden: 2560, Vocab: 157184, Experts: 512, TopK: 8, Context: 131072, MoeLayers: []uint32{1, 2},
	})
	b.embed("token_embd.weight", ggml.Q4_K, 1)
	b.matrix("output.weight", ggml.Q6_K, 2560, 157184)
	b.vector("output_norm.weight", 2560)
	b.rope(&Rope{Name: "rope", Pairs: 32, Base: 6e6, BaseDims: 64})
	b.scratch(2560, "x", "h", "sd")
	b.scratch(5*4096, "proj")
	b.scratch(3*4096, "mixed")
	b.scratch(4096, "kda", "att", "gate")
	b.scratch(32, "beta")
	b.scratch(6144, "mid", "q")
	b.scratch(32*512, "qc", "oc")
	b.scratch(768, "ms")
	b.scratch(512, "rl")
	b.scratch(8, "pw")
	b.scratch(8*768, "act")
	b.scratch(8*2560, "rows")
	b.buffer(&Buffer{Name: "part", PerPos: 32 * (512 + 2), PosDiv: 128})
	for l := range uint32(3) {
		b.bailingWeights(l)
	}
	b.section(Kind_TRUNK, 1)
	for _, many := range []bool{false, true} {
		b.regime(many)
		b.bailingKDA(0, many)
		b.bailingDense(0, many)
		b.bailingKDA(1, many)
		b.bailingRouter(1, many)
	}
	b.bailingExperts(1)
	b.section(Kind_TRUNK, 2)
	for _, many := range []bool{false, true} {
		b.regime(many)
		b.bailingMLA(2, many)
		b.bailingRouter(2, many)
	}
	b.bailingExperts(2)
	b.section(Kind_HEAD, 0)
	b.rows(1, 0)
	b.run("output", "head", "x, OUTS, output_norm.weight, output.weight -> LOGITS", grid(groups(157184/8), perOut(1, 1)),
		consts{"rows", 157184, "eps", 1e-6, "planes", b.planes("output.weight")})
	return b
}

func (b *builder) bailingWeights(l uint32) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.vector(p("attn_norm.weight"), 2560)
	b.vector(p("ffn_norm.weight"), 2560)
	if l < 2 {
		b.bailingKDAWeights(l)
	} else {
		b.bailingMLAWeights(l)
	}
	b.matrix(p("attn_output.weight"), ggml.Q4_K, 4096, 2560)
	if l == 0 {
		b.tensor(p("ffn_gate.weight"), ggml.Q4_K, 2560, 6144)
		b.tensor(p("ffn_up.weight"), ggml.Q4_K, 2560, 6144)
		b.stack(p("ffn_gate_up"), p("ffn_gate.weight"), p("ffn_up.weight"))
		b.matrix(p("ffn_down.weight"), ggml.Q6_K, 6144, 2560)
		return
	}
	b.matrix(p("ffn_gate_inp.weight"), ggml.F32, 2560, 512)
	b.vector(p("exp_probs_b.bias"), 512)
	b.tensor(p("ffn_gate_shexp.weight"), ggml.Q4_K, 2560, 768)
	b.tensor(p("ffn_up_shexp.weight"), ggml.Q4_K, 2560, 768)
	b.stack(p("ffn_gate_up_shexp"), p("ffn_gate_shexp.weight"), p("ffn_up_shexp.weight"))
	b.matrix(p("ffn_down_shexp.weight"), ggml.Q6_K, 768, 2560)
	b.tensor(p("ffn_gate_exps.weight"), ggml.Q4_K, 2560, 768, 512)
	b.tensor(p("ffn_up_exps.weight"), ggml.Q4_K, 2560, 768, 512)
	b.tensor(p("ffn_down_exps.weight"), ggml.Q6_K, 768, 2560, 512)
	b.record(l, "gate_up="+p("ffn_gate_exps.weight")+"|"+p("ffn_up_exps.weight"), "down="+p("ffn_down_exps.weight"))
}

func (b *builder) bailingKDAWeights(l uint32) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	var stack, conv []string
	for _, n := range []string{"attn_q", "attn_k", "attn_v", "ssm_f_a", "ssm_g_a"} {
		b.tensor(p(n+".weight"), ggml.Q4_K, 2560, 4096)
		stack = append(stack, p(n+".weight"))
	}
	b.stack(p("kda_in"), stack...)
	for _, n := range []string{"q", "k", "v"} {
		b.tensor(p("ssm_conv1d_"+n+".weight"), ggml.F32, 4, 1, 4096)
		conv = append(conv, p("ssm_conv1d_"+n+".weight"))
	}
	b.vectors(p("ssm_conv1d"), conv...)
	b.matrix(p("ssm_beta.weight"), ggml.Q4_K, 2560, 32)
	b.vector(p("ssm_a"), 1, 32)
	b.vector(p("ssm_dt.bias"), 4096)
	b.vector(p("ssm_norm.weight"), 128)
	b.buffer(&Buffer{Name: p("conv"), Class: Class_STATE, Fixed: 3 * 3 * 4096})
	b.buffer(&Buffer{Name: p("kda"), Class: Class_STATE, Fixed: 32 * 128 * 128})
}

func (b *builder) bailingMLAWeights(l uint32) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.tensor(p("attn_q.weight"), ggml.Q4_K, 2560, 32*192)
	b.tensor(p("attn_kv_a_mqa.weight"), ggml.Q4_K, 2560, 512+64)
	b.tensor(p("attn_gate.weight"), ggml.Q4_K, 2560, 32)
	b.stack(p("mla_in"), p("attn_q.weight"), p("attn_kv_a_mqa.weight"), p("attn_gate.weight"))
	b.vector(p("attn_kv_a_norm.weight"), 512)
	b.matrix(p("attn_k_b.weight"), ggml.Q5_0, 128, 512, 32)
	b.matrix(p("attn_v_b.weight"), ggml.Q6_K, 512, 128, 32)
	b.buffer(&Buffer{Name: p("latent"), Class: Class_KV, PerPos: 512 + 64})
}

func (b *builder) bailingKDA(l uint32, many bool) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.normed(many, p("attn_norm.weight"), 1e-6, [3]any{p("kda_in"), "proj", 5 * 4096}, [3]any{p("ssm_beta.weight"), "beta", 32})
	gate := "proj, " + p("ssm_a") + ", " + p("ssm_dt.bias")
	if many {
		b.run(p("conv"), "conv4_silu_rows", "proj, "+p("ssm_conv1d")+", "+p("conv")+" -> mixed", grid(groups(3*4096/64), perRow(1, 1)), consts{"n", 3 * 4096})
		b.run(p("conv_state"), "conv4_state", "proj -> "+p("conv"), grid(groups(3*4096/64)), consts{"n", 3 * 4096})
		b.run(p("kda_gate"), "kda_gate", gate+" -> gate", grid(groups(32), perRow(1, 16)), consts{"lower_bound", -5.0})
		b.run(p("kda"), "kda_chunk", "mixed, beta, gate -> kda, "+p("kda"), grid(groups(32), groups(2)), consts{"heads", 32})
	} else {
		b.run(p("conv"), "conv4_silu", "proj, "+p("ssm_conv1d")+" -> mixed, "+p("conv"), grid(groups(3*4096/64)), consts{"n", 3 * 4096})
		b.run(p("kda"), "kda_step", "mixed, beta, "+gate+" -> kda, "+p("kda"), grid(groups(32), groups(2)), consts{"heads", 32, "lower_bound", -5.0})
	}
	b.run(p("kda_out"), "kda_out", "kda, proj, "+p("ssm_norm.weight")+" -> att", grid(groups(32), perRow(1, 1)), consts{"eps", 1e-6})
	b.linear(many, p("attn_output"), "_residual", "att, "+p("attn_output.weight")+" -> x", p("attn_output.weight"), 2560, nil)
}

func (b *builder) bailingMLA(l uint32, many bool) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.normed(many, p("attn_norm.weight"), 1e-6, [3]any{p("mla_in"), "proj", 6752})
	c := consts{"heads", 32, "rank", 512, "rope_dims", 64}
	b.run(p("heads"), "heads_mla", "proj, "+p("attn_kv_a_norm.weight")+", rope:rope -> q, "+p("latent"), grid(groups(33), perRow(1, 1)), append(c, "eps", 1e-6))
	b.run(p("attn_k_b"), "head_matvec", "q, "+p("attn_k_b.weight")+" -> qc", grid(groups(512/8), groups(32), perRow(1, 1)), consts{"planes", b.planes(p("attn_k_b.weight"))})
	if many {
		b.run(p("attn"), "attn_flash_mla", "qc, q, "+p("latent")+" -> oc", grid(groups(32), perRow(1, 16)), append(c, "scale", 0.0721688))
	} else {
		b.run(p("attn_split"), "attn_split_mla", "qc, q, "+p("latent")+" -> part", grid(groups(4), perPos(1, 128)), append(c, "scale", 0.0721688))
		b.run(p("attn_merge"), "attn_merge", "part -> oc", grid(groups(32)), c)
	}
	b.run(p("attn_v_b"), "head_matvec_gated", "oc, proj, "+p("attn_v_b.weight")+" -> att", grid(groups(128/8), groups(32), perRow(1, 1)), consts{"planes", b.planes(p("attn_v_b.weight"))})
	b.linear(many, p("attn_output"), "_residual", "att, "+p("attn_output.weight")+" -> x", p("attn_output.weight"), 2560, nil)
}

func (b *builder) bailingDense(l uint32, many bool) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.linear(many, p("ffn_gate_up"), "_pair_norm", "x, "+p("ffn_norm.weight")+", "+p("ffn_gate_up")+" -> mid", p("ffn_gate_up"), 6144, consts{"eps", 1e-6, "clamp", 7.0})
	b.linear(many, p("ffn_down"), "_residual", "mid, "+p("ffn_down.weight")+" -> x", p("ffn_down.weight"), 2560, nil)
}

func (b *builder) bailingRouter(l uint32, many bool) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.run(p("ffn_norm"), "rmsnorm", "x, "+p("ffn_norm.weight")+" -> h", grid(perRow(1, 1)), consts{"n", 2560, "eps", 1e-6})
	b.linear(many, p("ffn_gate_inp"), "", "h, "+p("ffn_gate_inp.weight")+" -> rl", p("ffn_gate_inp.weight"), 512, nil)
	b.linear(many, p("ffn_gate_up_shexp"), "_pair", "h, "+p("ffn_gate_up_shexp")+" -> ms", p("ffn_gate_up_shexp"), 768, consts{"clamp", 0.0})
	b.run(p("topk"), "topk_group", "rl, "+p("exp_probs_b.bias")+" -> PICKS, pw", grid(perRow(1, 1)), consts{"groups", 8, "groups_used", 4, "scale", 2.5})
	b.linear(many, p("ffn_down_shexp"), "", "ms, "+p("ffn_down_shexp.weight")+" -> sd", p("ffn_down_shexp.weight"), 2560, nil)
}

func (b *builder) bailingExperts(l uint32) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	stride := int(b.records[l-1].Stride / 16)
	gate, down := b.partPlanes(l, "gate_up"), b.partPlanes(l, "down")
	b.section(Kind_EXPERTS, l)
	b.regime(false)
	b.run(p("ffn_exps"), "expert_pair", "h, bank, PICKS, RESIDENCY -> act", grid(groups(768/8), groups(8)), consts{"rows", 768, "stride", stride, "planes", gate, "clamp", 7.0})
	b.run(p("ffn_down_exps"), "expert_down_shared", "act, bank, PICKS, RESIDENCY, pw, sd -> x", grid(groups(2560/8)), consts{"rows", 2560, "stride", stride, "planes", down})
	b.regime(true)
	b.run(p("ffn_exps"), "expert_matmul_pair", "h, bank, RESIDENCY, PAIRS, TILES -> act", grid(groups(768/64), perTile(1, 1)), consts{"rows", 768, "stride", stride, "planes", gate, "clamp", 7.0})
	b.run(p("ffn_down_exps"), "expert_matmul", "act, bank, RESIDENCY, PAIRS, TILES -> rows", grid(groups(2560/64), perTile(1, 1)), consts{"rows", 2560, "stride", stride, "planes", down})
	b.section(Kind_COMBINE, l)
	b.regime(false)
	b.regime(true)
	b.run(p("moe_sum"), "moe_sum_shared", "rows, pw, sd -> x", grid(groups(2560/64), perRow(1, 1)), consts{"hidden", 2560})
	b.prog.TileRows = 16
}
