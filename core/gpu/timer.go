package gpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cogentcore/webgpu/wgpu"
)

// maxStamps is the library's largest query set.
const maxStamps = 8192

// Timer takes the GPU's time at points between commands, to find what a kernel costs. A stamp ends the compute pass.
type Timer struct {
	d     *Device
	n     uint32
	label string
	out   *Buffer   // resolved stamps
	back  *Readback // the same for the CPU
	tick  float64   // nanoseconds a GPU tick takes
	ref   handle
	q     *wgpu.QuerySet // nil when released; the owner's
}

// NewTimer makes a timer of n stamps, 1 to 8192. It takes some 20 ms: the library does not tell the length of a GPU tick, so it
// is measured against the clock (and taken as 1 ns within 2 %).
func (d *Device) NewTimer(ctx context.Context, label string, n int) (*Timer, error) {
	if !d.limits.Timestamps {
		return nil, fmt.Errorf("gpu: timer %s: %s has no timestamp queries", label, d.info.Name)
	}
	if n < 1 || n > maxStamps {
		return nil, fmt.Errorf("gpu: timer %s: have %d stamps, want 1 to %d", label, n, maxStamps)
	}
	t := &Timer{d: d, n: max(uint32(n), 2), label: label, tick: 1}
	if err := t.open(); err != nil {
		t.Release()
		return nil, err
	}
	if err := t.calibrate(ctx); err != nil {
		t.Release()
		return nil, fmt.Errorf("gpu: timer %s: %w", label, err)
	}
	t.n = uint32(n)
	return t, nil
}

// TimerBytes is the size of each of the two buffers, of kind Staging, that a timer of n stamps makes.
func TimerBytes(n int) uint64 { return 8 * uint64(max(n, 2)) }

func (t *Timer) open() (err error) {
	size := TimerBytes(int(t.n))
	if t.out, err = t.d.NewBuffer(Staging, t.label, size, UsageCopySrc|usageResolve); err != nil {
		return err
	}
	if t.back, err = t.d.NewReadback(t.label, size); err != nil {
		return err
	}
	return t.d.do(func() error {
		err := t.d.created(func() (err error) {
			t.q, err = t.d.n.device.CreateQuerySet(&wgpu.QuerySetDescriptor{Label: t.label, Type: wgpu.QueryTypeTimestamp, Count: t.n})
			return err
		})
		if err != nil {
			return fmt.Errorf("gpu: timer %s: %s", t.label, libraryText(err.Error()))
		}
		t.ref = querySetRef(t.q)
		t.d.live[t] = struct{}{}
		return nil
	})
}

// calibrate finds the length of a tick from two stamps 20 ms apart.
func (t *Timer) calibrate(ctx context.Context) error {
	const apart = 20 * time.Millisecond
	var at [2]time.Time
	for i := range at {
		var c Commands
		c.Timestamp(t, i)
		if err := t.d.Submit(&c); err != nil {
			return err
		}
		if err := t.d.Sync(ctx); err != nil {
			return err
		}
		at[i] = time.Now()
		if i == 0 {
			time.Sleep(apart)
		}
	}
	var c Commands
	c.resolve(t, 2)
	if err := t.d.Submit(&c); err != nil {
		return err
	}
	var stamps [2]time.Duration // in ticks, as long as one counts as a nanosecond
	if err := t.Read(ctx, stamps[:]); err != nil {
		return err
	}
	wall := float64(at[1].Sub(at[0]))
	if ticks := float64(stamps[1]); ticks > 0 {
		t.tick = wall / ticks
	}
	if t.tick > 0.98 && t.tick < 1.02 {
		t.tick = 1
	}
	return nil
}

// Timestamp records stamp i of t: the time when all commands before it are done.
func (c *Commands) Timestamp(t *Timer, i int) {
	if i < 0 || uint32(i) >= t.n {
		c.fail("timestamp %d of timer %s: want 0 to %d", i, t.label, t.n-1)
		return
	}
	c.add(command{op: opStamp, x: cuint(uint32(i)), a: address(t.ref)}, refs{t: t})
}

// ResolveTimer records the end of a measurement: the first n stamps of t become readable. Every one must have been recorded
// before it.
func (c *Commands) ResolveTimer(t *Timer, n int) {
	if n < 1 || uint32(n) > t.n {
		c.fail("resolve %d stamps of timer %s: want 1 to %d", n, t.label, t.n)
		return
	}
	c.resolve(t, uint32(n))
}

func (c *Commands) resolve(t *Timer, n uint32) {
	c.add(command{op: opResolve, x: cuint(n), a: address(t.ref), b: address(t.out.ref)}, refs{t: t, a: t.out})
	t.back.Copy(c, 0, t.out, 0, uint64(n)*8)
}

// Read waits for a submitted ResolveTimer of at least as many stamps as dst holds, and fills it with them, in time since the
// first.
func (t *Timer) Read(ctx context.Context, dst []time.Duration) error {
	view, err := t.back.Wait(ctx)
	if err != nil {
		return fmt.Errorf("gpu: timer %s: %w", t.label, err)
	}
	first := binary.LittleEndian.Uint64(view)
	for i := range dst {
		dst[i] = time.Duration(float64(int64(binary.LittleEndian.Uint64(view[8*i:])-first)) * t.tick)
	}
	return t.back.Unmap()
}

// Release frees the timer. Releasing twice, or after Close, is fine.
func (t *Timer) Release() {
	if t.out != nil {
		t.out.Release()
	}
	if t.back != nil {
		t.back.Release()
	}
	_ = t.d.do(func() error { t.release(); return nil }) // ErrClosed: Close has released it
}

func (t *Timer) release() {
	if t.q == nil {
		return
	}
	t.q.Release()
	t.q = nil
	delete(t.d.live, t)
}
