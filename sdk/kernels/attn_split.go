package kernels

import (
	"fmt"

	"github.com/sluicehost/sluice/sdk/program"
)

// splitKeysCPU is how many cached positions one workgroup of attn_split sees on a software device, where the number of workgroups costs.
// splitKeysGPU is the same on a GPU where sizes are odd.
const (
	splitKeysCPU = 128
	splitKeysGPU = 64
)

// headsAtOnce is how many query heads of a KV head share a workgroup on a GPU: each more costs registers and time, and spares
// a reading of the keys, which are in the cache. Of a latent all heads read the same keys, which are long: sharing them pays.
const (
	headsAtOnce       = 2
	latentHeadsAtOnce = 8
)

// Of lib/split_lanes.wgsl: lanes of a workgroup, at most; slots, at most, which one after the other are joined; keys of a
// block, at most, and of a lane; and runs, at most, all of which attn_merge reads: past that many blocks runs grow, for then there
// are workgroups enough.
const (
	splitLanes    = 256
	splitSlots    = 32
	splitBlock    = 64
	splitLaneKeys = 4
	splitRuns     = 128
)

// AttnSplit is one token's attention by attn_split and attn_merge, in runs of at least Run positions.
type AttnSplit struct {
	Run       int
	Most      int               // runs at most, 0: as many as there are
	Groups    int               // workgroups a run: of each KV head's query heads, CUTS parts
	Choice    string            // attn_split's choice "split": lib/split_<Choice>.wgsl
	Params    map[string]uint32 // attn_split's override constants
	Merge     map[string]uint32 // attn_merge's
	Parts     int               // workgroups of attn_merge a head
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
	const widest = 1 << 16 // no size overflows
	if kvHeads < 1 || heads < 1 || heads%kvHeads != 0 || valueDim < 2 || keyDim < valueDim || keyDim > widest || (keyDim|valueDim)%2 != 0 {
		return AttnSplit{}, fmt.Errorf("kernels: attn_split: have %d heads with keys of %d and values of %d over %d KV heads, want even sizes, keys no shorter than values, and heads a multiple of KV heads",
			heads, keyDim, valueDim, kvHeads)
	}
	a := AttnSplit{partValue: uint64(heads) * uint64(valueDim+2)}
	all := heads / kvHeads
	if !a.lanes(l, all, keyDim, valueDim) && !a.keys(l, all, keyDim, valueDim) {
		return AttnSplit{}, fmt.Errorf("kernels: attn_split: have %d bytes of workgroup memory, want more for keys of %d values", l.GetWorkgroupBytes(), keyDim)
	}
	a.Groups = kvHeads * int(a.Params["CUTS"])
	a.Params["HD"], a.Params["VD"], a.Params["VROW"], a.Params["KEYS"] = uint32(keyDim), uint32(valueDim), uint32(keyDim), uint32(a.Run)
	a.merge(l, valueDim)
	return a, nil
}

// cut divides a KV head's query heads into the fewest parts, at least as many as given, whose heads are at most most and fit. It
// gives 0 where one head does not.
func cut(all, cuts, most int, fits func(g int) bool) int {
	for ; cuts <= all; cuts++ {
		if all%cuts == 0 && all/cuts <= most && fits(all/cuts) {
			return cuts
		}
	}
	return 0
}

// lanes is the form for a GPU, if its memory and the sizes are such.
func (a *AttnSplit) lanes(l *program.Limits, all, keyDim, valueDim int) bool {
	const most = 8 // heads: they are written out
	kl := keyDim / 8
	if l.GetCpu() || (keyDim|valueDim)%8 != 0 || kl > splitLanes {
		return false
	}
	slots, b := min(splitSlots, splitLanes/kl), splitLaneKeys
	for b > 1 && slots*b > splitBlock {
		b /= 2
	}
	w := slots * kl
	room := func(g int) int { return max(slots*b*g*(kl+4), 8*(w+4)) }
	cuts, same := max(1, all/headsAtOnce), 0
	if valueDim < keyDim {
		cuts, same = max(1, all/latentHeadsAtOnce), 1
	}
	cuts = cut(all, cuts, most, func(g int) bool { return 4*room(g)+16*slots*b*g+8*slots*g <= int(l.GetWorkgroupBytes()) })
	if cuts == 0 {
		return false
	}
	g := all / cuts
	a.Choice, a.Run, a.Most = "lanes", slots*b, splitRuns
	a.Params = map[string]uint32{"G": uint32(g), "CUTS": uint32(cuts), "MOST": splitRuns, "W": uint32(w), "KL": uint32(kl),
		"SLOTS": uint32(slots), "B": uint32(b), "SAME": uint32(same), "ROOM": uint32(room(g))}
	return true
}

// keys is the form for a software device, and for odd sizes.
func (a *AttnSplit) keys(l *program.Limits, all, keyDim, valueDim int) bool {
	const most = 16 // heads: each invocation has registers for them
	run, lanes, w, cuts := splitKeysGPU, 16, 128, 1
	if l.GetCpu() {
		run, lanes, w = splitKeysCPU, 1, 16
	} else if valueDim == keyDim {
		cuts = max(1, all/headsAtOnce)
	}
	cuts = cut(all, cuts, most, func(g int) bool { return 4*g*(keyDim+run)+4*w <= int(l.GetWorkgroupBytes()) })
	if cuts == 0 {
		return false
	}
	g := uint32(all / cuts)
	a.Choice, a.Run = "keys", run
	a.Params = map[string]uint32{"G": g, "CUTS": uint32(cuts), "W": uint32(w), "LS": uint32(lanes), "GHD": g * uint32(keyDim), "GKEYS": g * uint32(run)}
	return true
}

// merge is attn_merge's shape: on a GPU many lanes share the runs, and workgroups a head's columns.
func (a *AttnSplit) merge(l *program.Limits, valueDim int) {
	a.Parts = 1
	a.Merge = map[string]uint32{"HD": uint32(valueDim), "KEYS": uint32(a.Run), "MOST": uint32(a.Most), "W": 16}
	if !l.GetCpu() {
		const w, groups = 256, 8
		a.Parts = (valueDim/2 + w/groups - 1) / (w / groups)
		a.Merge["W"], a.Merge["RG"] = w, groups
	}
	a.Merge["PARTS"] = uint32(a.Parts)
}

// MergeGrid is that of attn_merge for heads query heads.
func (a AttnSplit) MergeGrid(heads int) []*program.Term {
	return []*program.Term{{Mul: uint32(heads)}, {Mul: uint32(a.Parts)}, {N: program.Var_T}}
}

// Grid is that of attn_split: parts of KV heads, runs, tokens. A window of 0 is none.
func (a AttnSplit) Grid(window int) []*program.Term {
	runs := &program.Term{Div: uint32(a.Run), N: program.Var_S}
	if seen := a.seen(window); seen > 0 {
		runs.N, runs.Window = program.Var_SW, uint32(seen)
	}
	return []*program.Term{{Mul: uint32(a.Groups)}, runs, {N: program.Var_T}}
}

// seen is how many positions make as many runs as there can be, 0 where nothing bounds them.
func (a AttnSplit) seen(window int) int {
	if most := a.Run * a.Most; most > 0 && (window == 0 || window > most) {
		return most
	}
	return window
}

// Part is the size of the buffer between the two kernels, in f32: per run and head a maximum, a sum and a head's values.
func (a AttnSplit) Part(window int) *program.Buffer {
	if seen := a.seen(window); seen > 0 {
		return &program.Buffer{Fixed: a.partValue * uint64((seen+a.Run-1)/a.Run)}
	}
	return &program.Buffer{PerPos: a.partValue, PosDiv: uint32(a.Run)}
}
