package kernels

import (
	"fmt"
	"math"

	"github.com/sluicehost/sluice/sdk/program"
)

// keyBlock is how many keys attn_chunk looks at together.
const keyBlock = 32

// AttnChunk is the attention of a chunk by attn_chunk and attn_merge. A KV head's query rows are its tokens' heads; a
// workgroup has Rows of them and a run of Run positions.
type AttnChunk struct {
	Rows, Run int
	Choice    string            // attn_chunk's choice "chunk": lib/chunk_<Choice>.wgsl
	Params    map[string]uint32 // attn_chunk's override constants
	heads, kv int
	keyDim    int
	valueDim  int // of the key's row, where one cache holds both
}

// NewAttnChunk is the shape for heads query heads of headDim values over kvHeads KV heads. It fails where no form of the
// kernel holds such heads.
func NewAttnChunk(l *program.Limits, heads, kvHeads, headDim int) (AttnChunk, error) {
	a := AttnChunk{Run: 1024, heads: heads, kv: kvHeads, keyDim: headDim, valueDim: headDim}
	if headDim >= 256 {
		a.Run = 2048 // the partial results grow with the head
	}
	return a, a.fit(l)
}

// NewLatentChunk is the shape for heads query heads over one latent of keyDim values, of which the first valueDim are
// the value: kc and vc are one cache.
func NewLatentChunk(l *program.Limits, heads, keyDim, valueDim int) (AttnChunk, error) {
	// All heads share the latent, so that a few tokens make a tile and few runs keep a GPU busy; the partial results are many.
	a := AttnChunk{Run: 8192, heads: heads, kv: 1, keyDim: keyDim, valueDim: valueDim}
	return a, a.fit(l)
}

// fit chooses the form of the kernel.
func (a *AttnChunk) fit(l *program.Limits) error {
	a.Rows, a.Choice = 64, "shared"
	a.Params = map[string]uint32{"W": 256, "QR": 64, "VALUES": uint32((a.valueDim + 63) / 64 * 4)}
	const shared = 23040 // bytes of lib/chunk_shared.wgsl
	switch {
	case l.GetCpu():
		a.Rows, a.Choice, a.Params = 32, "lanes", map[string]uint32{"W": 8, "QR": 32}
		for limit := float64(l.GetLoopLimit()); limit > 0 && a.Run > keyBlock && laneChunkLoops(float64(a.keyDim), float64(a.valueDim), float64(a.Run)) > limit; {
			a.Run /= 2
		}
	case l.GetWorkgroupBytes() < shared: // slower, but it shares nothing
		a.Rows, a.Choice, a.Params = 128, "lanes", map[string]uint32{"W": 32, "QR": 128}
	}
	if a.valueDim < 8 || a.valueDim > 512 || a.keyDim < a.valueDim || a.keyDim > 1024 || (a.keyDim|a.valueDim)%8 != 0 {
		return fmt.Errorf("kernels: attn_chunk: have keys of %d and values of %d, want multiples of 8, values of up to 512 and keys no shorter, up to 1024", a.keyDim, a.valueDim)
	}
	if a.kv < 1 || a.heads < 1 || a.heads%a.kv != 0 {
		return fmt.Errorf("kernels: attn_chunk: have %d heads over %d KV heads, want a multiple of them", a.heads, a.kv)
	}
	a.Params["HD"], a.Params["VD"], a.Params["VROW"] = uint32(a.keyDim), uint32(a.valueDim), uint32(a.keyDim)
	a.Params["G"], a.Params["RUN"] = uint32(a.heads/a.kv), uint32(a.Run)
	return nil
}

// Grid is that of attn_chunk: KV heads, tiles of query rows, runs. A window of 0 is none.
func (a AttnChunk) Grid(window int) []*program.Term {
	runs := &program.Term{Div: uint32(a.Run), N: program.Var_S}
	if window > 0 {
		runs.N, runs.Window = program.Var_SW, uint32(a.MergeWindow(window))
	}
	return []*program.Term{
		{Mul: uint32(a.kv)},
		{Mul: uint32(a.heads / a.kv), Div: uint32(a.Rows), N: program.Var_T},
		runs,
	}
}

// MergeWindow is the window that attn_merge is to be given for runs of Run positions (its KEYS): the runs of a tile
// start where its first row's window does, so that they reach over as many positions more as a tile has tokens more. 0 for none.
func (a AttnChunk) MergeWindow(window int) int {
	if window == 0 {
		return 0
	}
	g := a.heads / a.kv
	return window + (a.Rows-1+g-1)/g
}

// Part is the size of the buffer between the two kernels, in f32: per run, row and head a maximum, a sum and a head's values.
func (a AttnChunk) Part(window int) *program.Buffer {
	row := uint64(a.heads) * uint64(a.valueDim+2)
	if window > 0 {
		runs := (a.MergeWindow(window) + a.Run - 1) / a.Run
		return &program.Buffer{PerRow: row * uint64(runs)}
	}
	return &program.Buffer{PerRowPos: row, PosDiv: uint32(a.Run)}
}

// laneChunkLoops is how often the loops of lib/chunk_lanes.wgsl run at most.
func laneChunkLoops(headDim, valueDim, run float64) float64 {
	keys := loop(min(keyBlock, run), 0)
	return loop(math.Ceil(run/keyBlock), loop(math.Floor(headDim/8), keys)+loop(math.Floor(valueDim/8), keys)+2*keys)
}

// attnChunkLoops is for a workgroup that has keys; one without runs through less.
func attnChunkLoops(l *loops) float64 {
	run := min(l.p("RUN"), float64(l.step.S))
	if _, shared := l.kernel.GetParams()["VALUES"]; shared {
		return loop(math.Ceil(run/keyBlock), loop(math.Ceil(l.p("HD")/32), 0)+2*loop(8, 0)) + loop(4, 0)
	}
	return max(laneChunkLoops(l.p("HD"), l.p("VD"), run), loop(l.p("VD")/2, 0)+1)
}
