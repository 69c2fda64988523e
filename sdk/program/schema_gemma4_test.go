package program

import (
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// gemmaKind is what differs between gemma4's sliding and full layers.
type gemmaKind struct {
	headDim, kvHeads int
	window           uint32 // 0 for full
	rope             string
}

// gemma4 26B-A4B cut to two layers: a sliding one, whose cache is a ring, and
// a full one, whose V is its K before norm and rope. For one token the sliding
// layer is design.md's 13 dispatches.
func schemaGemma4(t testing.TB) *builder {
	b := newBuilder(t, &Model{
		Architecture: "gemma4", Layers: 2, Hidden: 2816, Vocab: 262144, Experts: 128, TopK: 8, Context: 262144, MoeLayers: []uint32{0, 1},
	})
	b.embed("token_embd.weight", ggml.Q6_K, 53.06599)
	b.stack("token_embd.weight", "token_embd.weight")
	b.vector("output_norm.weight", 2816)
	b.tensor("rope_freqs.weight", ggml.F32, 256)
	b.rope(&Rope{Name: "swa", Pairs: 128, Base: 1e4, BaseDims: 256})
	b.rope(&Rope{Name: "full", Pairs: 256, Base: 1e6, BaseDims: 512, Divisor: "rope_freqs.weight"})
	b.plan.Chat = &Chat{Template: "{{ bos_token }}", Stop: []string{"<turn|>"}, ThinkOpen: "<|channel>", ThinkClose: "<channel|>", ThinkPreamble: "thought\n", ThinkingOptional: true}
	b.scratch(2816, "x", "h", "o", "a", "m", "xm", "rt", "md", "moe")
	b.scratch(16*512+2*512, "qkv")
	b.scratch(16*512, "q", "att")
	b.scratch(2112, "ma")
	b.scratch(128, "rl")
	b.scratch(8, "pw")
	b.scratch(8*704, "act")
	b.scratch(8*2816, "rows")
	b.buffer(&Buffer{Name: "part.swa", Fixed: 16 * (256 + 2) * (1024 / 128)})
	b.buffer(&Buffer{Name: "part.full", PerPos: 16 * (512 + 2), PosDiv: 128})
	b.gemmaLayer(0, gemmaKind{256, 8, 1024, "swa"})
	b.gemmaLayer(1, gemmaKind{512, 2, 0, "full"})
	b.section(Kind_HEAD, 0)
	b.rows(1, 0)
	b.run("output", "head_softcap", "x, OUTS, output_norm.weight, token_embd.weight -> LOGITS", grid(groups(262144/8), perOut(1, 1)),
		consts{"rows", 262144, "eps", 1e-6, "cap", 30.0, "planes", b.planes("token_embd.weight")})
	return b
}

func (b *builder) gemmaWeights(l uint32, k gemmaKind) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	for _, n := range []string{"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "post_ffw_norm_1", "post_ffw_norm_2", "pre_ffw_norm_2"} {
		b.vector(p(n+".weight"), 2816)
	}
	hd, kv := uint64(k.headDim), uint64(k.kvHeads)
	b.tensor(p("attn_q.weight"), ggml.Q4_0, 2816, 16*hd)
	b.tensor(p("attn_k.weight"), ggml.Q4_0, 2816, kv*hd)
	stack := []string{p("attn_q.weight"), p("attn_k.weight")}
	if k.window > 0 {
		b.tensor(p("attn_v.weight"), ggml.Q4_0, 2816, kv*hd)
		stack = append(stack, p("attn_v.weight"))
	}
	b.stack(p("attn_qkv"), stack...)
	b.vector(p("attn_q_norm.weight"), hd)
	b.vector(p("attn_k_norm.weight"), hd)
	b.tensor(p("attn_output.weight"), ggml.Q4_0, 16*hd, 2816)
	b.stack(p("attn_output.weight"), p("attn_output.weight"))
	b.tensor(p("ffn_gate.weight"), ggml.Q4_0, 2816, 2112)
	b.tensor(p("ffn_up.weight"), ggml.Q4_0, 2816, 2112)
	b.stack(p("ffn_gate_up"), p("ffn_gate.weight"), p("ffn_up.weight"))
	b.matrix(p("ffn_down.weight"), ggml.Q4_0, 2112, 2816)
	b.matrix(p("ffn_gate_inp.weight"), ggml.F32, 2816, 128)
	b.vector(p("ffn_gate_inp.scale"), 2816)
	b.tensor(p("ffn_gate_up_exps.weight"), ggml.Q4_0, 2816, 2*704, 128)
	b.tensor(p("ffn_down_exps.weight"), ggml.Q4_0, 704, 2816, 128)
	b.vector(p("ffn_down_exps.scale"), 128)
	b.vector(p("layer_output_scale.weight"), 1)
	b.record(l, "gate_up="+p("ffn_gate_up_exps.weight"), "down="+p("ffn_down_exps.weight"))
	for _, c := range []string{"k", "v"} {
		buf := &Buffer{Name: p(c), Class: Class_KV, Elem: Elem_F16, PerPos: kv * hd}
		if k.window > 0 {
			buf.Class, buf.Window = Class_RING, k.window
		}
		b.buffer(buf)
	}
}

func (b *builder) gemmaLayer(l uint32, k gemmaKind) {
	b.gemmaWeights(l, k)
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.section(Kind_TRUNK, l)
	for _, many := range []bool{false, true} {
		b.regime(many)
		b.gemmaAttention(l, k, many)
		b.run(p("post"), "gemma_post", "o, x, "+p("post_attention_norm.weight")+", "+p("ffn_norm.weight")+", "+p("pre_ffw_norm_2.weight")+", "+p("ffn_gate_inp.scale")+" -> a, m, xm, rt",
			grid(perRow(1, 1)), consts{"n", 2816, "eps", 1e-6})
		b.linear(many, p("ffn_gate_inp"), "", "rt, "+p("ffn_gate_inp.weight")+" -> rl", p("ffn_gate_inp.weight"), 128, nil)
		b.linear(many, p("ffn_gate_up"), "_pair_gelu", "m, "+p("ffn_gate_up")+" -> ma", p("ffn_gate_up"), 2112, nil)
		b.run(p("topk"), "topk_softmax", "rl -> PICKS, pw", grid(perRow(1, 1)), nil)
		b.linear(many, p("ffn_down"), "", "ma, "+p("ffn_down.weight")+" -> md", p("ffn_down.weight"), 2816, nil)
	}
	b.gemmaExperts(l)
}

func (b *builder) gemmaAttention(l uint32, k gemmaKind, many bool) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	rows := k.headDim * (16 + k.kvHeads)
	if k.window > 0 {
		rows += k.headDim * k.kvHeads
	}
	if many {
		b.run(p("attn_norm"), "rmsnorm", "x, "+p("attn_norm.weight")+" -> h", grid(perRow(1, 1)), consts{"n", 2816, "eps", 1e-6})
		b.linear(true, p("attn_qkv"), "", "h, "+p("attn_qkv")+" -> qkv", p("attn_qkv"), rows, nil)
	} else {
		b.linear(false, p("attn_qkv"), "_norm", "x, "+p("attn_norm.weight")+", "+p("attn_qkv")+" -> qkv", p("attn_qkv"), rows, consts{"eps", 1e-6})
	}
	cache := p("k") + ", " + p("v")
	c := consts{"kv_heads", k.kvHeads, "head_dim", k.headDim, "window", int(k.window)}
	b.run(p("heads"), "heads", "qkv, "+p("attn_q_norm.weight")+", "+p("attn_k_norm.weight")+", rope:"+k.rope+" -> q, "+cache,
		grid(groups(uint32(16+2*k.kvHeads)), perRow(1, 1)), c)
	part, keys := "part.full", perPos(1, 128)
	if k.window > 0 {
		part, keys = "part.swa", inWindow(128, k.window)
	}
	if many {
		b.run(p("attn"), "attn_flash", "q, "+cache+" -> att", grid(groups(uint32(k.kvHeads)), perRow(1, 16)), c)
	} else {
		b.run(p("attn_split"), "attn_split", "q, "+cache+" -> "+part, grid(groups(uint32(k.kvHeads)), keys), c)
		b.run(p("attn_merge"), "attn_merge", part+" -> att", grid(groups(16)), c)
	}
	b.linear(many, p("attn_output"), "", "att, "+p("attn_output.weight")+" -> o", p("attn_output.weight"), 2816, nil)
}

func (b *builder) gemmaExperts(l uint32) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	stride := int(b.records[l].Stride / 16)
	gate, down := b.partPlanes(l, "gate_up"), b.partPlanes(l, "down")
	b.section(Kind_EXPERTS, l)
	b.regime(false)
	b.run(p("ffn_exps"), "expert_pair_gelu", "xm, bank, PICKS, RESIDENCY -> act", grid(groups(704/8), groups(8)), consts{"rows", 704, "stride", stride, "planes", gate})
	b.run(p("ffn_down_exps"), "expert_down", "act, bank, PICKS, RESIDENCY, pw, "+p("ffn_down_exps.scale")+" -> moe", grid(groups(2816/8)), consts{"rows", 2816, "stride", stride, "planes", down})
	b.regime(true)
	b.run(p("ffn_exps"), "expert_matmul_pair_gelu", "xm, bank, RESIDENCY, PAIRS, TILES -> act", grid(groups(704/64), perTile(1, 1)), consts{"rows", 704, "stride", stride, "planes", gate})
	b.run(p("ffn_down_exps"), "expert_matmul", "act, bank, RESIDENCY, PAIRS, TILES -> rows", grid(groups(2816/64), perTile(1, 1)), consts{"rows", 2816, "stride", stride, "planes", down})
	b.section(Kind_COMBINE, l)
	for _, many := range []bool{false, true} {
		b.regime(many)
		if many {
			b.run(p("moe_sum"), "moe_sum", "rows, PICKS, pw, "+p("ffn_down_exps.scale")+" -> moe", grid(groups(2816/64), perRow(1, 1)), consts{"hidden", 2816})
		}
		b.run(p("ffn"), "gemma_ffn", "md, moe, a, "+p("post_ffw_norm_1.weight")+", "+p("post_ffw_norm_2.weight")+", "+p("post_ffw_norm.weight")+", "+p("layer_output_scale.weight")+" -> x",
			grid(perRow(1, 1)), consts{"n", 2816, "eps", 1e-6})
	}
	b.prog.TileRows = 16
}
