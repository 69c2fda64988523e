package gpu

import "fmt"

// Prepared is a list of commands that is encoded already, to be submitted once: encoding costs the CPU some 2 µs a dispatch,
// which so can be spent while the GPU works on what came before.
type Prepared struct {
	list *Commands
	d    *Device
	ref  handle // nil once submitted or discarded; the owner's
}

// Prepare encodes a list. The list must stay as it is until the result is submitted or discarded; buffers may be mapped
// meanwhile. With an error nothing is prepared.
func (d *Device) Prepare(list *Commands) (*Prepared, error) {
	p := &Prepared{list: list, d: d}
	return p, d.do(p.encode)
}

func (p *Prepared) encode() error {
	d := p.d
	if p.list.err != nil {
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
	return p.d.do(func() error {
		if p.ref == nil {
			return fmt.Errorf("gpu: submit: the commands were submitted or discarded before: prepare them anew")
		}
		if err := p.list.ready(p.d); err != nil {
			return err
		}
		delete(p.d.live, p)
		ref := p.ref
		p.ref = nil
		if p.d.n.submitFinished(ref) != 0 {
			return fmt.Errorf("gpu: submit: %s", libraryText(p.d.n.errText()))
		}
		p.d.unsent = 0
		return nil
	})
}

// Discard frees what is prepared. Discarding what was submitted does nothing.
func (p *Prepared) Discard() {
	_ = p.d.do(func() error { p.release(); return nil }) // ErrClosed: Close has released it
}

func (p *Prepared) release() {
	if p.ref == nil {
		return
	}
	discard(p.ref)
	p.ref = nil
	delete(p.d.live, p)
}
