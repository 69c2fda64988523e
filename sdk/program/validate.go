package program

import (
	"google.golang.org/protobuf/proto"
)

// MaxMessage is the largest message that host and plugin exchange, in bytes.
const MaxMessage = 64 << 20

// Bounds is what a program is validated against: the device, and the sizes
// that the host has picked.
type Bounds struct {
	Limits       *Limits // of the device; a field of 0 is no limit
	StorageAlign uint32  // minStorageBufferOffsetAlignment; 0 means 256
	UniformAlign uint32  // minUniformBufferOffsetAlignment; 0 means 256
	Chunk        uint64  // most tokens of a step
	Outs         uint64  // most output rows of a step
	Context      uint64  // most positions of a session
	Budget       uint64  // bytes that the program's buffers (of one session) and the host's tables may take, 0 = any
	MaxBuffer    uint64  // bytes of the largest buffer, 0 = any
}

// ValidatePlan checks what a plugin plans for the file of header h. The error
// joins up to 20 faults, each naming the part of the plan or the tensor. A plan
// that passes refers only to tensors that exist and have usable shapes and types.
func ValidatePlan(h *Header, p *Plan) error {
	c := &planChecker{plan: p, tensors: map[string]*Tensor{}, read: map[string]bool{}}
	if n := proto.Size(p); n > MaxMessage {
		c.addf("plan: have a message of %d bytes, want at most %d", n, MaxMessage)
		return c.err()
	}
	for _, t := range h.GetTensors() {
		c.tensors[t.GetName()] = t
	}
	for _, rule := range []func(){
		func() { c.architecture(h, p.GetModel().GetArchitecture()) },
		func() { c.model(p.GetModel()) },
		c.weights,
		c.records,
		func() { c.embed(h, p.GetEmbed()) },
		c.ropes,
		func() { c.chat(p.GetChat()) },
		c.unused,
	} {
		rule()
	}
	return c.err()
}

// Validate checks a program, and the placed weights it was encoded for,
// against a plan that ValidatePlan has passed. The error joins up to 20 faults,
// each naming the buffer, kernel or dispatch. The host replays a program that
// passes without further checks.
func Validate(p *Plan, placed []*Placed, records []*PlacedRecord, prog *Program, b Bounds) error {
	c := &checker{plan: p, placed: placed, records: records, prog: prog, b: b.withDefaults()}
	if n := proto.Size(prog); n > MaxMessage {
		c.addf("have a message of %d bytes, want at most %d", n, MaxMessage)
		return c.err()
	}
	if c.bounds(); c.any() {
		return c.err()
	}
	if c.counts(); c.any() {
		return c.err()
	}
	for _, rule := range []func(){
		c.placedWeights,
		c.placedRecords,
		c.buffers,
		c.input,
		c.memory,
		c.kernels,
		c.order,
		c.sections,
	} {
		rule()
	}
	if !c.any() { // what follows a wrong index or a missing variant would only confuse
		c.flow()
	}
	return c.err()
}

// checker holds what the rules of Validate share.
type checker struct {
	faults
	plan    *Plan
	placed  []*Placed
	records []*PlacedRecord
	prog    *Program
	b       Bounds
	decls   []*Decl // of each kernel; nil where its WGSL was refused
}

// maxExtent bounds chunk, outs and context: positions are u32 in kernels.
const maxExtent = 1 << 31

// withDefaults replaces what is not set.
func (b Bounds) withDefaults() Bounds {
	const none = 1<<64 - 1
	if b.Limits == nil {
		b.Limits = &Limits{}
	}
	if b.StorageAlign == 0 {
		b.StorageAlign = 256
	}
	if b.UniformAlign == 0 {
		b.UniformAlign = 256
	}
	if b.Budget == 0 {
		b.Budget = none
	}
	if b.MaxBuffer == 0 {
		b.MaxBuffer = none
	}
	return b
}

// limit is a limit of which 0 means none.
func limit[N uint32 | uint64](n N) uint64 {
	if n == 0 {
		return 1<<64 - 1
	}
	return uint64(n)
}

// bounds checks the host's own figures, since everything is measured by them.
func (c *checker) bounds() {
	for _, x := range []struct {
		name string
		n    uint64
	}{{"chunk", c.b.Chunk}, {"outs", c.b.Outs}, {"context", c.b.Context}} {
		if x.n == 0 || x.n > maxExtent {
			c.addf("bounds: have %s %d, want 1 to %d", x.name, x.n, maxExtent)
		}
	}
	m := c.plan.GetModel()
	if m.GetTopK() > maxPicks || m.GetExperts() > maxExperts || m.GetVocab() > maxVocab || len(c.plan.GetRopes()) > maxRopes {
		c.addf("plan: have %d experts, top_k %d, vocab %d and %d ropes: run ValidatePlan first",
			m.GetExperts(), m.GetTopK(), m.GetVocab(), len(c.plan.GetRopes()))
	}
	for _, r := range c.plan.GetRopes() {
		if r.GetPairs() > maxPairs {
			c.addf("plan: rope %s: have %d pairs: run ValidatePlan first", clip(r.GetName()), r.GetPairs())
		}
	}
	for _, align := range []uint32{c.b.StorageAlign, c.b.UniformAlign} {
		if align&(align-1) != 0 {
			c.addf("bounds: have an alignment of %d, want a power of two", align)
		}
	}
}

// The most of each thing that a program may hold. Real programs stay a
// hundredfold below; the limits keep every check short.
const (
	maxBuffers    = 1 << 14
	maxKernels    = 1 << 11
	maxSections   = 1 << 12
	maxVariants   = 16
	maxDispatches = 1 << 16
	maxBindings   = 1 << 18
	maxSource     = 8 << 20 // bytes of WGSL in all kernels
	maxClasses    = 64      // rows at which some section changes its variant
	maxBands      = 1 << 18
	maxParams     = 64
)

// counts checks the lengths of all lists.
func (c *checker) counts() {
	if v := c.prog.GetVersion(); v != 1 {
		c.addf("version: have %d, want 1: host and plugin were built from different protocols", v)
	}
	c.count("buffers", len(c.prog.GetBuffers()), maxBuffers)
	c.count("kernels", len(c.prog.GetKernels()), maxKernels)
	c.count("sections", len(c.prog.GetSections()), maxSections)
	source := 0
	for _, k := range c.prog.GetKernels() {
		source += len(k.GetWgsl())
		c.count("kernel "+clip(k.GetName())+": slots", len(k.GetSlots()), maxBound)
		c.count("kernel "+clip(k.GetName())+": params and types", len(k.GetParams())+len(k.GetTypes()), maxParams)
	}
	c.count("bytes of WGSL in all kernels", source, maxSource)
	var dispatches, bindings int
	for i, s := range c.prog.GetSections() {
		if !c.count(sectionName(i, s)+": variants", len(s.GetVariants()), maxVariants) {
			continue
		}
		for _, v := range s.GetVariants() {
			dispatches += len(v.GetDispatches())
			for _, d := range v.GetDispatches() {
				bindings += len(d.GetBindings())
			}
		}
	}
	c.count("dispatches", dispatches, maxDispatches)
	c.count("bindings", bindings, maxBindings)
	bands := 0
	for _, w := range c.placed {
		bands += len(w.GetBands())
	}
	c.count("bands", bands, maxBands)
}
