package gpu

import (
	"context"
	"errors"
	"time"
)

// errWait says that a request is answered later, by the polling loop.
var errWait = errors.New("gpu: waiting")

// How the owner waits for the GPU. Polling is always non-blocking: the library's blocking poll can't be cancelled, holds up
// every other call, and stops the process when the GPU takes longer than 5 s. A GPU is polled in a tight loop first; on the
// CPU driver a tight loop would take a core from the kernels. Then the naps grow with the time waited (1/16 of it).
const (
	spinGPU      = time.Millisecond
	spinCPU      = 0
	shortNap     = 20 * time.Microsecond
	longNap      = 200 * time.Microsecond
	pollsAtATime = 8
)

// enqueue makes r wait.
func (d *Device) enqueue(r *request) error {
	if len(d.waiting) == 0 {
		d.since = time.Now()
	}
	d.waiting = append(d.waiting, r)
	return errWait
}

// poll polls a few times, answers what is finished, and naps when that was in vain for long.
func (d *Device) poll() {
	if d.n.lost() {
		d.failWaits(d.lostError())
		return
	}
	d.n.poll(pollsAtATime)
	if d.finish() {
		d.since = time.Now()
		return
	}
	spin := time.Duration(spinGPU)
	if d.limits.CPU {
		spin = spinCPU
	}
	if waited := time.Since(d.since); waited >= spin {
		nativeSleep(uint32(min(max(waited/16, shortNap), longNap)))
	}
}

// finish answers the waits that are over and reports whether there were any.
func (d *Device) finish() bool {
	kept := d.waiting[:0]
	for _, r := range d.waiting {
		if !r.finished() {
			kept = append(kept, r)
			continue
		}
		r.done <- struct{}{}
	}
	some := len(kept) < len(d.waiting)
	clear(d.waiting[len(kept):])
	d.waiting = kept
	return some
}

// finished reports whether a wait is over, and then sets its result.
func (r *request) finished() bool {
	if r.buf != nil {
		switch over := r.buf.settle(); {
		case !over:
			return false
		case !r.unmap:
			r.err = r.buf.mapResult()
		case r.buf.state == stateMapped:
			r.err = r.buf.unmap()
		default:
			r.err = nil
		}
		return true
	}
	if r.slot.status() == 0 {
		return false
	}
	r.slot.free()
	r.err = nil
	return true
}

func (d *Device) failWaits(err error) {
	for _, r := range d.waiting {
		r.err = err
		r.done <- struct{}{}
	}
	clear(d.waiting)
	d.waiting = d.waiting[:0]
}

// sendWait is send for requests that wait: it returns early when ctx ends. The owner then still finishes the request.
func (d *Device) sendWait(ctx context.Context, r *request) error {
	select {
	case d.reqs <- r:
	case <-d.quit:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-r.done:
		return d.recycle(r)
	case <-ctx.Done():
		return context.Cause(ctx) // r stays with the owner
	}
}

// Sync waits until the GPU has done all that was submitted before it.
func (d *Device) Sync(ctx context.Context) error {
	return d.sendWait(ctx, d.request(runSync))
}

func runSync(d *Device, r *request) error {
	r.buf, r.slot = nil, newSlot()
	d.n.whenDone(r.slot)
	return d.enqueue(r)
}
