package layer

import (
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// Latent is multi-head latent attention in its absorbed form (DeepSeek-V2, arXiv 2405.04434, section 2.1): what is cached of a
// token is one latent c and one key part k_pe with its position, shared by all heads. A head's key is [KeyUp_hᵀ · c | k_pe] and
// its value ValueUp_h · c; so KeyUp is applied to the query and ValueUp to the sum, and no key or value of a head is ever made.
type Latent struct {
	Heads     int
	Rank      int    // values of c
	Nope, Rot int    // values of a head's query without and with RoPE, which pairs neighbours
	Value     int    // values of a head's result
	Norm      string // tensor of the block, [Rank]: the RMS norm of c
	KeyUp     string // tensor of the block, [Nope, Rank, Heads]
	ValueUp   string // tensor of the block, [Rank, Value, Heads]
	Eps       float64
	Rope      Rope // of Rot dims
	Scale     float64
}

// MaxLatent is the largest Rank that the kernels have.
const MaxLatent = 512

// Latent runs over q, whose rows hold Heads queries [Nope | Rot], and over kv, whose rows begin with [c | k_pe] and may go on. It
// keeps [c | k_pe] in the session's cache blk.N.latent, in f32. The result has Heads · Value values.
func (l *Layer) Latent(q, kv *Value, a Latent) *Value {
	y := l.scratch("attn", a.Heads*a.Value)
	if !l.latentFits(q, kv, a) {
		return y
	}
	key, value := l.headMatrix(a.Nope, a.Rank, a.Heads, a.KeyUp), l.headMatrix(a.Rank, a.Value, a.Heads, a.ValueUp)
	if key == nil || value == nil {
		return y
	}
	q, kv = l.plain(q), l.plain(kv)
	width := a.Rank + a.Rot
	query := l.scratch("query", a.Heads*width)
	cache := l.session(&program.Buffer{Name: l.prefix + "latent", Class: program.Class_KV, Elem: program.Elem_F32, PerPos: uint64(width)})
	l.emit(l.latentRows(q, kv, query, cache, a))
	l.perHead(key, q, a.Nope+a.Rot, query, width)
	sums := l.latentAttention(query, cache, a)
	l.perHead(value, sums, a.Rank, y, a.Value)
	return y
}

func (l *Layer) latentFits(q, kv *Value, a Latent) bool {
	switch {
	case a.Heads < 1 || a.Rank < 32 || a.Rank%32 != 0 || a.Rank > MaxLatent || a.Nope < 32 || a.Nope%32 != 0 || a.Rot < 8 || a.Rot%8 != 0 || a.Value < 1:
		l.fail("blk.%d: latent attention: have %d heads of %d + %d values over a latent of %d: want sizes without RoPE and of the latent in multiples of 32, with RoPE of 8, and a latent of up to %d",
			l.number, a.Heads, a.Nope, a.Rot, a.Rank, MaxLatent)
	case a.Rope.dims != a.Rot:
		l.fail("blk.%d: latent attention: have rotations of %d dims, want %d", l.number, a.Rope.dims, a.Rot)
	case q.width != a.Heads*(a.Nope+a.Rot) || kv.width < a.Rank+a.Rot:
		l.fail("blk.%d: latent attention: have %d values of q and %d of kv, want %d and at least %d", l.number, q.width, kv.width, a.Heads*(a.Nope+a.Rot), a.Rank+a.Rot)
	default:
		return true
	}
	return false
}

// latentRows writes the cache's row and the part of the queries that is turned.
func (l *Layer) latentRows(q, kv, query *Value, cache *program.Binding, a Latent) *op {
	return &op{
		label:  l.prefix + "latent",
		spec:   spec("latent").with("RANK", uint32(a.Rank)).with("ROT", uint32(a.Rot)).with("W", l.width(64)),
		consts: consts{"heads": uint32(a.Heads), "q_stride": uint32(q.width), "nope": uint32(a.Nope), "kv_stride": uint32(kv.width), "eps": a.Eps},
		binds: binds{"q": read(q), "kv": read(kv), "norm": at(l.vector(a.Rank, l.prefix+a.Norm)),
			"rope": at(&program.Binding{At: &program.Binding_Rope{Rope: uint32(a.Rope.index)}}), "query": write(query), "cache": at(cache)},
		grid: []*program.Term{one(a.Heads + 1), perRow()},
	}
}

// latentAttention is each head's softmax(query · [c | k_pe]) over the cached c.
func (l *Layer) latentAttention(query *Value, cache *program.Binding, a Latent) *Value {
	runs := l.latentRuns(a)
	part, sums := l.scratchShape("part", 0, runs.part), l.scratch("sums", a.Heads*a.Rank)
	o := runs.split
	o.label = l.prefix + "attn.split"
	o.spec.choose("kv", "f32")
	o.consts = consts{"kv_heads": uint32(1), "window": uint32(0), "scale": a.Scale}
	o.binds = binds{"q": read(query), "kc": at(cache), "vc": at(cache), "part": write(part)}
	l.emit(o)
	o = runs.merge
	o.label = l.prefix + "attn.merge"
	o.consts = consts{"heads": uint32(a.Heads), "window": uint32(0)}
	o.binds = binds{"part": read(part), "y": write(sums)}
	l.emit(o)
	return sums
}

func (l *Layer) latentRuns(a Latent) attnRuns {
	if !l.many() {
		c, err := kernels.NewLatentSplit(l.limits, a.Heads, a.Rank+a.Rot, a.Rank)
		return l.splitRuns(c, err, a.Heads, 0)
	}
	c, err := kernels.NewLatentChunk(l.limits, a.Heads, a.Rank+a.Rot, a.Rank)
	return l.chunkRuns(c, err, a.Heads, a.Rank, 0)
}
