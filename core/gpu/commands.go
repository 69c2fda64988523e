package gpu

import (
	"fmt"
)

// Commands is a list of commands for the GPU, in order: plain memory until Submit. Record it once and submit it often, or
// Reset and record anew; neither allocates once it has grown. A mistake in recording is kept, and Submit returns it. The zero
// value is an empty list. It belongs to one goroutine at a time.
type Commands struct {
	cmds []command
	refs []refs // what each command uses, to check at submit
	err  error
}

// refs are the objects of one command.
type refs struct {
	p    *Pipeline
	g    *BindGroup
	a, b *Buffer
	t    *Timer
}

// Reset empties the list and forgets its error.
func (c *Commands) Reset() {
	clear(c.refs)
	c.cmds, c.refs, c.err = c.cmds[:0], c.refs[:0], nil
}

// Len is the number of commands recorded.
func (c *Commands) Len() int { return len(c.cmds) }

// Err is the first mistake in recording, nil for none.
func (c *Commands) Err() error { return c.err }

func (c *Commands) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("gpu: command %d: "+format, append([]any{len(c.cmds)}, args...)...)
	}
}

func (c *Commands) add(cmd command, r refs) {
	c.cmds = append(c.cmds, cmd)
	c.refs = append(c.refs, r)
}

// Dispatch runs x*y*z workgroups of p on g; a dimension of 0 runs none. Consecutive dispatches share one compute pass, and the
// library puts a barrier between two only where one writes a buffer the other uses.
func (c *Commands) Dispatch(p *Pipeline, g *BindGroup, x, y, z uint32) {
	if !c.checkGroup(p, g) {
		return
	}
	if most := p.d.limits.MaxGroups; x > most || y > most || z > most {
		c.fail("dispatch of %s: have a grid of %dx%dx%d, want at most %d a side: fold it", p.label, x, y, z, most)
		return
	}
	cmd := command{op: opDispatch, a: address(p.ref), b: address(g.ref)}
	cmd.x, cmd.y, cmd.z = cuint(x), cuint(y), cuint(z)
	c.add(cmd, refs{p: p, g: g})
}

// DispatchIndirect is Dispatch with the grid read by the GPU from three u32 at off (a multiple of 4) of b.
func (c *Commands) DispatchIndirect(p *Pipeline, g *BindGroup, b *Buffer, off uint64) {
	if !c.checkGroup(p, g) || !c.check(b.checkRange("indirect grid", UsageIndirect, off, 12)) {
		return
	}
	for _, w := range g.writes {
		if w == b {
			c.fail("dispatch of %s: buffer %s holds its grid and is written by it: use two buffers", p.label, b.label)
			return
		}
	}
	c.add(command{op: opIndirect, a: address(p.ref), b: address(g.ref), c: address(b.ref), off: culong(off)}, refs{p: p, g: g, a: b})
}

func (c *Commands) checkGroup(p *Pipeline, g *BindGroup) bool {
	switch {
	case p == nil || g == nil:
		c.fail("dispatch without pipeline or bind group")
	case g.p != p:
		c.fail("dispatch of %s: bind group %s is of kernel %s", p.label, g.label, g.p.label)
	default:
		return true
	}
	return false
}

func (c *Commands) check(err error) bool {
	if err != nil {
		c.fail("%w", err)
	}
	return err == nil
}

// Copy copies n bytes (offsets and n multiples of 4) between two different buffers. It ends the compute pass.
func (c *Commands) Copy(src *Buffer, srcOff uint64, dst *Buffer, dstOff, n uint64) {
	if !c.check(src.checkRange("copy from", UsageCopySrc, srcOff, n)) || !c.check(dst.checkRange("copy to", UsageCopyDst, dstOff, n)) {
		return
	}
	if src == dst {
		c.fail("copy within buffer %s: want two buffers", src.label)
		return
	}
	if n > 0 {
		c.add(command{op: opCopy, a: address(src.ref), b: address(dst.ref), off: culong(srcOff), off2: culong(dstOff), n: culong(n)}, refs{a: src, b: dst})
	}
}

// Clear zeroes n bytes at off, multiples of 4. It ends the compute pass.
func (c *Commands) Clear(b *Buffer, off, n uint64) {
	if c.check(b.checkRange("clear", UsageCopyDst, off, n)) && n > 0 {
		c.add(command{op: opClear, a: address(b.ref), off: culong(off), n: culong(n)}, refs{a: b})
	}
}

// Submit encodes the lists in order and submits them as one. It returns when the GPU has them, not when they are done: wait
// with a Readback or Sync. With an error (a mistake in recording, a buffer mapped or released, or what the library says)
// nothing is submitted. In the steady state it allocates nothing.
func (d *Device) Submit(lists ...*Commands) error {
	r := d.request(runSubmit)
	r.cmds = append(r.cmds, lists...)
	return d.send(r)
}

func runSubmit(d *Device, r *request) error {
	for _, c := range r.cmds {
		if err := c.ready(d); err != nil {
			return err
		}
	}
	if !d.n.encodeBegin() {
		panic("BUG: gpu: no command encoder")
	}
	for _, c := range r.cmds {
		d.n.encode(c.cmds)
	}
	if d.n.submit() != 0 {
		return fmt.Errorf("gpu: submit: %s", libraryText(d.n.errText()))
	}
	d.unsent = 0
	return nil
}

// ready checks what the library would stop the process over where commands are submitted.
func (c *Commands) ready(d *Device) error { return c.all(d, "submit", (*refs).idle) }

// alive checks the same where they are encoded: buffers may be mapped then.
func (c *Commands) alive(d *Device) error { return c.all(d, "prepare", (*refs).alive) }

// all checks what every command uses.
func (c *Commands) all(d *Device, what string, good func(*refs, *Device) bool) error {
	if c.err != nil {
		return c.err
	}
	for i := range c.refs {
		if r := &c.refs[i]; !good(r, d) {
			return fmt.Errorf("gpu: %s: command %d: %w", what, i, r.trouble(d))
		}
	}
	return nil
}

// alive reports whether all is of the device and none released.
func (r *refs) alive(d *Device) bool {
	return (r.p == nil || !r.p.released && r.p.d == d && !r.g.dead) && (r.a == nil || r.a.state != stateReleased && r.a.d == d) &&
		(r.b == nil || r.b.state != stateReleased && r.b.d == d) && (r.t == nil || r.t.q != nil && r.t.d == d)
}

// idle is the fast form of trouble.
func (r *refs) idle(d *Device) bool {
	if r.g != nil {
		for _, b := range r.g.mappable {
			if b.state != stateIdle {
				return false
			}
		}
	}
	return r.alive(d) && (r.a == nil || r.a.state == stateIdle) && (r.b == nil || r.b.state == stateIdle)
}

func (r *refs) trouble(d *Device) error {
	if r.p != nil && r.p.released {
		return fmt.Errorf("pipeline %s is released", r.p.label)
	}
	bufs := []*Buffer{r.a, r.b}
	if r.g != nil {
		bufs = append(append(bufs, r.g.buffers...), r.g.mappable...)
	}
	for _, b := range bufs {
		if b != nil && b.state != stateIdle {
			return fmt.Errorf("buffer %s is %s: unmap or keep what is submitted", b.label, b.state)
		}
		if b != nil && b.d != d {
			return fmt.Errorf("buffer %s is of another device", b.label)
		}
	}
	if r.g != nil && r.g.dead {
		return fmt.Errorf("bind group %s of kernel %s is released", r.g.label, r.p.label)
	}
	return fmt.Errorf("its objects are released or of another device")
}
