package layer

import "github.com/sluicehost/sluice/sdk/ggml"

// split is the work split of a matrix-vector kernel (lib/lanes.wgsl): workgroups of W
// invocations, teams of L lanes, R rows a team, K units of each in flight.
type split struct{ w, l, r, k uint32 }

// split picks lanes by shape, for matrices of these types that a team reads rows of. A software device wants one lane a
// team and no shared memory; on a GPU, wrong lane counts cost up to 4x: few rows want many lanes, the head few
// (measured on an H200, docs/kernels.md).
func (e *Encoder) split(rows, units int, types ...uint32) split {
	if e.limits.GetCpu() {
		return split{8, 1, 4, 1}
	}
	s := split{w: e.width(256), l: 32, r: 2}
	switch {
	case rows < 300:
		s = split{w: 64, l: 64, r: 1}
	case rows > 32768:
		s = split{w: 128, l: 8, r: 4}
	case len(types) > 1:
		s.r = 1
	}
	return s.fit(units, types...)
}

// expertSplit is split for the routed experts' first half, whose picks multiply the groups.
func (e *Encoder) expertSplit(rows, units int, types ...uint32) split {
	s := e.split(rows, units, types...)
	if !e.limits.GetCpu() && rows >= 300 {
		s.r = 2
		s.w = min(s.w, 128)
	}
	return s.fit(units, types...)
}

// expertDownSplit is split for their second half, whose rows are short.
func (e *Encoder) expertDownSplit(units int, t uint32) split {
	return split{w: 128, l: 8, r: 2}.fit(units, t)
}

// wordsInFlight bounds what a lane fetches at once: they are registers.
const wordsInFlight = 64

// fit gives a GPU's split no lanes without a unit, and as many units in flight as a row has and registers allow.
func (s split) fit(units int, types ...uint32) split {
	if s.l == 1 {
		return s
	}
	for s.l > 8 && int(s.l) > units {
		s.l /= 2
	}
	words := uint32(0)
	for _, t := range types {
		words += (uint32(ggml.Type(t).BlockBytes()*32/ggml.Type(t).BlockSize()) + 3) / 4
	}
	passes := (uint32(units) + s.l - 1) / s.l
	s.k = max(1, min(passes, 4, wordsInFlight/(s.r*max(1, words))))
	return s
}

// rows is how many rows one workgroup computes.
func (s split) rows() int { return int(s.w / s.l * s.r) }

// apply sets the split's override constants.
func (s split) apply(o opSpec) {
	o.with("W", s.w).with("L", s.l).with("R", s.r).with("K", s.k).with("RW", s.r*s.w)
}

// apply gives a matrix-vector kernel its split, and its activations a way: on a GPU through workgroup memory, where a row of
// units fits.
func (e *Encoder) apply(o opSpec, s split, units int) {
	s.apply(o)
	if o.Name == "pair" || o.Name == "expert_pair" {
		o.with("RW", 2*s.r*s.w)
	}
	o.choose("x", "plain")
	room := (uint32(units) + 31) / 32 * 32 // few sizes: few kernels to compile
	if e.limits.GetCpu() || room*9*16+o.Params["RW"]*4 > e.limits.GetWorkgroupBytes() {
		return
	}
	o.choose("x", "staged").with("XU", room).with("XL", min(8, (room*8+s.w-1)/s.w))
}

// width is a workgroup size for element-wise work: wide groups gain nothing on a software device. On a GPU it is a power of two.
func (e *Encoder) width(gpu uint32) uint32 {
	if e.limits.GetCpu() {
		return min(gpu, 16)
	}
	for most := e.limits.GetMaxInvocations(); most > 0 && gpu > most; {
		gpu /= 2
	}
	return gpu
}

// widthFor is a workgroup size for n pieces of work, one an invocation where the GPU has so many: what a lone workgroup
// does in turns takes a wait for memory each.
func (e *Encoder) widthFor(n int, most uint32) uint32 {
	w := uint32(64) // lib/sum.wgsl is for wide workgroups from here on
	for w < most && int(w) < n {
		w *= 2
	}
	return e.width(w)
}

// valued chooses lib/value_*.wgsl for rows of n values, which a kernel reads per at once.
func (s opSpec) valued(n int) (_ opSpec, per int) {
	if n%4 == 0 {
		return s.choose("value", "four"), 4
	}
	return s.choose("value", "one"), 1
}
