package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
)

// staging is a ring of buffers that the CPU maps: records are read straight into them, and one copy
// each brings them to their slots. Queue writes would copy once more, on one thread.
type staging struct {
	device *gpu.Device
	free   chan *gpu.Buffer
	all    []*gpu.Buffer
	took   atomic.Int64 // nanoseconds in upload without its fills, of all readers together
}

// stagingBuffers is the length of the ring for a number of readers: while a record is copied
// its reader fills another.
func stagingBuffers(readers int) int { return 2 * readers }

func makeStaging(d *gpu.Device, n int, size uint64) (*staging, error) {
	s := &staging{device: d, free: make(chan *gpu.Buffer, n)}
	for i := range n {
		b, err := d.NewBuffer(gpu.Staging, fmt.Sprintf("staging %d", i), size, gpu.UsageMapWrite|gpu.UsageCopySrc)
		if err != nil {
			return s, err
		}
		s.all = append(s.all, b)
		s.free <- b
	}
	return s, nil
}

// upload lets fill write n bytes, calls before, which may record what comes before the copy, and queues their copy to dst at off. When it returns, the copy
// comes before anything that is submitted later.
func (s *staging) upload(ctx context.Context, dst *gpu.Buffer, off, n uint64, fill func([]byte) error, before func(*gpu.Commands) error) error {
	start, filled := time.Now(), time.Duration(0)
	defer func() { s.took.Add(int64(time.Since(start) - filled)) }()
	var b *gpu.Buffer
	select {
	case b = <-s.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.free <- b }()
	data, err := b.Map(ctx) // waits for the copy that used it last
	if err != nil {
		return err
	}
	begun := time.Now()
	err = fill(data[:n])
	filled = time.Since(begun)
	if err != nil {
		_ = b.Unmap() // the first error says more
		return err
	}
	if err := b.Unmap(); err != nil {
		return err
	}
	var c gpu.Commands
	if err := before(&c); err != nil {
		return err
	}
	c.Copy(b, 0, dst, off, n)
	return s.device.Submit(&c)
}

func (s *staging) release() {
	for _, b := range s.all {
		b.Release()
	}
}
