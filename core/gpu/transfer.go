package gpu

import (
	"context"
	"fmt"
)

// maxUnsent bounds the memory that queue writes hold: the library copies each into fresh staging memory of its own and frees
// that only after a submit has passed. Past this many bytes Write submits and waits.
const maxUnsent = 64 << 20

// writePiece is the largest single queue write.
const writePiece = 16 << 20

// Write copies data to the buffer at off, before anything submitted later. off and len(data) are multiples of 4. The data may
// be reused when it returns. It costs a copy on one thread: for bulk use a mapped staging buffer and Commands.Copy.
func (d *Device) Write(b *Buffer, off uint64, data []byte) error {
	n := uint64(len(data))
	if err := b.checkRange("write", UsageCopyDst, off, n); err != nil {
		return fmt.Errorf("gpu: %w", err)
	}
	for len(data) > 0 {
		piece := data[:min(len(data), writePiece)]
		r := d.request(runWrite)
		r.buf, r.off, r.data = b, off, piece
		if err := d.send(r); err != nil {
			return err
		}
		off += uint64(len(piece))
		data = data[len(piece):]
	}
	return nil
}

func runWrite(d *Device, r *request) error {
	if r.buf.state != stateIdle {
		return fmt.Errorf("gpu: write %s: buffer is %s", r.buf.label, r.buf.state)
	}
	if d.n.write(r.buf.ref, r.off, r.data) != 0 {
		return fmt.Errorf("gpu: write %s: %s", r.buf.label, libraryText(d.n.errText()))
	}
	d.unsent += uint64(len(r.data))
	if d.unsent < maxUnsent {
		return nil
	}
	d.n.flush()
	d.unsent = 0
	return runSync(d, r)
}

// checkRange checks a transfer of n bytes at off against size, alignment and usage.
func (b *Buffer) checkRange(what string, need Usage, off, n uint64) error {
	switch {
	case b == nil:
		return fmt.Errorf("%s: no buffer", what)
	case b.usage&need == 0:
		return fmt.Errorf("%s %s: have usage %s, want %s", what, b.label, b.usage, need)
	case off%4 != 0 || n%4 != 0:
		return fmt.Errorf("%s %s: have offset %d and size %d, want multiples of 4", what, b.label, off, n)
	case off > b.size || n > b.size-off:
		return fmt.Errorf("%s %s: have %d bytes at %d, want them within the buffer's %d", what, b.label, n, off, b.size)
	}
	return nil
}

// Clear zeroes n bytes at off, before anything submitted later. off and n are multiples of 4.
func (d *Device) Clear(b *Buffer, off, n uint64) error {
	var c Commands
	c.Clear(b, off, n)
	return d.Submit(&c)
}

// readPiece is the largest piece Read copies at a time.
const readPiece = 16 << 20

// reader is the staging memory of Read, made at its first use.
type reader struct {
	turn chan struct{} // held by the one Read at work
	r    *Readback
	c    Commands
	late bool // r is mapped, or still being mapped, for a Read that was cancelled
}

// Read copies len(dst) bytes of the buffer at off to dst, after everything submitted before. Any off and length within the
// buffer will do. It is for tests, dumps and rare reads: one at a time, through memory shared by all; steps use a Readback.
func (d *Device) Read(ctx context.Context, b *Buffer, off uint64, dst []byte) error {
	first := off &^ 3
	if err := b.checkRange("read", UsageCopySrc, first, roundUp(off-first+uint64(len(dst)), 4)); err != nil {
		return fmt.Errorf("gpu: %w", err)
	}
	select {
	case d.reader.turn <- struct{}{}:
		defer func() { <-d.reader.turn }()
	case <-d.quit:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for len(dst) > 0 {
		n, err := d.readOnce(ctx, b, off, dst)
		if err != nil {
			return fmt.Errorf("gpu: read %s: %w", b.label, err)
		}
		dst = dst[n:]
		off += uint64(n)
	}
	return nil
}

// readOnce reads up to readPiece bytes and returns how many.
func (d *Device) readOnce(ctx context.Context, b *Buffer, off uint64, dst []byte) (int, error) {
	if d.reader.late {
		if err := d.reader.r.b.undo(ctx); err != nil {
			return 0, err
		}
		d.reader.late = false
	}
	first := off &^ 3
	n := min(roundUp(off-first+uint64(len(dst)), 4), readPiece)
	if err := d.readerFor(n); err != nil {
		return 0, err
	}
	c, r := &d.reader.c, d.reader.r
	c.Reset()
	r.Copy(c, 0, b, first, n)
	if err := d.Submit(c); err != nil {
		return 0, err
	}
	view, err := r.Wait(ctx)
	if err != nil {
		d.reader.late = true
		return 0, err
	}
	got := copy(dst, view[off-first:n])
	return got, r.Unmap()
}

// readerFor makes the staging memory at least n bytes.
func (d *Device) readerFor(n uint64) error {
	if d.reader.r != nil && d.reader.r.Size() >= n {
		return nil
	}
	if d.reader.r != nil {
		d.reader.r.Release()
		d.reader.r = nil
	}
	r, err := d.NewReadback("read", max(n, 64<<10))
	if err != nil {
		return err
	}
	d.reader.r = r
	return nil
}
