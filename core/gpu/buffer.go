package gpu

import (
	"fmt"
	"strings"

	"github.com/cogentcore/webgpu/wgpu"
	"github.com/dustin/go-humanize"
)

// Usage says what a buffer may be used for: a set of these, with the meaning of WebGPU's GPUBufferUsage.
type Usage uint32

// The usages.
const (
	UsageMapRead  = Usage(wgpu.BufferUsageMapRead)  // Map to read
	UsageMapWrite = Usage(wgpu.BufferUsageMapWrite) // Map to write
	UsageCopySrc  = Usage(wgpu.BufferUsageCopySrc)  // source of Copy, Read
	UsageCopyDst  = Usage(wgpu.BufferUsageCopyDst)  // target of Copy, Clear, Write
	UsageUniform  = Usage(wgpu.BufferUsageUniform)  // Uniform bindings
	UsageStorage  = Usage(wgpu.BufferUsageStorage)  // ReadStorage and Storage bindings
	UsageIndirect = Usage(wgpu.BufferUsageIndirect) // grids of DispatchIndirect

	usageResolve  = Usage(wgpu.BufferUsageQueryResolve)
	usageMappable = UsageMapRead | UsageMapWrite
)

var usageNames = []struct {
	u    Usage
	name string
}{
	{UsageMapRead, "map-read"}, {UsageMapWrite, "map-write"}, {UsageCopySrc, "copy-src"}, {UsageCopyDst, "copy-dst"},
	{UsageUniform, "uniform"}, {UsageStorage, "storage"}, {UsageIndirect, "indirect"}, {usageResolve, "query-resolve"},
}

// String lists the usages by name.
func (u Usage) String() string {
	var s []string
	for _, n := range usageNames {
		if u&n.u != 0 {
			s = append(s, n.name)
		}
	}
	return strings.Join(s, "+")
}

// Buffer is a range of GPU memory.
type Buffer struct {
	d     *Device
	kind  Kind
	label string
	size  uint64 // as asked, a multiple of 4
	usage Usage
	ref   handle // stays the same until release

	// The rest belongs to the owner goroutine.
	b      *wgpu.Buffer
	groups map[*BindGroup]struct{} // that bind it: they die with it
	state  bufferState
	slot   slot // of mappable buffers
	view   []byte
}

// Size is the size in bytes.
func (b *Buffer) Size() uint64 { return b.size }

// Label is the name given to NewBuffer.
func (b *Buffer) Label() string { return b.label }

// Kind is what the buffer counts as.
func (b *Buffer) Kind() Kind { return b.kind }

// NewBuffer makes a zeroed buffer of size bytes, rounded up to a multiple of 4. It refuses a size of 0 or over
// Limits.MaxBufferSize, and what exceeds the budget (ErrBudget) or the GPU's memory (ErrOutOfMemory).
func (d *Device) NewBuffer(kind Kind, label string, size uint64, usage Usage) (*Buffer, error) {
	if err := d.checkBuffer(kind, label, size, usage); err != nil {
		return nil, err
	}
	b := &Buffer{d: d, kind: kind, label: label, size: roundUp(size, 4), usage: usage}
	if err := d.memory.take(kind, label, b.size); err != nil {
		return nil, err
	}
	if err := d.do(b.create); err != nil {
		d.memory.give(kind, b.size)
		return nil, fmt.Errorf("gpu: %s buffer %s of %s: %w", kind, label, humanize.IBytes(size), err)
	}
	return b, nil
}

func (d *Device) checkBuffer(kind Kind, label string, size uint64, usage Usage) error {
	where := fmt.Sprintf("gpu: %s buffer %s", kind, label)
	switch {
	case strings.ContainsRune(label, 0):
		return fmt.Errorf("gpu: %s buffer %q: have a NUL in the label, want none", kind, label)
	case size == 0:
		return fmt.Errorf("%s: have size 0, want at least 4 bytes", where)
	case size > d.limits.MaxBufferSize:
		return fmt.Errorf("%s: have size %s, want at most %s: split it", where, humanize.IBytes(size), humanize.IBytes(d.limits.MaxBufferSize))
	case usage == 0:
		return fmt.Errorf("%s: have no usage, want at least one", where)
	}
	return d.checkMappable(where, usage)
}

// checkMappable applies WebGPU's rule for mappable buffers where the feature that lifts it is missing.
func (d *Device) checkMappable(where string, usage Usage) error {
	if usage&usageMappable == usageMappable {
		return fmt.Errorf("%s: have usage %s, want one of map-read and map-write", where, usage)
	}
	if d.limits.MappableStorage {
		return nil
	}
	if usage&UsageMapRead != 0 && usage&^(UsageMapRead|UsageCopyDst) != 0 || usage&UsageMapWrite != 0 && usage&^(UsageMapWrite|UsageCopySrc) != 0 {
		return fmt.Errorf("%s: have usage %s, want map-read with copy-dst or map-write with copy-src alone: this GPU maps no other buffers", where, usage)
	}
	return nil
}

func (b *Buffer) create() error {
	err := b.d.created(func() (err error) {
		b.b, err = b.d.n.device.CreateBuffer(&wgpu.BufferDescriptor{Label: b.label, Size: b.size, Usage: wgpu.BufferUsage(b.usage)})
		return err
	})
	if err != nil {
		if b.b != nil {
			b.b.Release()
		}
		return bufferError(err)
	}
	b.ref = bufferRef(b.b)
	b.groups = map[*BindGroup]struct{}{}
	if b.usage&usageMappable != 0 {
		b.slot = newSlot()
	}
	b.d.live[b] = struct{}{}
	return nil
}

// bufferError tells memory from the rest: the library reports a full GPU as a validation error.
func bufferError(err error) error {
	text := libraryText(err.Error())
	if strings.Contains(text, "Not enough memory left") {
		return fmt.Errorf("%w: %s", ErrOutOfMemory, text)
	}
	return fmt.Errorf("%s", text)
}

// Release frees the memory once the GPU is done with it, and ends a mapping. Bind groups that use the buffer can't be
// submitted any more. Releasing twice, or after Close, is fine.
func (b *Buffer) Release() {
	_ = b.d.do(func() error { b.release(); return nil }) // ErrClosed: Close has released it
}

func (b *Buffer) release() {
	if b.state == stateReleased {
		return
	}
	if b.state == statePending || b.state == stateMapped {
		b.d.n.unmap(b.ref) // calls back a pending map
	}
	if b.usage&usageMappable != 0 && (b.state != statePending || b.slot.status() != 0) {
		b.slot.free()
	}
	b.state, b.view = stateReleased, nil
	for g := range b.groups {
		g.dead = true
	}
	b.groups = nil
	b.b.Destroy()
	b.b.Release()
	delete(b.d.live, b)
	b.d.memory.give(b.kind, b.size)
}

func roundUp(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }
