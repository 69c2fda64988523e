package kernels

import (
	"fmt"

	"github.com/sluicehost/sluice/sdk/program"
)

// How many cached positions one workgroup of attn_split sees. A GPU wants many small workgroups; on a software device their
// number costs.
const (
	splitKeysCPU = 128
	splitKeysGPU = 64
)

// headsAtOnce is how many query heads of a KV head share a workgroup on a GPU: each more costs registers and time, and spares
// a reading of the keys, which are in the cache.
const headsAtOnce = 2

// AttnSplit is one token's attention by attn_split and attn_merge, in runs of Run positions.
type AttnSplit struct {
	Run       int
	Groups    int               // workgroups a run: of each KV head's query heads, CUTS parts
	Params    map[string]uint32 // attn_split's override constants
	partValue uint64            // f32 of the partial result of a run
}

// NewAttnSplit is the shape for heads query heads of headDim values over kvHeads KV heads. A KV head's
// query heads share a workgroup as far as its memory goes: one head of 512 values needs 2.5 KiB.
func NewAttnSplit(l *program.Limits, heads, kvHeads, headDim int) (AttnSplit, error) {
	return newAttnSplit(l, heads, kvHeads, headDim, headDim)
}

// NewLatentSplit is the shape for heads query heads over one latent of keyDim values, of which the first valueDim are
// the value: kc and vc are one cache.
func NewLatentSplit(l *program.Limits, heads, keyDim, valueDim int) (AttnSplit, error) {
	return newAttnSplit(l, heads, 1, keyDim, valueDim)
}

// newAttnSplit is for values of valueDim in rows of keyDim.
func newAttnSplit(l *program.Limits, heads, kvHeads, keyDim, valueDim int) (AttnSplit, error) {
	const most, widest = 16, 1 << 16 // each invocation has registers for a workgroup's heads; no size overflows
	if kvHeads < 1 || heads < 1 || heads%kvHeads != 0 || valueDim < 2 || keyDim < valueDim || keyDim > widest || (keyDim|valueDim)%2 != 0 {
		return AttnSplit{}, fmt.Errorf("kernels: attn_split: have %d heads with keys of %d and values of %d over %d KV heads, want even sizes, keys no shorter than values, and heads a multiple of KV heads",
			heads, keyDim, valueDim, kvHeads)
	}
	all, splitKeys, lanes, w := heads/kvHeads, splitKeysGPU, 16, 128
	if l.GetCpu() {
		splitKeys, lanes, w = splitKeysCPU, 1, 16
	}
	bytes := func(g int) uint64 { return 4*uint64(g)*uint64(keyDim+splitKeys) + 4*uint64(w) }
	cuts := 1
	if !l.GetCpu() && valueDim == keyDim { // of a latent all heads read the same keys, which are long: sharing them pays
		cuts = max(1, all/headsAtOnce)
	}
	for cuts < all && (all%cuts != 0 || all/cuts > most || bytes(all/cuts) > uint64(l.GetWorkgroupBytes())) {
		cuts++
	}
	g := all / cuts
	if have := l.GetWorkgroupBytes(); bytes(g) > uint64(have) {
		return AttnSplit{}, fmt.Errorf("kernels: attn_split: have %d bytes of workgroup memory, want %d for keys of %d values", have, bytes(g), keyDim)
	}
	hd := uint32(keyDim)
	return AttnSplit{Run: splitKeys, Groups: kvHeads * cuts, partValue: uint64(heads) * uint64(valueDim+2), Params: map[string]uint32{
		"HD": hd, "VD": uint32(valueDim), "VROW": hd, "G": uint32(g), "CUTS": uint32(cuts), "KEYS": uint32(splitKeys), "GHD": uint32(g) * hd,
		"GKEYS": uint32(g) * uint32(splitKeys), "LS": uint32(lanes), "W": uint32(w)}}, nil
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
