package gpu

import (
	"context"
	"fmt"

	"github.com/cogentcore/webgpu/wgpu"
)

// bufferState is where a mappable buffer stands; others are idle until released. The library stops the process when a
// buffer is submitted or read in the wrong state, so the states are kept here and looked at before every call.
type bufferState uint8

const (
	stateIdle     bufferState = iota // the GPU's
	statePending                     // asked for; the GPU may still use it
	stateMapped                      // the CPU's
	stateReleased                    // gone
)

func (s bufferState) String() string {
	return [...]string{"idle", "being mapped", "mapped", "released"}[s]
}

// Map waits until the GPU is done with the buffer and gives its whole memory to the CPU: to read (UsageMapRead) or to write
// (UsageMapWrite; the old contents are there too). The bytes are valid until Unmap or Release, no longer. Until Unmap the
// buffer can't be submitted. If ctx ends first the mapping goes on: call Map again to wait for it, or Unmap to be rid of it.
func (b *Buffer) Map(ctx context.Context) ([]byte, error) {
	if b.usage&usageMappable == 0 {
		return nil, fmt.Errorf("gpu: map %s: have usage %s, want map-read or map-write", b.label, b.usage)
	}
	r := b.d.request(runMap)
	r.buf = b
	if err := b.d.sendWait(ctx, r); err != nil {
		return nil, fmt.Errorf("gpu: map %s: %w", b.label, err)
	}
	return b.view, nil
}

func runMap(d *Device, r *request) error {
	b := r.buf
	switch b.state {
	case stateMapped:
		return fmt.Errorf("buffer is mapped already: unmap it first")
	case stateReleased:
		return fmt.Errorf("buffer is released")
	case stateIdle:
		mode := wgpu.MapModeRead
		if b.usage&UsageMapWrite != 0 {
			mode = wgpu.MapModeWrite
		}
		if d.n.startMap(b.ref, mode, b.size, b.slot) != 0 {
			return fmt.Errorf("%s", libraryText(d.n.errText()))
		}
		b.state = statePending
	}
	return d.enqueue(r)
}

// settle takes over a finished map and reports whether the buffer is no longer pending.
func (b *Buffer) settle() bool {
	if b.state != statePending {
		return true
	}
	switch b.slot.status() {
	case 0:
		return false
	case 1:
		b.state, b.view = stateMapped, mappedRange(b.ref, b.size)
	default:
		b.state = stateIdle
	}
	return true
}

func (b *Buffer) mapResult() error {
	switch b.state {
	case stateMapped:
		return nil
	case stateReleased:
		return fmt.Errorf("buffer was released meanwhile")
	}
	return fmt.Errorf("the mapping failed or was undone meanwhile (status %d)", b.slot.status()-1)
}

// Unmap gives the buffer back to the GPU. The bytes of Map must not be touched after it. Unmapping an idle buffer does nothing.
// While a mapping is under way (its Map was cancelled) Unmap waits for it: the library can call it off, but would then take the
// end of the old mapping for the end of the next one, and hand out memory that the GPU still writes.
func (b *Buffer) Unmap() error {
	r := b.d.request(runUnmap)
	r.buf, r.unmap = b, true
	return b.d.send(r)
}

// undo is Unmap that returns when ctx ends, too; the owner then still unmaps the buffer.
func (b *Buffer) undo(ctx context.Context) error {
	r := b.d.request(runUnmap)
	r.buf, r.unmap = b, true
	return b.d.sendWait(ctx, r)
}

func runUnmap(d *Device, r *request) error {
	b := r.buf
	switch b.state {
	case stateIdle:
		return nil
	case stateReleased:
		return fmt.Errorf("gpu: unmap %s: buffer is released", b.label)
	case statePending:
		return d.enqueue(r)
	}
	return b.unmap()
}

// unmap undoes a finished mapping.
func (b *Buffer) unmap() error {
	b.state, b.view = stateIdle, nil
	if n := b.d.n; n.unmap(b.ref) != 0 {
		return fmt.Errorf("gpu: unmap %s: %s", b.label, libraryText(n.errText()))
	}
	return nil
}

// Readback is memory to which results are copied and then read, over and over: record Copy, submit, Wait, use, Unmap.
type Readback struct{ b *Buffer }

// NewReadback makes a readback of size bytes. Its memory counts as Staging.
func (d *Device) NewReadback(label string, size uint64) (*Readback, error) {
	b, err := d.NewBuffer(Staging, label, size, UsageMapRead|UsageCopyDst)
	if err != nil {
		return nil, err
	}
	return &Readback{b}, nil
}

// Copy records into c the copy of n bytes of src at off to offset at of the readback.
func (r *Readback) Copy(c *Commands, at uint64, src *Buffer, off, n uint64) {
	c.Copy(src, off, r.b, at, n)
}

// Wait waits for the copies submitted and returns the readback's whole memory, valid until Unmap. See Buffer.Map for what
// happens when ctx ends first.
func (r *Readback) Wait(ctx context.Context) ([]byte, error) { return r.b.Map(ctx) }

// Unmap makes the readback ready for the next submit.
func (r *Readback) Unmap() error { return r.b.Unmap() }

// Release frees the memory.
func (r *Readback) Release() { r.b.Release() }

// Size is the size in bytes.
func (r *Readback) Size() uint64 { return r.b.size }
