package program

import (
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// small is a little program with one of everything: each buffer class, both
// forms of the experts, a guess, a stack of two types, a rope with a divisor.
func small(t testing.TB) *builder {
	t.Helper()
	b := newBuilder(t, &Model{
		Architecture: "tiny", Layers: 2, Hidden: 64, Vocab: 256, Experts: 4, TopK: 2, Context: 128, MoeLayers: []uint32{0, 1},
	})
	b.embed("token_embd.weight", ggml.Q8_0, 1)
	b.stack("token_embd.weight", "token_embd.weight")
	b.vector("output_norm.weight", 64)
	b.tensor("rope_freqs.weight", ggml.F32, 16)
	b.rope(&Rope{Name: "rope", Pairs: 16, Base: 1e6, BaseDims: 32, Divisor: "rope_freqs.weight"})
	b.tensor("blk.2.mtp.weight", ggml.F32, 64)
	b.plan.Unused = []string{"blk.2.mtp.weight"}
	b.plan.Chat = &Chat{Template: "{{ messages }}", Stop: []string{"<|im_end|>"}, ThinkOpen: "<think>", ThinkClose: "</think>"}
	b.scratch(64, "x", "h", "att", "y")
	b.scratch(128, "qkv", "rows", "act")
	b.scratch(2, "pw")
	b.buffer(&Buffer{Name: "part", PerPos: 2 * 34, PosDiv: 16})
	for l := range uint32(2) {
		b.smallWeights(l)
		b.smallLayer(l)
	}
	b.section(Kind_HEAD, 0)
	b.rows(1, 0)
	b.run("output", "head", "x, OUTS, output_norm.weight, token_embd.weight -> LOGITS", grid(groups(32), perOut(1, 1)), consts{"eps", 1e-6})
	return b
}

func (b *builder) smallWeights(l uint32) {
	n := func(name string) string { return fmt.Sprintf("blk.%d.%s", l, name) }
	b.vector(n("attn_norm.weight"), 64)
	b.tensor(n("attn_q.weight"), ggml.Q4_0, 64, 64)
	b.tensor(n("attn_k.weight"), ggml.Q4_0, 64, 32)
	b.tensor(n("attn_v.weight"), ggml.Q8_0, 64, 32)
	b.stack(n("attn_qkv"), n("attn_q.weight"), n("attn_k.weight"), n("attn_v.weight"))
	b.matrix(n("attn_output.weight"), ggml.Q4_0, 64, 64)
	b.matrix(n("ffn_gate_inp.weight"), ggml.F32, 64, 4)
	b.tensor(n("ffn_gate_exps.weight"), ggml.Q4_0, 64, 64, 4)
	b.tensor(n("ffn_up_exps.weight"), ggml.Q4_0, 64, 64, 4)
	b.tensor(n("ffn_down_exps.weight"), ggml.Q8_0, 64, 64, 4)
	b.record(l, "gate_up="+n("ffn_gate_exps.weight")+"|"+n("ffn_up_exps.weight"), "down="+n("ffn_down_exps.weight"))
	b.buffer(&Buffer{Name: n("k"), Class: Class_KV, Elem: Elem_F16, PerPos: 32})
	b.buffer(&Buffer{Name: n("v"), Class: Class_RING, Elem: Elem_F16, PerPos: 32, Window: 16})
	b.buffer(&Buffer{Name: n("state"), Class: Class_STATE, Fixed: 64})
}

func (b *builder) smallLayer(l uint32) {
	n := func(s string) string { return fmt.Sprintf(s, l) }
	b.section(Kind_TRUNK, l)
	for _, many := range []bool{false, true} {
		least, most, matmul := uint32(1), uint32(1), "matvec"
		if many {
			least, most, matmul = 2, 0, "matmul"
		}
		b.rows(least, most)
		b.run(n("blk.%d.attn_qk"), matmul, n("x, blk.%[1]d.attn_norm.weight, blk.%[1]d.attn_qkv -> qkv"), grid(perRow(96, 8)), consts{"row0", 0, "planes", b.planes(n("blk.%d.attn_qkv"))})
		b.run(n("blk.%d.attn_v"), matmul, n("x, blk.%[1]d.attn_norm.weight, blk.%[1]d.attn_qkv#1 -> qkv"), grid(perRow(32, 8)), consts{"row0", 96, "planes", b.planes(n("blk.%d.attn_qkv#1"))})
		b.run(n("blk.%d.heads"), "heads", n("qkv, rope:rope -> blk.%[1]d.k, blk.%[1]d.v, blk.%[1]d.state, h"), grid(perRow(3, 1)), nil)
		if !many {
			b.run(n("blk.%d.split"), "split", n("h, blk.%[1]d.k, blk.%[1]d.v -> part"), grid(groups(2), perPos(1, 16)), nil)
			b.run(n("blk.%d.merge"), "merge", "part -> att", grid(groups(2)), nil)
		} else {
			b.run(n("blk.%d.flash"), "flash", n("h, blk.%[1]d.k, blk.%[1]d.v -> att"), grid(groups(2), perRow(1, 8), inWindow(16, 16)), nil)
		}
		b.run(n("blk.%d.attn_output"), "proj", n("att, blk.%[1]d.attn_output.weight -> y, x"), grid(perRow(64, 8)), nil)
		b.run(n("blk.%d.router"), "router", n("y, blk.%[1]d.ffn_gate_inp.weight -> PICKS, pw"), grid(perRow(1, 1)), consts{"experts", 4, "scale", 0.5})
	}
	if l == 0 {
		b.section(Kind_GUESS, 0).GuessOf = 1
		b.rows(1, 0)
		b.run("guess", "guess", "y, blk.0.ffn_gate_inp.weight, PICKS -> GUESSES", grid(perRow(1, 1)), nil)
	}
	b.section(Kind_EXPERTS, l)
	b.rows(1, 1)
	gate, down := b.partPlanes(l, "gate_up"), b.partPlanes(l, "down")
	b.run(n("blk.%d.gate_up"), "expert_pair", "y, bank, PICKS, RESIDENCY -> act", grid(groups(8), groups(2)), consts{"planes", gate})
	b.run(n("blk.%d.down"), "expert_down", "act, bank, PICKS, RESIDENCY, pw -> x", grid(groups(8)), consts{"planes", down}).Result = &Result{Layer: l, Slot: 5}
	b.rows(2, 0)
	b.run(n("blk.%d.gate_up"), "expert_matmul_pair", "y, bank, RESIDENCY, PAIRS, TILES -> act", grid(perTile(1, 1), groups(8)), consts{"planes", gate})
	b.run(n("blk.%d.down"), "expert_matmul", "act, bank, RESIDENCY, PAIRS, TILES -> rows", grid(perTile(1, 1), groups(8)), consts{"planes", down})
	b.section(Kind_COMBINE, l)
	b.rows(1, 1)
	b.rows(2, 0)
	b.run(n("blk.%d.sum"), "moe_sum", "rows, PICKS, pw -> x", grid(perRow(1, 1)), nil).Result = &Result{Layer: l, Slot: 3}
	b.prog.TileRows = 8
}

// bounds is a device and sizes that the test programs fit.
func testBounds() Bounds {
	return Bounds{
		Limits: &Limits{
			MaxBinding: 1 << 31, MaxBindings: 16, MaxInvocations: 256, WorkgroupBytes: 16 << 10, MaxGroups: 65535,
		},
		StorageAlign: 256, UniformAlign: 256, Chunk: 64, Outs: 8, Context: 128, Budget: 8 << 30, MaxBuffer: 3 << 30,
	}
}

func (b *builder) validatePlan() error { return ValidatePlan(b.header, b.plan) }

func (b *builder) validate(x Bounds) error {
	return Validate(b.plan, b.placed, b.records, b.prog, x)
}
