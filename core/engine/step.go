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
	vocab    int
	results  []byte    // what finish read
	row      Logits    // the row decoded last
	values   []float32 // room for its logits
	embed    []float32
	bytes    []byte
	asked    []int // the picks of the layer at hand, row by row
	tiles    tiling
	held     stream.Pins // of the experts that the next submit reads
	holding  bool
	wave     []int // experts of the wave that is recorded
	coming   []int // indices of those whose records are on their way
	step     [stepBytes]byte
	outs     [4 * maxOuts]byte
}

// row decodes the logits of output row i of the last step.
func (m *Model) row(i int) *Logits {
	r := &m.runner
	if m.topn != nil {
		m.topn.row(r.results, i, &r.row)
		return &r.row
	}
	data := r.results[4*i*r.vocab:]
	for id := range r.values {
		r.values[id] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*id:]))
	}
	for _, id := range m.suppress {
		r.values[id] = float32(math.Inf(-1))
	}
	r.row.All = r.values
	return &r.row
}

// Stats count what steps did since the model was loaded.
type Stats struct {
	Tokens    int
	Steps     int
	Waves     int // of experts, beyond one a layer and step
	Readbacks int
	Stops     int           // layers of one-token steps that waited for an expert
	Time      time.Duration // of all steps
	GPUWait   time.Duration // waiting for picks and logits
	GPU       time.Duration // of the steps' commands on the GPU; 0 without Options.Timing
	DiskWait  time.Duration // waiting for experts to be read and uploaded
	Upload    time.Duration // bringing records from memory to their slots, all readers together: mostly within DiskWait
	Encode    time.Duration // recording and submitting commands
}

// Stats returns the counts so far. Call it between steps.
func (m *Model) Stats() Stats {
	s := m.stats
	s.Upload = time.Duration(m.experts.staging.took.Load())
	return s
}

// readbackSizes are the sizes of the picks' and the logits' readbacks.
func (m *Model) readbackSizes() (picks, logits uint64) {
	picks = program.TableBytes(program.Table_PICKS, m.Plan.Model, 0, uint64(m.Chunk), 0)
	if m.topn != nil {
		return picks, m.topn.readbackEnd
	}
	return picks, program.TableBytes(program.Table_LOGITS, m.Plan.Model, 0, 0, uint64(m.outs()))
}

func (m *Model) makeRunner() error {
	model := m.Plan.Model
	r := &m.runner
	r.vocab = int(model.Vocab)
	r.values = make([]float32, r.vocab)
	r.embed = make([]float32, int(model.Hidden)*m.Chunk)
	r.bytes = make([]byte, 4*len(r.embed))
	picks, logits := m.readbackSizes()
	var err error
	if r.picks, err = m.device.NewReadback("picks", picks); err != nil {
		return err
	}
	r.logits, err = m.device.NewReadback("logits", logits)
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
// and so on to the head. It leaves the logits of the last step.O rows in the runner.
func (m *Model) run(ctx context.Context, s *Session, step program.StepUniform) error {
	if err := m.writeStep(step); err != nil {
		return err
	}
	if err := m.writeOuts(step); err != nil {
		return err
	}
	m.experts.pool.Tick(int(step.T))
	if m.token != nil && step.T == 1 {
		return m.runToken(ctx, s, step)
	}
	m.runner.commands.Reset()
	defer m.letGo()
	if err := m.trace.input(m.runner.bytes, step, int(m.Plan.Model.Hidden)); err != nil {
		return err
	}
	flat := 0
	for _, sec := range m.Program.Sections {
		if err := m.runSection(ctx, s, sec, flat, step); err != nil {
			return err
		}
		flat += len(sec.Variants)
	}
	return m.finish(ctx, step)
}

// runSection records a section, and does what the host has to before or after it. flat is its
// first variant's number among all.
func (m *Model) runSection(ctx context.Context, s *Session, sec *program.Section, flat int, step program.StepUniform) error {
	rows := step.T
	if sec.Kind == program.Kind_HEAD {
		rows = step.O
	}
	v := sec.Pick(rows)
	if rows == 0 || sec.Kind == program.Kind_GUESS {
		return nil
	}
	for i := range sec.Variants {
		if sec.Variants[i] == v {
			flat += i
		}
	}
	switch {
	case sec.Kind == program.Kind_EXPERTS && v.Tiled():
		return expertsSection{m, s, int(sec.Layer), v, flat, step}.run(ctx)
	case sec.Kind == program.Kind_EXPERTS:
		if err := m.ensure(ctx, int(sec.Layer), m.runner.asked); err != nil {
			return err
		}
	}
	if err := m.record(ctx, s, v, flat, step); err != nil {
		return err
	}
	if sec.Kind == program.Kind_TRUNK {
		return m.readPicks(ctx, int(sec.Layer), step)
	}
	return nil
}

// record appends a variant's dispatches. flat is its number among all.
func (m *Model) record(ctx context.Context, s *Session, v *program.Variant, flat int, step program.StepUniform) error {
	defer m.encoding(time.Now())
	for i, d := range v.Dispatches {
		g := m.shared[flat][i]
		if g == nil {
			g = s.groups[flat][i]
		}
		grid, err := program.Grid(d.Grid, step, m.device.Limits().MaxGroups)
		if err != nil {
			return fmt.Errorf("engine: %s: %w", d.Label, err)
		}
		if m.profile != nil {
			if err := m.profile.dispatch(ctx, m, d, g, grid); err != nil {
				return err
			}
		} else {
			m.runner.commands.Dispatch(m.code.pipelines[d.Kernel], g, grid[0], grid[1], grid[2])
		}
		if err := m.trace.dispatch(ctx, m, d, flat, i, step); err != nil {
			return err
		}
	}
	return nil
}

// encoding books the time since start.
func (m *Model) encoding(start time.Time) { m.stats.Encode += time.Since(start) }

// readPicks runs what is recorded up to a layer's routing and reads which experts it picked.
func (m *Model) readPicks(ctx context.Context, layer int, step program.StepUniform) error {
	r, n := &m.runner, int(step.T)*int(m.Plan.Model.TopK)
	r.picks.Copy(&r.commands, 0, m.tables.picks, m.experts.index[layer]*m.sizes.picksStride, 4*uint64(n))
	if err := m.submit(); err != nil {
		return err
	}
	data, err := m.wait(ctx, r.picks)
	if err != nil {
		return err
	}
	r.asked = r.asked[:0]
	for i := range n {
		r.asked = append(r.asked, int(binary.LittleEndian.Uint32(data[4*i:])))
	}
	if err := r.picks.Unmap(); err != nil {
		return err
	}
	if err := m.checkPicks(layer); err != nil {
		return err
	}
	if m.routed != nil {
		m.routed(layer, int(step.Pos0), r.asked, nil)
	}
	return nil
}

// wait waits for a readback and counts the time.
func (m *Model) wait(ctx context.Context, r *gpu.Readback) ([]byte, error) {
	return m.waitFor(ctx, r, true)
}

// waitFor is wait; only the last of submits in flight reads their stamps, for that waits for all of them.
func (m *Model) waitFor(ctx context.Context, r *gpu.Readback, last bool) ([]byte, error) {
	start := time.Now()
	data, err := r.Wait(ctx)
	m.stats.GPUWait += time.Since(start)
	m.stats.Readbacks++
	if err == nil && last {
		if err = m.timing.waited(ctx, &m.stats.GPU); err != nil {
			_ = r.Unmap() // none will look at it
		}
	}
	return data, err
}

// ensure makes experts of a layer resident and pins them until the next submit.
func (m *Model) ensure(ctx context.Context, layer int, experts []int) error {
	pins, err := m.hold(ctx, layer, experts)
	if err != nil {
		return err
	}
	return m.await(ctx, pins, 0)
}

// hold begins to make experts of a layer resident and pins them until the next submit.
func (m *Model) hold(ctx context.Context, layer int, experts []int) (stream.Pins, error) {
	pins, err := m.request(ctx, layer, experts)
	if err == nil {
		m.runner.held, m.runner.holding = pins, true
	}
	return pins, err
}

// request pins experts of a layer and begins to read those that are missing. It waits only for slots.
func (m *Model) request(ctx context.Context, layer int, experts []int) (stream.Pins, error) {
	defer m.waiting(time.Now())
	return m.experts.pool.Request(ctx, layer, experts)
}

// await waits for what was requested, but for rest of it.
func (m *Model) await(ctx context.Context, pins stream.Pins, rest int) error {
	defer m.waiting(time.Now())
	m.experts.awaited.Store(true)
	defer m.experts.awaited.Store(false)
	return pins.Wait(ctx, rest)
}

// waiting books the time since start.
func (m *Model) waiting(start time.Time) { m.stats.DiskWait += time.Since(start) }

// submit sends what is recorded; then the experts it reads need no pins any more.
func (m *Model) submit() error {
	defer m.encoding(time.Now())
	r := &m.runner
	defer r.commands.Reset()
	defer m.letGo()
	return m.submitTimed(nil, &r.commands)
}

// submitPrepared is submit of what is prepared.
func (m *Model) submitPrepared(lists []*gpu.Prepared) error {
	defer m.encoding(time.Now())
	defer m.letGo()
	return m.submitTimed(lists, &noCommands)
}

// submitTimed submits prepared lists or another between stamps, where submits are timed.
func (m *Model) submitTimed(lists []*gpu.Prepared, list *gpu.Commands) error {
	before, behind := m.timing.around()
	err := m.experts.submit(lists, before, list, behind)
	if err == nil {
		m.timing.submitted()
	}
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
func (m *Model) finish(ctx context.Context, step program.StepUniform) error {
	if step.O > 0 {
		if m.topn != nil {
			m.topn.record(&m.runner.commands, step.O)
		}
		m.copyLogits(&m.runner.commands, step.O)
	}
	if err := m.submit(); err != nil {
		return err
	}
	return m.readLogits(ctx, step)
}

// copyLogits appends the copy of what readLogits reads: the results of topn, or whole rows.
func (m *Model) copyLogits(c *gpu.Commands, rows uint32) {
	r := &m.runner
	if m.topn != nil {
		m.topn.copy(c, r.logits, rows)
	} else {
		r.logits.Copy(c, 0, m.tables.logits, 0, 4*uint64(rows)*uint64(r.vocab))
	}
}

// readLogits reads the results of a step that is submitted.
func (m *Model) readLogits(ctx context.Context, step program.StepUniform) error {
	m.stats.Tokens += int(step.T)
	m.stats.Steps++
	if step.O == 0 {
		return nil
	}
	r := &m.runner
	data, err := m.wait(ctx, r.logits)
	if err != nil {
		return err
	}
	r.results = append(r.results[:0], data...)
	return r.logits.Unmap()
}
