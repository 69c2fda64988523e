package program

import (
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// lfm2moe 24B-A2B cut to three layers: short convolution with a dense FFN,
// short convolution with experts, attention with experts. The attention's V is
// of another type than its Q and K, so the stack has two bands.
func schemaLFM2(t testing.TB) *builder {
	b := newBuilder(t, &Model{
		Architecture: "lfm2moe", Layers: 3, Hidden: 2048, Vocab: 65536, Experts: 64, TopK: 4, Context: 128000, MoeLayers: []uint32{1, 2},
	})
	b.embed("token_embd.weight", ggml.Q6_K, 1)
	b.stack("token_embd.weight", "token_embd.weight")
	b.vector("token_embd_norm.weight", 2048)
	b.rope(&Rope{Name: "rope", Pairs: 32, Base: 1e7, BaseDims: 64})
	b.plan.Chat = &Chat{Template: "{{ bos_token }}", Stop: []string{"<|im_end|>"}, ThinkOpen: "<think>", ThinkClose: "</think>"}
	b.scratch(2048, "x", "h", "att")
	b.scratch(3*2048, "bcx")
	b.scratch(2048+2*512, "qkv")
	b.scratch(2048, "q")
	b.scratch(11776, "mid")
	b.scratch(64, "rl")
	b.scratch(4, "pw")
	b.scratch(4*1536, "act")
	b.scratch(4*2048, "rows")
	b.buffer(&Buffer{Name: "part", PerPos: 32 * (64 + 2), PosDiv: 128})
	for l := range uint32(3) {
		p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
		b.vector(p("attn_norm.weight"), 2048)
		b.vector(p("ffn_norm.weight"), 2048)
		if l < 2 {
			b.matrix(p("shortconv.in_proj.weight"), ggml.Q4_K, 2048, 3*2048)
			b.vector(p("shortconv.conv.weight"), 3, 2048)
			b.matrix(p("shortconv.out_proj.weight"), ggml.Q4_K, 2048, 2048)
			b.buffer(&Buffer{Name: p("conv"), Class: Class_STATE, Fixed: 2 * 2048})
		} else {
			b.tensor(p("attn_q.weight"), ggml.Q4_K, 2048, 2048)
			b.tensor(p("attn_k.weight"), ggml.Q4_K, 2048, 512)
			b.tensor(p("attn_v.weight"), ggml.Q5_K, 2048, 512)
			b.stack(p("attn_qkv"), p("attn_q.weight"), p("attn_k.weight"), p("attn_v.weight"))
			b.vector(p("attn_q_norm.weight"), 64)
			b.vector(p("attn_k_norm.weight"), 64)
			b.matrix(p("attn_output.weight"), ggml.Q5_K, 2048, 2048)
			b.buffer(&Buffer{Name: p("k"), Class: Class_KV, Elem: Elem_F16, PerPos: 512})
			b.buffer(&Buffer{Name: p("v"), Class: Class_KV, Elem: Elem_F16, PerPos: 512})
		}
		if l == 0 {
			b.tensor(p("ffn_gate.weight"), ggml.Q4_K, 2048, 11776)
			b.tensor(p("ffn_up.weight"), ggml.Q4_K, 2048, 11776)
			b.stack(p("ffn_gate_up"), p("ffn_gate.weight"), p("ffn_up.weight"))
			b.matrix(p("ffn_down.weight"), ggml.Q6_K, 11776, 2048)
			continue
		}
		b.matrix(p("ffn_gate_inp.weight"), ggml.F32, 2048, 64)
		b.vector(p("exp_probs_b.bias"), 64)
		b.tensor(p("ffn_gate_exps.weight"), ggml.Q4_K, 2048, 1536, 64)
		b.tensor(p("ffn_up_exps.weight"), ggml.Q4_K, 2048, 1536, 64)
		b.tensor(p("ffn_down_exps.weight"), ggml.Q6_K, 1536, 2048, 64)
		b.record(l, "gate_up="+p("ffn_gate_exps.weight")+"|"+p("ffn_up_exps.weight"), "down="+p("ffn_down_exps.weight"))
	}
	b.section(Kind_TRUNK, 1)
	for _, many := range []bool{false, true} {
		b.regime(many)
		b.lfm2Conv(0, many)
		b.lfm2Dense(0, many)
		b.lfm2Conv(1, many)
		b.lfm2Router(1, many)
	}
	b.lfm2Experts(1)
	b.section(Kind_TRUNK, 2)
	for _, many := range []bool{false, true} {
		b.regime(many)
		b.lfm2Attention(2, many)
		b.lfm2Router(2, many)
	}
	b.lfm2Experts(2)
	b.section(Kind_HEAD, 0)
	b.rows(1, 0)
	b.run("output", "head", "x, OUTS, token_embd_norm.weight, token_embd.weight -> LOGITS", grid(groups(65536/8), perOut(1, 1)),
		consts{"rows", 65536, "eps", 1e-5, "planes", b.planes("token_embd.weight")})
	return b
}

// regime starts the variant for one token, or for many.
func (b *builder) regime(many bool) {
	if many {
		b.rows(2, 0)
	} else {
		b.rows(1, 1)
	}
}

// linear is a product with a weight's first band: a matvec for one token, a
// matmul for many. what names the fusion (norm, residual) or is empty; flow's
// first weight of kind MATRIX is w.
func (b *builder) linear(many bool, label, what, flow, w string, rows int, c consts) {
	b.t.Helper()
	kernel, g := "matvec"+what, grid(groups((uint32(rows)+7)/8))
	if many {
		kernel, g = "matmul"+what, grid(groups((uint32(rows)+63)/64), perRow(1, 64))
	}
	b.run(label, kernel, flow, g, append(consts{"rows", rows, "planes", b.planes(w)}, c...))
}

func (b *builder) lfm2Conv(l uint32, many bool) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.linear(many, p("shortconv.in_proj"), "_norm", "x, "+p("attn_norm.weight")+", "+p("shortconv.in_proj.weight")+" -> bcx",
		p("shortconv.in_proj.weight"), 3*2048, consts{"eps", 1e-5})
	if many { // all rows at once, so the state moves on only when every row has read it
		b.run(p("shortconv"), "shortconv_rows", "bcx, "+p("shortconv.conv.weight")+", "+p("conv")+" -> att", grid(groups(2048/64), perRow(1, 1)), consts{"hidden", 2048})
		b.run(p("conv"), "shortconv_state", "bcx -> "+p("conv"), grid(groups(2048/64)), consts{"hidden", 2048})
	} else {
		b.run(p("shortconv"), "shortconv", "bcx, "+p("shortconv.conv.weight")+" -> att, "+p("conv"), grid(groups(2048/64)), consts{"hidden", 2048})
	}
	b.linear(many, p("shortconv.out_proj"), "_residual", "att, "+p("shortconv.out_proj.weight")+" -> x", p("shortconv.out_proj.weight"), 2048, nil)
}

func (b *builder) lfm2Attention(l uint32, many bool) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	in := "x, " + p("attn_norm.weight") + ", "
	b.linear(many, p("attn_qk"), "_norm", in+p("attn_qkv")+" -> qkv", p("attn_qkv"), 2560, consts{"eps", 1e-5})
	b.linear(many, p("attn_v"), "_norm", in+p("attn_qkv#1")+" -> qkv", p("attn_qkv#1"), 512, consts{"eps", 1e-5})
	b.run(p("heads"), "heads", "qkv, "+p("attn_q_norm.weight")+", "+p("attn_k_norm.weight")+", rope:rope -> q, "+p("k")+", "+p("v"),
		grid(groups(32+2*8), perRow(1, 1)), consts{"heads", 32, "kv_heads", 8, "eps", 1e-5})
	if many {
		b.run(p("attn"), "attn_flash", "q, "+p("k")+", "+p("v")+" -> att", grid(groups(8), perRow(1, 16)), consts{"scale", 0.125})
	} else {
		b.run(p("attn_split"), "attn_split", "q, "+p("k")+", "+p("v")+" -> part", grid(groups(8), perPos(1, 128)), consts{"scale", 0.125})
		b.run(p("attn_merge"), "attn_merge", "part -> att", grid(groups(32)), consts{"heads", 32})
	}
	b.linear(many, p("attn_output"), "_residual", "att, "+p("attn_output.weight")+" -> x", p("attn_output.weight"), 2048, nil)
}

func (b *builder) lfm2Dense(l uint32, many bool) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.linear(many, p("ffn_gate_up"), "_pair_norm", "x, "+p("ffn_norm.weight")+", "+p("ffn_gate_up")+" -> mid", p("ffn_gate_up"), 11776, consts{"eps", 1e-5})
	b.linear(many, p("ffn_down"), "_residual", "mid, "+p("ffn_down.weight")+" -> x", p("ffn_down.weight"), 2048, nil)
}

func (b *builder) lfm2Router(l uint32, many bool) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	b.run(p("ffn_norm"), "rmsnorm", "x, "+p("ffn_norm.weight")+" -> h", grid(perRow(1, 1)), consts{"n", 2048, "eps", 1e-5})
	b.linear(many, p("ffn_gate_inp"), "", "h, "+p("ffn_gate_inp.weight")+" -> rl", p("ffn_gate_inp.weight"), 64, nil)
	b.run(p("topk"), "topk_sigmoid", "rl, "+p("exp_probs_b.bias")+" -> PICKS, pw", grid(perRow(1, 1)), nil)
}

// lfm2Experts is what follows a trunk: for one token the down projection adds
// the weighted rows to x itself, and combine has nothing left to do.
func (b *builder) lfm2Experts(l uint32) {
	p := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
	stride := int(b.records[l-1].Stride / 16)
	gate, down := b.partPlanes(l, "gate_up"), b.partPlanes(l, "down")
	b.section(Kind_EXPERTS, l)
	b.regime(false)
	b.run(p("ffn_exps"), "expert_pair", "h, bank, PICKS, RESIDENCY -> act", grid(groups(1536/8), groups(4)), consts{"rows", 1536, "stride", stride, "planes", gate})
	b.run(p("ffn_down_exps"), "expert_down", "act, bank, PICKS, RESIDENCY, pw -> x", grid(groups(2048/8)), consts{"rows", 2048, "stride", stride, "planes", down})
	b.regime(true)
	b.run(p("ffn_exps"), "expert_matmul_pair", "h, bank, RESIDENCY, PAIRS, TILES -> act", grid(groups(1536/64), perTile(1, 1)), consts{"rows", 1536, "stride", stride, "planes", gate})
	b.run(p("ffn_down_exps"), "expert_matmul", "act, bank, RESIDENCY, PAIRS, TILES -> rows", grid(groups(2048/64), perTile(1, 1)), consts{"rows", 2048, "stride", stride, "planes", down})
	b.section(Kind_COMBINE, l)
	b.regime(false)
	b.regime(true)
	b.run(p("moe_sum"), "moe_sum", "rows, pw -> x", grid(groups(2048/64), perRow(1, 1)), consts{"hidden", 2048})
	b.prog.TileRows = 16
}
