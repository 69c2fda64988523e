package layer

// split is the work split of a matrix-vector kernel (lib/lanes.wgsl): workgroups of W
// invocations, teams of L lanes, R rows a team.
type split struct{ w, l, r uint32 }

// split picks lanes by shape. A software device wants one lane a team and no shared memory;
// on a GPU, wrong lane counts cost up to 4x: few rows want many lanes, the head few
// (measured on an H200, docs/kernels.md).
func (e *Encoder) split(rows, units int) split {
	if e.limits.GetCpu() {
		return split{8, 1, 4}
	}
	s := split{128, 32, 2}
	switch {
	case rows < 300:
		s = split{64, 64, 2}
	case rows > 32768:
		s = split{128, 8, 4}
	}
	for s.l > 8 && int(s.l) > units {
		s.l /= 2
	}
	return s
}

// expertSplit is split for the routed experts, whose picks multiply the groups.
func (e *Encoder) expertSplit(rows, units int) split {
	s := e.split(rows, units)
	if !e.limits.GetCpu() && rows >= 300 {
		s.r = 4
	}
	return s
}

// rows is how many rows one workgroup computes.
func (s split) rows() int { return int(s.w / s.l * s.r) }

// apply sets the split's override constants.
func (s split) apply(o opSpec) {
	o.with("W", s.w).with("L", s.l).with("R", s.r).with("RW", s.r*s.w)
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
