package gpu

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// CopyRate measures how many bytes per second go from memory to the GPU in the way expert records do: writers at once, each
// of which fills mapped memory of size bytes, gives it back to the GPU, and submits its copy, with a second one to fill
// meanwhile. It takes about as long as most, and 3 * writers * size bytes of GPU memory while it runs.
func (d *Device) CopyRate(ctx context.Context, size uint64, writers int, most time.Duration) (float64, error) {
	if writers < 1 {
		return 0, fmt.Errorf("gpu: copy rate: have %d writers, want 1 or more", writers)
	}
	size = roundUp(size, 4)
	var c copier
	defer c.release()
	if err := c.make(d, size, writers); err != nil {
		return 0, err
	}
	data := make([]byte, size)
	for i := range data { // pages of their own, not all the system's page of zeros
		data[i] = byte(i)
	}
	if err := c.each(ctx, data); err != nil { // the first use of memory is slower
		return 0, err
	}
	start, copies := time.Now(), make([]int, writers)
	g, writing := errgroup.WithContext(ctx)
	for w := range writers {
		g.Go(func() error {
			for time.Since(start) < most || copies[w] == 0 {
				if err := c.copy(writing, data, 2*w+copies[w]%2); err != nil {
					return err
				}
				copies[w]++
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	if err := d.Sync(ctx); err != nil {
		return 0, err
	}
	n := 0
	for _, k := range copies {
		n += k
	}
	return float64(n) * float64(size) / time.Since(start).Seconds(), nil
}

// copier has the buffers of CopyRate.
type copier struct {
	d       *Device
	to      []*Buffer // one for each writer
	staging []*Buffer // two
	cmds    []Commands
}

func (c *copier) make(d *Device, size uint64, writers int) error {
	c.d = d
	for w := range writers {
		to, err := d.NewBuffer(Pool, "copied to", size, UsageStorage|UsageCopyDst)
		if err != nil {
			return err
		}
		c.to = append(c.to, to)
		for range 2 {
			from, err := d.NewBuffer(Staging, "copied from", size, UsageMapWrite|UsageCopySrc)
			if err != nil {
				return err
			}
			c.staging = append(c.staging, from)
			c.cmds = append(c.cmds, Commands{})
			c.cmds[len(c.cmds)-1].Copy(from, 0, c.to[w], 0, size)
		}
	}
	return nil
}

// each copies by way of every staging buffer once.
func (c *copier) each(ctx context.Context, data []byte) error {
	for i := range c.staging {
		if err := c.copy(ctx, data, i); err != nil {
			return err
		}
	}
	return c.d.Sync(ctx)
}

// copy writes data to a staging buffer, once its last copy is done, and submits the next.
func (c *copier) copy(ctx context.Context, data []byte, i int) error {
	view, err := c.staging[i].Map(ctx)
	if err != nil {
		return err
	}
	copy(view, data)
	if err := c.staging[i].Unmap(); err != nil {
		return err
	}
	return c.d.Submit(&c.cmds[i])
}

func (c *copier) release() {
	for _, b := range append(c.to, c.staging...) {
		b.Release()
	}
}
