package layer

import (
	"fmt"
	"maps"

	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// Rope is a table of rotations that the host computes for each token.
type Rope struct {
	index int
	dims  int
}

// RopeTable declares rotations for dims dims of a head: pair i of dims/2 turns by
// pos · base^(-2i/dims). divisor, where not empty, is an F32 tensor that divides pair by pair.
func (e *Encoder) RopeTable(name string, dims int, base float64, divisor string) Rope {
	if dims <= 0 || dims%2 != 0 {
		e.fail("rope %s: have %d rotated dims, want an even number", name, dims)
		return Rope{}
	}
	i, err := e.source.rope(&program.Rope{Name: name, Pairs: uint32(dims / 2), Base: base, BaseDims: uint32(dims), Divisor: divisor})
	if err != nil {
		e.fail("%w", err)
	}
	return Rope{index: i, dims: dims}
}

// Attention is softmax(q·k · Scale)·v over the session's positions, with per-head RMS norms
// on q and k and NeoX RoPE. Query head h reads KV head h div (Heads/KVHeads).
type Attention struct {
	Heads, KVHeads, HeadDim int
	QNorm, KNorm            string // tensors of the block, [HeadDim]
	Eps                     float64
	Rope                    Rope
	Scale                   float64
	Window                  int  // keys seen, the newest included; 0 is all
	Gated                   bool // each query head comes as [query | gate], HeadDim values each; the result is times sigmoid(gate)
	KeyAsValue              bool // rows have no v: it is k before its norm and RoPE
	VNorm                   bool // RMS norm, without a weight, on the heads of v
}

// queries is how many values of a row belong to the query heads.
func (a Attention) queries() int {
	if a.Gated {
		return 2 * a.Heads * a.HeadDim
	}
	return a.Heads * a.HeadDim
}

// row is the length of the rows that Attention takes.
func (a Attention) row() int {
	kv := a.KVHeads * a.HeadDim
	if a.KeyAsValue {
		return a.queries() + kv
	}
	return a.queries() + 2*kv
}

// Attention runs over qkv, whose rows hold q | k | v of all heads (q with its gates, v perhaps
// not, by a). It keeps k and v in the session's caches blk.N.k_cache and v_cache. The result
// has Heads · HeadDim values.
func (l *Layer) Attention(qkv *Value, a Attention) *Value {
	q, y := l.scratch("q", a.Heads*a.HeadDim), l.scratch("attn", a.Heads*a.HeadDim)
	if a.Heads <= 0 || a.KVHeads <= 0 || a.Heads%a.KVHeads != 0 || a.HeadDim <= 0 || a.HeadDim%2 != 0 || a.Rope.dims > a.HeadDim {
		l.fail("blk.%d: attention: have %d heads, %d KV heads, head size %d, %d rotated dims: want heads a multiple of KV heads, an even head size, no more rotated dims than that",
			l.number, a.Heads, a.KVHeads, a.HeadDim, a.Rope.dims)
		return y
	}
	if qkv.width != a.row() {
		l.fail("blk.%d: attention: have %d values of q | k | v, want %d", l.number, qkv.width, a.row())
		return y
	}
	if a.Window >= int(l.source.model().GetContext()) {
		a.Window = 0 // every position is seen: a cache like any other will do
	}
	qkv = l.plain(qkv)
	k, v := l.cache("k_cache", a), l.cache("v_cache", a)
	l.emit(l.heads(a, qkv, q, k, v))
	runs := l.attnRuns(a)
	part := l.scratchShape("part", 0, runs.part)
	o := runs.split
	o.label = l.prefix + "attn.split"
	o.spec.choose("kv", l.kvChoice())
	o.consts = consts{"kv_heads": uint32(a.KVHeads), "window": uint32(a.Window), "scale": a.Scale}
	o.binds = binds{"q": read(q), "kc": at(k), "vc": at(v), "part": write(part)}
	l.emit(o)
	o = runs.merge
	o.label = l.prefix + "attn.merge"
	o.consts = consts{"heads": uint32(a.Heads), "window": uint32(runs.window)}
	o.binds = binds{"part": read(part), "y": write(y)}
	l.emit(o)
	if a.Gated {
		return l.Gate(y, qkv, Gate{Width: a.HeadDim, Stride: 2 * a.HeadDim, Offset: a.HeadDim, Each: true})
	}
	return y
}

// attnRuns is how the cached positions are cut into runs: the kernel that computes a run, what it
// hands to attn_merge (a maximum, a sum and a head's values per run, token and head), and attn_merge as it joins them.
type attnRuns struct {
	split, merge *op // without operands
	part         *program.Buffer
	window       int // that attn_merge is told
}

func (l *Layer) attnRuns(a Attention) attnRuns {
	if !l.many() {
		c, err := kernels.NewAttnSplit(l.limits, a.Heads, a.KVHeads, a.HeadDim)
		return l.splitRuns(c, err, a.Heads, a.Window)
	}
	c, err := kernels.NewAttnChunk(l.limits, a.Heads, a.KVHeads, a.HeadDim)
	return l.chunkRuns(c, err, a.Heads, a.HeadDim, a.Window)
}

// splitRuns is attnRuns for one token.
func (l *Layer) splitRuns(c kernels.AttnSplit, err error, heads, window int) attnRuns {
	if err != nil {
		l.fail("blk.%d: attention: %w", l.number, err)
		return attnRuns{split: &op{}, merge: &op{}, part: &program.Buffer{}}
	}
	split := &op{spec: spec("attn_split").choose("split", c.Choice), grid: c.Grid(window)}
	merge := &op{spec: spec("attn_merge"), grid: c.MergeGrid(heads)}
	maps.Copy(split.spec.Params, c.Params)
	maps.Copy(merge.spec.Params, c.Merge)
	return attnRuns{split: split, merge: merge, part: c.Part(window), window: window}
}

// chunkRuns is attnRuns for many tokens, with values of valueDim.
func (l *Layer) chunkRuns(c kernels.AttnChunk, err error, heads, valueDim, window int) attnRuns {
	if err != nil {
		l.fail("blk.%d: attention: %w", l.number, err)
	}
	split := &op{spec: spec("attn_chunk").choose("chunk", c.Choice), grid: c.Grid(window)}
	maps.Copy(split.spec.Params, c.Params)
	merge := &op{spec: spec("attn_merge").with("HD", uint32(valueDim)).with("KEYS", uint32(c.Run)).with("W", l.width(64)),
		grid: []*program.Term{one(heads), one(1), perRow()}}
	return attnRuns{split: split, merge: merge, part: c.Part(window), window: c.MergeWindow(window)}
}

// cache is this block's k or v cache.
func (l *Layer) cache(name string, a Attention) *program.Binding {
	b := &program.Buffer{Name: l.prefix + name, Class: program.Class_KV, Elem: l.kvElem(), PerPos: uint64(a.KVHeads * a.HeadDim)}
	if a.Window > 0 {
		b.Class, b.Window = program.Class_RING, uint32(a.Window)
	}
	return l.session(b)
}

func (e *Encoder) kvElem() program.Elem {
	if e.kvF32 {
		return program.Elem_F32
	}
	return program.Elem_F16
}

func (e *Encoder) kvChoice() string {
	if e.kvF32 {
		return "f32"
	}
	return "f16"
}

// heads splits rows of qkv into q and the caches' rows.
func (l *Layer) heads(a Attention, qkv, q *Value, k, v *program.Binding) *op {
	hd, rope := uint32(a.HeadDim), &program.Binding{At: &program.Binding_Rope{Rope: uint32(a.Rope.index)}}
	kOff, qStep, vNorm := uint32(a.queries()), uint32(a.queries()/a.Heads), uint32(0)
	vOff := kOff + uint32(a.KVHeads)*hd
	if a.KeyAsValue {
		vOff = kOff
	}
	if a.VNorm {
		vNorm = 1
	}
	return &op{
		label: l.prefix + "heads",
		spec: spec("heads").choose("kv", l.kvChoice()).with("HD", hd).with("ROT", uint32(a.Rope.dims)).
			with("NEOX", 1).with("VNORM", vNorm).with("W", l.widthFor(a.HeadDim/2, 256)),
		consts: consts{"stride": uint32(qkv.width), "q_off": uint32(0), "q_step": qStep, "k_off": kOff, "v_off": vOff,
			"heads": uint32(a.Heads), "kv_heads": uint32(a.KVHeads), "window": uint32(a.Window), "eps": a.Eps},
		binds: binds{"qkv": read(qkv), "q_norm": at(l.vector(a.HeadDim, l.prefix+a.QNorm)), "k_norm": at(l.vector(a.HeadDim, l.prefix+a.KNorm)),
			"rope": at(rope), "q": write(q), "kc": at(k), "vc": at(v)},
		grid: []*program.Term{one(a.Heads + 2*a.KVHeads), perRow()},
	}
}

// ShortConv is LFM2's gated short convolution over bcx, whose rows hold b | c | u of equal
// width: y = c ⊙ conv(b ⊙ u), causal and per channel, with taps weights in the tensor
// [taps, width], the oldest first. The session keeps the last taps - 1 rows of b ⊙ u.
func (l *Layer) ShortConv(bcx *Value, tensor string, taps int) *Value {
	n := bcx.width / 3
	y := l.scratch("conv", n)
	if taps < 2 || bcx.width%3 != 0 {
		l.fail("blk.%d: short convolution: have %d taps over %d values, want at least 2 taps and a multiple of 3", l.number, taps, bcx.width)
		return y
	}
	if !l.tapsOf(l.prefix+tensor, taps) {
		return y
	}
	state := l.session(&program.Buffer{Name: fmt.Sprintf("%sconv_state", l.prefix), Class: program.Class_STATE, Fixed: uint64((taps - 1) * n)})
	w := l.width(64)
	l.emit(&op{
		label:  l.prefix + "shortconv",
		spec:   spec("shortconv").with("TAPS", uint32(taps)).with("W", w),
		consts: consts{"hidden": uint32(n)},
		binds:  binds{"bcx": read(l.plain(bcx)), "kernel": at(l.vector(taps*n, l.prefix+tensor)), "state": at(state), "y": write(y)},
		grid:   []*program.Term{groups(n, int(w))},
	})
	return y
}
