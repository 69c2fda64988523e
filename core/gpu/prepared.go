package gpu

import (
	"errors"
	"fmt"
)

// Prepared is a list of commands that is encoded already, to be submitted once: encoding costs the CPU some 2 µs a dispatch,
// which so can be spent while the GPU works on what came before. The zero value is ready for Device.Prepare, which may be
// called again once it was submitted or discarded, and then allocates nothing.
type Prepared struct {
	list *Commands
	d    *Device
	ref  handle // nil once submitted or discarded; the owner's
}

// Prepare encodes a list into p. The list must stay as it is until p is submitted or discarded; buffers may be mapped
// meanwhile. With an error nothing is prepared.
func (d *Device) Prepare(p *Prepared, list *Commands) error {
	r := d.request(runPrepare)
	p.d, r.prepared = d, p
	r.cmds = append(r.cmds, list)
	return d.send(r)
}

func runPrepare(d *Device, r *request) error {
	p := r.prepared
	if p.ref != nil {
		return errors.New("gpu: prepare: have commands that wait for their submit, want them submitted or discarded")
	}
	if p.list = r.cmds[0]; p.list.err != nil {
		return p.list.err
	}
	if !d.n.encodeBegin() {
		panic("BUG: gpu: no command encoder")
	}
	d.n.encode(p.list.cmds)
	if p.ref = d.n.finish(); p.ref == nil {
		return fmt.Errorf("gpu: prepare: %s", libraryText(d.n.errText()))
	}
	d.live[p] = struct{}{}
	return nil
}

// Submit submits what is prepared, as Device.Submit does. It can't be submitted again.
func (p *Prepared) Submit() error {
	if p.d == nil {
		return errUnprepared
	}
	r := p.d.request(runSubmitPrepared)
	r.prepared = p
	return p.d.send(r)
}

var errUnprepared = errors.New("gpu: submit: the commands were submitted or discarded before: prepare them anew")

func runSubmitPrepared(d *Device, r *request) error {
	p := r.prepared
	if p.ref == nil {
		return errUnprepared
	}
	if err := p.list.ready(d); err != nil {
		return err
	}
	delete(d.live, p)
	ref := p.ref
	p.ref = nil
	if d.n.submitFinished(ref) != 0 {
		return fmt.Errorf("gpu: submit: %s", libraryText(d.n.errText()))
	}
	d.unsent = 0
	return nil
}

// Discard frees what is prepared. Discarding what was submitted, or never prepared, does nothing.
func (p *Prepared) Discard() {
	if p.d != nil {
		_ = p.d.do(func() error { p.release(); return nil }) // ErrClosed: Close has released it
	}
}

func (p *Prepared) release() {
	if p.ref == nil {
		return
	}
	discard(p.ref)
	p.ref = nil
	delete(p.d.live, p)
}
