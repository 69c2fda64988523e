package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/stream"
	"github.com/sluicehost/sluice/sdk/program"
)

// runner is what steps use over and over.
type runner struct {
	commands gpu.Commands
	picks    *gpu.Readback
	logits   *gpu.Readback
	row      []float32 // logits of one row
	embed    []float32
	bytes    []byte
	asked    []int
	held     stream.Pins // of the experts that the next submit reads
	holding  bool
}

// Stats count what steps did since the model was loaded.
type Stats struct {
	Tokens    int
	Readbacks int
	GPUWait   time.Duration // waiting for picks and logits
	DiskWait  time.Duration // waiting for experts
}

// Stats returns the counts so far. Call it between steps.
func (m *Model) Stats() Stats { return m.stats }

func (m *Model) readbackBytes() uint64 {
	model := m.Plan.Model
	return gpu.Booked(4*uint64(m.chunk)*uint64(model.TopK)) + gpu.Booked(4*uint64(model.Vocab)*uint64(m.outs()))
}

func (m *Model) makeRunner() error {
	model := m.Plan.Model
	r := &m.runner
	r.row = make([]float32, model.Vocab)
	r.embed = make([]float32, int(model.Hidden)*m.chunk)
	r.bytes = make([]byte, 4*len(r.embed))
	var err error
	if r.picks, err = m.device.NewReadback("picks", 4*uint64(m.chunk)*uint64(model.TopK)); err != nil {
		return err
	}
	r.logits, err = m.device.NewReadback("logits", 4*uint64(model.Vocab)*uint64(m.outs()))
	return err
}

// input writes what a step reads: embedding rows and rope rows.
func (m *Model) input(ids []int32, pos int) error {
	r := &m.runner
	x := r.embed[:len(ids)*int(m.Plan.Model.Hidden)]
	if err := m.source.EmbedRows(ids, x); err != nil {
		return err
	}
	scale := m.Plan.Embed.Scale
	for i, v := range x {
		binary.LittleEndian.PutUint32(r.bytes[4*i:], math.Float32bits(v*scale))
	}
	if err := m.device.Write(m.scratch[m.Program.Input], 0, r.bytes[:4*len(x)]); err != nil {
		return err
	}
	return m.writeRopes(pos, len(ids))
}

// run replays the program for one step: each trunk, a readback of its picks, the experts it asked for,
// and so on to the head. It returns the logits where the step wants them.
func (m *Model) run(ctx context.Context, s *Session, step program.StepUniform) ([]float32, error) {
	if err := m.writeStep(step); err != nil {
		return nil, err
	}
	r := &m.runner
	r.commands.Reset()
	defer m.letGo()
	flat := 0
	for _, sec := range m.Program.Sections {
		n := step.T
		if sec.Kind == program.Kind_HEAD {
			n = step.O
		}
		if n > 0 && sec.Kind != program.Kind_GUESS {
			if err := m.record(s, sec, flat, n, step); err != nil {
				return nil, err
			}
		}
		flat += len(sec.Variants)
		if sec.Kind == program.Kind_TRUNK {
			if err := m.fetch(ctx, int(sec.Layer), step); err != nil {
				return nil, err
			}
		}
	}
	return m.finish(ctx, step)
}

// record appends a section's dispatches for n rows. flat is the section's first variant among all.
func (m *Model) record(s *Session, sec *program.Section, flat int, n uint32, step program.StepUniform) error {
	v := sec.Pick(n)
	for i := range sec.Variants {
		if sec.Variants[i] == v {
			flat += i
		}
	}
	for i, d := range v.Dispatches {
		g := m.shared[flat][i]
		if g == nil {
			g = s.groups[flat][i]
		}
		grid, err := program.Grid(d.Grid, step, m.device.Limits().MaxGroups)
		if err != nil {
			return fmt.Errorf("engine: %s: %w", d.Label, err)
		}
		m.runner.commands.Dispatch(m.code.pipelines[d.Kernel], g, grid[0], grid[1], grid[2])
	}
	return nil
}

// fetch runs what is recorded up to a layer's routing, reads its picks and makes them resident.
func (m *Model) fetch(ctx context.Context, layer int, step program.StepUniform) error {
	r, k := &m.runner, int(m.Plan.Model.TopK)
	n := 4 * uint64(step.T) * uint64(k)
	r.picks.Copy(&r.commands, 0, m.tables.picks, m.experts.index[layer]*m.sizes.picksStride, n)
	if err := m.submit(); err != nil {
		return err
	}
	start := time.Now()
	data, err := r.picks.Wait(ctx)
	if err != nil {
		return err
	}
	r.asked = r.asked[:0]
	for i := range int(step.T) * k {
		r.asked = append(r.asked, int(binary.LittleEndian.Uint32(data[4*i:])))
	}
	if err := r.picks.Unmap(); err != nil {
		return err
	}
	waited := time.Now()
	m.stats.GPUWait += waited.Sub(start)
	m.stats.Readbacks++
	if r.held, err = m.experts.pool.Ensure(ctx, layer, r.asked); err != nil {
		return err
	}
	r.holding = true
	m.stats.DiskWait += time.Since(waited)
	return m.experts.writeMap()
}

// submit sends what is recorded; then the experts it reads need no pins any more.
func (m *Model) submit() error {
	r := &m.runner
	err := m.device.Submit(&r.commands)
	r.commands.Reset()
	m.letGo()
	return err
}

// letGo releases the pins that are held.
func (m *Model) letGo() {
	if r := &m.runner; r.holding {
		r.held.Release()
		r.holding = false
	}
}

// finish sends the rest of a step and reads its logits.
func (m *Model) finish(ctx context.Context, step program.StepUniform) ([]float32, error) {
	r := &m.runner
	m.stats.Tokens += int(step.T)
	if step.O == 0 {
		return nil, m.submit()
	}
	n := 4 * uint64(m.Plan.Model.Vocab)
	r.logits.Copy(&r.commands, 0, m.tables.logits, 0, n)
	if err := m.submit(); err != nil {
		return nil, err
	}
	start := time.Now()
	data, err := r.logits.Wait(ctx)
	if err != nil {
		return nil, err
	}
	m.stats.GPUWait += time.Since(start)
	m.stats.Readbacks++
	for i := range r.row {
		r.row[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return r.row, r.logits.Unmap()
}
