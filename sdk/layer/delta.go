package layer

import "github.com/sluicehost/sluice/sdk/program"

// Columns are consecutive values of a row, from Offset on: those of one tensor in a stacked
// Linear, say.
type Columns struct {
	Of     *Value
	Offset int
}

// has checks that the columns hold n values.
func (c Columns) has(l *Layer, what string, n int) bool {
	if c.Of == nil || c.Offset < 0 || n < 1 || c.Of.width-c.Offset < n {
		have := 0
		if c.Of != nil {
			have = c.Of.width
		}
		l.fail("blk.%d: %s: have rows of %d values, want %d from value %d", l.number, what, have, n, c.Offset)
		return false
	}
	return true
}

// tapsOf checks that a convolution's tensor, if it is there, has so many taps a row.
func (e *Encoder) tapsOf(tensor string, taps int) bool {
	t := e.source.tensor(tensor)
	if t != nil && (len(t.Dims) < 1 || t.Dims[0] != uint64(taps)) {
		e.fail("tensor %s: have shape %s, want [%d, …]", tensor, shapeOf(t), taps)
		return false
	}
	return true
}

// Conv is a causal depthwise convolution over time, then SiLU, of Width columns of a row.
type Conv struct {
	Offset, Width int
	Taps          int
	Tensors       []string // of the block, [Taps, …], the oldest tap first: Width channels in all
}

// Conv runs over the columns c.Offset to c.Offset + c.Width of x, and gives as many. The
// session keeps their last Taps - 1 rows in blk.N.conv_state.
func (l *Layer) Conv(x *Value, c Conv) *Value {
	y := l.scratch("conv", c.Width)
	if c.Taps < 2 {
		l.fail("blk.%d: convolution: have %d taps, want at least 2", l.number, c.Taps)
		return y
	}
	if !(Columns{x, c.Offset}).has(l, "convolution", c.Width) {
		return y
	}
	names := make([]string, len(c.Tensors))
	for i, t := range c.Tensors {
		if names[i] = l.prefix + t; !l.tapsOf(names[i], c.Taps) {
			return y
		}
	}
	// Many tokens of a channel are shared by lanes, each of which walks its run of them.
	w, lanes := l.width(64), 1
	if l.many() && !l.limits.GetCpu() {
		w, lanes = 256, 8
	}
	state := l.session(&program.Buffer{Name: l.prefix + "conv_state", Class: program.Class_STATE, Fixed: uint64((c.Taps - 1) * c.Width)})
	l.emit(&op{
		label:  l.prefix + "conv",
		spec:   spec("conv").with("TAPS", uint32(c.Taps)).with("W", w).with("LANES", uint32(lanes)),
		consts: consts{"n": uint32(c.Width), "stride": uint32(x.width), "off": uint32(c.Offset)},
		binds:  binds{"x": read(l.plain(x)), "kernel": at(l.vector(c.Taps*c.Width, names...)), "state": at(state), "y": write(y)},
		grid:   []*program.Term{groups(c.Width, int(w)/lanes)},
	})
	return y
}

// DeltaRule is the recurrence that Gated DeltaNet and KDA share. A value head keeps a matrix
// S of HeadDim × HeadDim; per token, with q̂ and k̂ of length 1,
//
//	S ← decay ⊙ S;  δ = sigmoid(Beta) · (v - Sᵀk̂);  S ← S + k̂ ⊗ δ;  o = Sᵀq̂ / √HeadDim
//
// The decay is e^g. Gated DeltaNet has one g a head, softplus(Decay + Bias) · A; KDA one per
// head and key dim, LowerBound · sigmoid(A · (Decay + Bias)).
type DeltaRule struct {
	Heads, KeyHeads, HeadDim int     // value head j reads key head j mod KeyHeads
	Eps                      float64 // q̂ = q / max(‖q‖, Eps)
	Beta                     Columns // a value per head
	Decay                    Columns // a value per head; of KDA HeadDim a head
	A, Bias                  string  // tensors of the block: [Heads], and as many values as Decay
	PerChannel               bool    // KDA
	LowerBound               float64 // KDA's; below 0
}

// MaxDeltaDim is the largest head size of the delta rule: a column of S lies in registers.
const MaxDeltaDim = 128

// DeltaRule runs over rows of q | k | v, q and k with KeyHeads heads and v with Heads. The
// result has Heads · HeadDim values. The session keeps S in blk.N.delta_state.
func (l *Layer) DeltaRule(qkv *Value, d DeltaRule) *Value {
	width, decays := d.Heads*d.HeadDim, d.Heads
	y := l.scratch("delta", max(0, width))
	if d.HeadDim < 32 || d.HeadDim > MaxDeltaDim || d.HeadDim%32 != 0 {
		l.fail("blk.%d: delta rule: have head size %d, want a multiple of 32 up to %d", l.number, d.HeadDim, MaxDeltaDim)
		return y
	}
	if d.KeyHeads < 1 || d.Heads < 1 || d.Heads%d.KeyHeads != 0 || qkv.width != width+2*d.KeyHeads*d.HeadDim {
		l.fail("blk.%d: delta rule: have %d value heads, %d key heads and %d values of q | k | v, want key heads that divide value heads, and %d values",
			l.number, d.Heads, d.KeyHeads, qkv.width, width+2*d.KeyHeads*d.HeadDim)
		return y
	}
	o := &op{
		label: l.prefix + "delta",
		spec:  spec("delta_rule").choose("decay", "head"),
		grid:  []*program.Term{one(d.Heads), groups(d.HeadDim, deltaWidth)},
	}
	if d.PerChannel {
		o.spec.choose("decay", "channel")
		decays = width
	}
	if !d.Beta.has(l, "delta rule: beta", d.Heads) || !d.Decay.has(l, "delta rule: decay", decays) {
		return y
	}
	o.spec.with("D", uint32(d.HeadDim)).with("W", deltaWidth).with("TB", 8)
	if !l.many() && !l.limits.GetCpu() {
		// All lanes fetch the one token, and share the columns of S: what counts is how many loads one waits for.
		split := uint32(d.HeadDim / 32)
		o.spec.with("TB", 1).with("SPLIT", split).with("W", deltaWidth*split)
	}
	o.consts = consts{"heads": uint32(d.Heads), "key_heads": uint32(d.KeyHeads), "lower": d.LowerBound, "eps": d.Eps,
		"beta_stride": uint32(d.Beta.Of.width), "beta_off": uint32(d.Beta.Offset),
		"raw_stride": uint32(d.Decay.Of.width), "raw_off": uint32(d.Decay.Offset)}
	state := l.session(&program.Buffer{Name: l.prefix + "delta_state", Class: program.Class_STATE, Fixed: uint64(width * d.HeadDim)})
	o.binds = binds{"qkv": read(l.plain(qkv)), "beta": read(l.plain(d.Beta.Of)), "raw": read(l.plain(d.Decay.Of)),
		"a": at(l.vector(d.Heads, l.prefix+d.A)), "dt": at(l.vector(decays, l.prefix+d.Bias)), "state": at(state), "y": write(y)}
	l.emit(o)
	return y
}

// deltaWidth is how many columns of a head one workgroup walks: few, so that many workgroups share a head.
const deltaWidth = 32

// GatedNorm is an RMS norm per head whose result a gate multiplies.
type GatedNorm struct {
	HeadDim int
	Weight  string // tensor of the block, [HeadDim]
	Eps     float64
	Gate    Columns // as many values as the normed rows
	Sigmoid bool    // the gate is sigmoid(Gate), else silu(Gate)
}

// GatedNorm is x's heads / rms ⊙ n.Weight ⊙ act(n.Gate).
func (l *Layer) GatedNorm(x *Value, n GatedNorm) *Value {
	y := l.scratch("gated", x.width)
	if n.HeadDim < 1 || x.width%n.HeadDim != 0 {
		l.fail("blk.%d: gated norm: have rows of %d values, want heads of %d", l.number, x.width, n.HeadDim)
		return y
	}
	if !n.Gate.has(l, "gated norm: gate", x.width) {
		return y
	}
	silu := uint32(1)
	if n.Sigmoid {
		silu = 0
	}
	l.emit(&op{
		label: l.prefix + "gated_norm",
		spec:  spec("gated_norm").with("W", l.widthFor(n.HeadDim, 256)).with("SILU", silu),
		consts: consts{"d": uint32(n.HeadDim), "heads": uint32(x.width / n.HeadDim), "eps": n.Eps,
			"stride": uint32(n.Gate.Of.width), "off": uint32(n.Gate.Offset)},
		binds: binds{"x": read(l.plain(x)), "nw": at(l.vector(n.HeadDim, l.prefix+n.Weight)), "gate": read(l.plain(n.Gate.Of)), "y": write(y)},
		grid:  []*program.Term{one(x.width / n.HeadDim), perRow()},
	})
	return y
}
