package gpu

import (
	"fmt"

	"github.com/cogentcore/webgpu/wgpu"
	"github.com/dustin/go-humanize"
)

// Range is a part of a buffer, in bytes. Size 0 means to the end.
type Range struct {
	Buffer       *Buffer
	Offset, Size uint64
}

// BindGroup is the set of ranges a dispatch works on, in the order of the pipeline's bindings.
type BindGroup struct {
	p     *Pipeline
	label string
	ref   handle

	// What the dispatch's other uses are checked against; fixed.
	writes []*Buffer // bound as Storage

	// The rest belongs to the owner goroutine.
	g        *wgpu.BindGroup
	dead     bool      // released, or one of its buffers is
	mappable []*Buffer // to be checked at each submit
	buffers  []*Buffer
}

// NewBindGroup binds ranges to the bindings of p. It checks count, usage, alignment, size, limits, and that no buffer is bound
// both as Storage and as something else, nor twice as Storage with overlapping ranges. An error names label and binding.
func (d *Device) NewBindGroup(p *Pipeline, label string, ranges []Range) (*BindGroup, error) {
	where := fmt.Sprintf("gpu: bind group %s of kernel %s", label, p.label)
	if len(ranges) != len(p.bindings) {
		return nil, fmt.Errorf("%s: have %d ranges, want %d", where, len(ranges), len(p.bindings))
	}
	full := make([]Range, len(ranges))
	for i, r := range ranges {
		var err error
		if full[i], err = d.checkBinding(p.bindings[i], r); err != nil {
			return nil, fmt.Errorf("%s: binding %d (%s): %w", where, i, p.bindings[i], err)
		}
	}
	if err := checkAliases(p.bindings, full); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	g := &BindGroup{p: p, label: label}
	for i, r := range full {
		if p.bindings[i] == Storage {
			g.writes = append(g.writes, r.Buffer)
		}
	}
	if err := d.do(func() error { return g.create(full) }); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return g, nil
}

// checkBinding checks one range and fills in its size.
func (d *Device) checkBinding(t BindingType, r Range) (Range, error) {
	need, align, most := UsageStorage, d.limits.StorageAlign, d.limits.MaxStorageBinding
	if t == Uniform {
		need, align, most = UsageUniform, d.limits.UniformAlign, d.limits.MaxUniformBinding
	}
	b := r.Buffer
	switch {
	case b == nil:
		return r, fmt.Errorf("no buffer")
	case b.d != d:
		return r, fmt.Errorf("buffer %s is of another device", b.label)
	case b.usage&need == 0:
		return r, fmt.Errorf("buffer %s: have usage %s, want %s", b.label, b.usage, need)
	case r.Offset%align != 0:
		return r, fmt.Errorf("buffer %s: have offset %d, want a multiple of %d", b.label, r.Offset, align)
	case r.Offset >= b.size || r.Size > b.size-r.Offset:
		return r, fmt.Errorf("buffer %s: have %d bytes at %d, want them within the buffer's %d", b.label, r.Size, r.Offset, b.size)
	}
	if r.Size == 0 {
		r.Size = b.size - r.Offset
	}
	if r.Size > most {
		return r, fmt.Errorf("buffer %s: have a range of %s, want at most %s: split it", b.label, humanize.IBytes(r.Size), humanize.IBytes(most))
	}
	if r.Size%4 != 0 {
		return r, fmt.Errorf("buffer %s: have a range of %d bytes, want a multiple of 4", b.label, r.Size)
	}
	return r, nil
}

// checkAliases refuses a buffer that is written through one binding and used through another: the library tracks whole
// buffers and would refuse it too, but only at the end of the pass.
func checkAliases(types []BindingType, ranges []Range) error {
	for i, r := range ranges {
		if types[i] != Storage {
			continue
		}
		for j, o := range ranges {
			if j == i || o.Buffer != r.Buffer || types[j] == Storage && !overlap(r, o) {
				continue
			}
			return fmt.Errorf("buffer %s is bound as %s at %d and as %s at %d: use two buffers", r.Buffer.label, types[i], i, types[j], j)
		}
	}
	return nil
}

func overlap(a, b Range) bool { return a.Offset < b.Offset+b.Size && b.Offset < a.Offset+a.Size }

func (g *BindGroup) create(ranges []Range) error {
	d := g.p.d
	if g.p.released {
		return fmt.Errorf("the pipeline is released")
	}
	entries := make([]wgpu.BindGroupEntry, len(ranges))
	for i, r := range ranges {
		if r.Buffer.state == stateReleased {
			return fmt.Errorf("buffer %s is released", r.Buffer.label)
		}
		entries[i] = wgpu.BindGroupEntry{Binding: uint32(i), Buffer: r.Buffer.b, Offset: r.Offset, Size: r.Size}
	}
	err := d.created(func() (err error) {
		g.g, err = d.n.device.CreateBindGroup(&wgpu.BindGroupDescriptor{Label: g.label, Layout: g.p.layout, Entries: entries})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s", libraryText(err.Error()))
	}
	g.ref = groupRef(g.g)
	for _, r := range ranges {
		r.Buffer.groups[g] = struct{}{}
		g.buffers = append(g.buffers, r.Buffer)
		if r.Buffer.usage&usageMappable != 0 {
			g.mappable = append(g.mappable, r.Buffer)
		}
	}
	d.live[g] = struct{}{}
	return nil
}

// Label is the name given to NewBindGroup.
func (g *BindGroup) Label() string { return g.label }

// Release frees the bind group, not its buffers. Releasing twice, or after Close, is fine.
func (g *BindGroup) Release() {
	_ = g.p.d.do(func() error { g.release(); return nil }) // ErrClosed: Close has released it
}

func (g *BindGroup) release() {
	if g.g == nil {
		return
	}
	for _, b := range g.buffers {
		delete(b.groups, g)
	}
	g.dead, g.buffers, g.mappable = true, nil, nil
	g.g.Release()
	g.g = nil
	delete(g.p.d.live, g)
}
