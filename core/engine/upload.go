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
		n, err := program.BufferBytes(b, uint64(m.Chunk), uint64(m.outs()), uint64(m.Context))
		if err != nil {
			return fail("buffer "+b.Name, err)
		}
		buf, err := m.device.NewBuffer(gpu.Scratch, b.Name, n, gpu.UsageStorage|gpu.UsageCopyDst|gpu.UsageCopySrc)
		if err != nil {
			return err
		}
		m.scratch[uint32(i)] = buf
	}
	return nil
}

// upload creates the arenas of dense weights and fills them, a band at a time.
func (m *Model) upload(ctx context.Context, progress func(done, total uint64)) error {
	a := packArenas(m.Weights, m.limits.MaxBufferSize)
	var done, total uint64
	for i, n := range a.sizes {
		b, err := m.device.NewBuffer(gpu.Dense, fmt.Sprintf("dense %d", i), n, gpu.UsageStorage|gpu.UsageCopyDst)
		if err != nil {
			return err
		}
		m.arenas = append(m.arenas, b)
	}
	for _, spans := range a.at {
		for _, s := range spans {
			total += s.size
		}
	}
	for i, spans := range a.at {
		m.dense = append(m.dense, nil)
		for j, s := range spans {
			if err := ctx.Err(); err != nil {
				return err
			}
			r := gpu.Range{Buffer: m.arenas[s.arena], Offset: s.offset, Size: s.size}
			m.dense[i] = append(m.dense[i], r)
			if err := m.fill(ctx, i, j, r); err != nil {
				return fmt.Errorf("engine: weight %s: %w", m.Weights[i].Name, err)
			}
			if done += s.size; progress != nil {
				progress(done, total)
			}
		}
	}
	return nil
}

// fill writes one band.
func (m *Model) fill(ctx context.Context, weight, band int, r gpu.Range) error {
	return m.source.ReadBand(ctx, weight, band, func(off uint64, data []byte) error {
		return m.device.Write(r.Buffer, r.Offset+off, data)
	})
}
