package gpu

import (
	"errors"
	"fmt"
	"slices"
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
	p.list = r.cmds[0]
	if err := p.list.alive(d); err != nil {
		return err
	}
	ref, err := d.encode(r.cmds, "prepare")
	if err != nil {
		return err
	}
	p.ref = ref
	d.live[p] = struct{}{}
	return nil
}

// SubmitPrepared submits prepared lists in order as one submit, with lists of commands before and behind them, as Submit does.
// What was submitted can't be submitted again. With an error nothing is submitted, and what is prepared stays so unless
// the library raised it.
func (d *Device) SubmitPrepared(before []*Commands, lists []*Prepared, behind ...*Commands) error {
	r := d.request(runSubmitPrepared)
	r.cmds = append(append(r.cmds, before...), behind...)
	r.before, r.lists = len(before), append(r.lists, lists...)
	return d.send(r)
}

var errUnprepared = errors.New("gpu: submit: the commands were submitted or discarded before: prepare them anew")

func runSubmitPrepared(d *Device, r *request) error {
	if len(r.lists) == 0 {
		return runSubmit(d, r)
	}
	for i, p := range r.lists {
		if p.ref == nil || slices.Contains(r.lists[:i], p) {
			return errUnprepared
		}
		if err := p.list.ready(d); err != nil {
			return err
		}
	}
	for _, c := range r.cmds {
		if err := c.ready(d); err != nil {
			return err
		}
	}
	defer func() { clear(d.batch); d.batch = d.batch[:0] }()
	if err := d.encoded(r.cmds[:r.before]); err != nil {
		return err
	}
	first := len(d.batch)
	for _, p := range r.lists {
		d.batch = append(d.batch, p.ref)
	}
	if err := d.encoded(r.cmds[r.before:]); err != nil {
		for _, h := range d.batch[:first] {
			discard(h)
		}
		return err
	}
	for _, p := range r.lists {
		delete(d.live, p)
		p.ref = nil // whatever comes of it
	}
	if d.n.submitAll(d.batch) != 0 {
		return fmt.Errorf("gpu: submit: %s", libraryText(d.n.errText()))
	}
	d.unsent = 0
	return nil
}

// encoded appends lists, encoded, to the batch.
func (d *Device) encoded(lists []*Commands) error {
	if !slices.ContainsFunc(lists, func(c *Commands) bool { return len(c.cmds) > 0 }) {
		return nil
	}
	h, err := d.encode(lists, "submit")
	if err == nil {
		d.batch = append(d.batch, h)
	}
	return err
}

// encode makes a command buffer of lists.
func (d *Device) encode(lists []*Commands, what string) (handle, error) {
	if !d.n.encodeBegin() {
		panic("BUG: gpu: no command encoder")
	}
	for _, c := range lists {
		d.n.encode(c.cmds)
	}
	h := d.n.finish()
	if h == nil {
		return nil, fmt.Errorf("gpu: %s: %s", what, libraryText(d.n.errText()))
	}
	return h, nil
}

// Discard frees what is prepared. Discarding what was submitted, or never prepared, does nothing.
func (p *Prepared) Discard() {
	if p.d != nil {
		r := p.d.request(runDiscard)
		r.prepared = p
		_ = p.d.send(r) // ErrClosed: Close has released it
	}
}

func runDiscard(_ *Device, r *request) error {
	r.prepared.release()
	return nil
}

func (p *Prepared) release() {
	if p.ref == nil {
		return
	}
	discard(p.ref)
	p.ref = nil
	delete(p.d.live, p)
}
