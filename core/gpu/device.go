package gpu

import (
	"fmt"
	"time"
)

// Device is an open GPU. Its methods may be called from any goroutine; after Close they return ErrClosed, after the driver
// took the device away ErrLost.
type Device struct {
	info   Info
	limits Limits
	memory ledger

	reqs   chan *request // to the owner; unbuffered, so a request taken is a request answered
	quit   chan struct{} // closed when the owner has gone
	free   chan *request // done with; a sync.Pool forgets, and allocates in the steady state
	reader reader

	// The rest belongs to the owner goroutine.
	n       native
	waiting []*request // maps and syncs to be finished by polling
	since   time.Time  // when the oldest of the current waits began
	live    map[releaser]struct{}
	batch   []handle // of the submit at hand
	unsent  uint64   // bytes given to the queue's own writes since the last submit
	closing bool
}

// releaser is an object with memory in the library.
type releaser interface{ release() }

// Info says which GPU this is.
func (d *Device) Info() Info { return d.info }

// Limits says what the GPU allows.
func (d *Device) Limits() Limits { return d.limits }

func newDevice(n native, info Info, limits Limits) *Device {
	d := &Device{
		info: info, limits: limits, n: n,
		reqs: make(chan *request), quit: make(chan struct{}), free: make(chan *request, 64), live: map[releaser]struct{}{},
	}
	d.reader.turn = make(chan struct{}, 1)
	go d.own()
	return d
}

// request is one call on its way through the owner. Hot calls have fields of their own, so that they allocate nothing.
type request struct {
	op       func(*Device, *request) error // errWait: answered later, by polling
	call     func() error                  // for op runCall
	cmds     []*Commands                   // for op runSubmit, runPrepare and runSubmitPrepared
	prepared *Prepared                     // for op runPrepare and runDiscard
	lists    []*Prepared                   // for op runSubmitPrepared,
	before   int                           // where as many of cmds come before them
	buf      *Buffer                       // for writes, maps and unmaps
	unmap    bool                          // what to do when buf's mapping is finished
	off      uint64
	data     []byte
	slot     slot // for waits on the queue
	last     bool // the request of Close
	err      error
	done     chan struct{}
}

// runCall is the op of everything that is not hot.
func runCall(_ *Device, r *request) error { return r.call() }

// do runs f on the owner.
func (d *Device) do(f func() error) error {
	r := d.request(runCall)
	r.call = f
	return d.send(r)
}

func (d *Device) request(op func(*Device, *request) error) *request {
	select {
	case r := <-d.free:
		r.op = op
		return r
	default:
		return &request{op: op, done: make(chan struct{}, 1)}
	}
}

// send hands r to the owner, waits for the answer, and gives r back to the free list.
func (d *Device) send(r *request) error {
	select {
	case d.reqs <- r:
	case <-d.quit:
		return ErrClosed
	}
	<-r.done
	return d.recycle(r)
}

func (d *Device) recycle(r *request) error {
	err := r.err
	clear(r.cmds)
	clear(r.lists)
	*r = request{cmds: r.cmds[:0], lists: r.lists[:0], done: r.done}
	select {
	case d.free <- r:
	default:
	}
	return err
}

// own is the owner goroutine. It is not locked to a thread: the library needs none, and a locked one costs two thread
// switches per call (see BenchmarkOwner).
func (d *Device) own() {
	defer close(d.quit)
	for !d.closing {
		if len(d.waiting) == 0 {
			d.serve(<-d.reqs)
			continue
		}
		select {
		case r := <-d.reqs:
			d.serve(r)
		default:
			d.poll()
		}
	}
}

func (d *Device) serve(r *request) {
	if d.n.lost() && !r.last {
		r.err = d.lostError()
	} else {
		r.err = r.op(d, r)
	}
	if r.err != errWait { //nolint:errorlint // our own value
		r.done <- struct{}{}
	}
}

func (d *Device) lostError() error {
	return fmt.Errorf("%w: %s: %s", ErrLost, d.info.Name, libraryText(d.n.lostText()))
}

// Close ends pending waits with ErrClosed, waits until the GPU is idle, and releases every object of the device, and the
// device. One that is not idle within a minute is left as it is. Closing twice is fine.
func (d *Device) Close() error {
	r := d.request(runClose)
	r.last = true
	if err := d.send(r); err != nil && err != ErrClosed { //nolint:errorlint // our own value
		return err
	}
	<-d.quit
	return nil
}

// closeLimit is how long Close waits for the GPU. The library itself waits 5 s and then frees what the GPU still uses.
const closeLimit = time.Minute

// idle waits until the GPU has done everything. It is false for a lost device and for one that is not done in closeLimit.
func (d *Device) idle() bool {
	if d.n.lost() {
		return false
	}
	done := newSlot() // leaked with a device that never is: the library may still write to it
	d.n.whenDone(done)
	for start := time.Now(); done.status() == 0; nativeSleep(uint32(longNap)) {
		if d.n.poll(pollsAtATime); d.n.lost() || time.Since(start) > closeLimit {
			return false
		}
	}
	done.free()
	return true
}

func runClose(d *Device, _ *request) error {
	d.closing = true
	d.failWaits(ErrClosed)
	if !d.idle() {
		return nil // the library would stop the process over a lost device, and free the memory of one that works on
	}
	for o := range d.live {
		o.release()
	}
	d.n.close()
	return nil
}

// created runs f, which makes an object through the binding, and returns whatever error the library raised meanwhile: the
// binding's own scope catches validation errors, ours the rest.
func (d *Device) created(f func() error) error {
	d.n.begin()
	err := f()
	switch typ := d.n.end(); {
	case err != nil || typ == 0:
		return err
	case typ == errorTypeMemory:
		return fmt.Errorf("%w: %s", ErrOutOfMemory, libraryText(d.n.errText()))
	}
	return fmt.Errorf("%s", libraryText(d.n.errText()))
}

// errorTypeMemory is WGPUErrorType_OutOfMemory.
const errorTypeMemory = 2
