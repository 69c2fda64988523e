package engine

import (
	"context"
	"fmt"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// makeScratch creates the buffers that steps share.
func (m *Model) makeScratch() error {
	m.scratch = map[uint32]*gpu.Buffer{}
	for i, b := range m.Program.Buffers {
		if b.Class != program.Class_SCRATCH {
			continue
		}
		buf, err := m.makeBuffer(b)
		if err != nil {
			return err
		}
		m.scratch[uint32(i)] = buf
	}
	return nil
}

// makeBuffer creates one of the program's buffers, zeroed.
func (m *Model) makeBuffer(b *program.Buffer) (*gpu.Buffer, error) {
	n, err := program.BufferBytes(b, uint64(m.Chunk), uint64(m.outs()), uint64(m.Context))
	if err != nil {
		return nil, fail("buffer "+b.Name, err)
	}
	return m.device.NewBuffer(kindOf(b.Class), b.Name, n, gpu.UsageStorage|gpu.UsageCopyDst|gpu.UsageCopySrc)
}

// upload creates a buffer per band of every dense weight and fills it.
func (m *Model) upload(ctx context.Context, progress func(done, total uint64)) error {
	var done uint64
	for i, w := range m.Weights {
		m.dense = append(m.dense, nil)
		for j, band := range w.Bands {
			if err := ctx.Err(); err != nil {
				return err
			}
			b, err := m.device.NewBuffer(gpu.Dense, w.Name, band.Bytes, gpu.UsageStorage|gpu.UsageCopyDst)
			if err != nil {
				return err
			}
			m.dense[i] = append(m.dense[i], b)
			if err := m.fill(ctx, i, j, b); err != nil {
				return fmt.Errorf("engine: weight %s: %w", w.Name, err)
			}
			if done += band.Bytes; progress != nil {
				progress(done, m.Budget.Dense)
			}
		}
	}
	return nil
}

// fill writes one band.
func (m *Model) fill(ctx context.Context, weight, band int, b *gpu.Buffer) error {
	return m.source.ReadBand(ctx, weight, band, func(off uint64, data []byte) error {
		return m.device.Write(b, off, data)
	})
}
