package kernels

import (
	"fmt"

	"github.com/sluicehost/sluice/sdk/program"
)

// splitKeys is how many cached positions one workgroup of attn_split sees.
const splitKeys = 128

// AttnSplit is one token's attention by attn_split and attn_merge, in runs of Run positions.
type AttnSplit struct {
	Run       int
	Groups    int               // workgroups a run: of each KV head's query heads, CUTS parts
	Params    map[string]uint32 // attn_split's override constants, without W
	partValue uint64            // f32 of the partial result of a run
}

// NewAttnSplit is the shape for heads query heads of headDim values over kvHeads KV heads. A KV head's
// query heads share a workgroup as far as its memory goes: one head of 512 values needs 2.5 KiB.
func NewAttnSplit(l *program.Limits, heads, kvHeads, headDim int) (AttnSplit, error) {
	const most = 16 // each invocation has registers for a workgroup's heads
	if kvHeads < 1 || heads < 1 || heads%kvHeads != 0 || headDim < 2 || headDim%2 != 0 {
		return AttnSplit{}, fmt.Errorf("kernels: attn_split: have %d heads of %d values over %d KV heads, want an even size, and heads a multiple of KV heads",
			heads, headDim, kvHeads)
	}
	all := heads / kvHeads
	bytes := func(g int) uint32 { return uint32(4 * g * (headDim + splitKeys)) }
	cuts := 1
	for cuts < all && (all%cuts != 0 || all/cuts > most || bytes(all/cuts) > l.GetWorkgroupBytes()) {
		cuts++
	}
	g := all / cuts
	if have := l.GetWorkgroupBytes(); bytes(g) > have {
		return AttnSplit{}, fmt.Errorf("kernels: attn_split: have %d bytes of workgroup memory, want %d for heads of %d values", have, bytes(g), headDim)
	}
	hd := uint32(headDim)
	return AttnSplit{Run: splitKeys, Groups: kvHeads * cuts, partValue: uint64(heads * (headDim + 2)), Params: map[string]uint32{
		"HD": hd, "G": uint32(g), "CUTS": uint32(cuts), "KEYS": splitKeys, "GHD": uint32(g) * hd, "GKEYS": uint32(g) * splitKeys}}, nil
}

// Grid is that of attn_split: parts of KV heads, runs, tokens. A window of 0 is none.
func (a AttnSplit) Grid(window int) []*program.Term {
	runs := &program.Term{Div: uint32(a.Run), N: program.Var_S}
	if window > 0 {
		runs.N, runs.Window = program.Var_SW, uint32(window)
	}
	return []*program.Term{{Mul: uint32(a.Groups)}, runs, {N: program.Var_T}}
}

// Part is the size of the buffer between the two kernels, in f32: per run and head a maximum, a sum and a head's values.
func (a AttnSplit) Part(window int) *program.Buffer {
	if window > 0 {
		return &program.Buffer{Fixed: a.partValue * uint64((window+a.Run-1)/a.Run)}
	}
	return &program.Buffer{PerPos: a.partValue, PosDiv: uint32(a.Run)}
}
