package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/lookahead"
	"github.com/sluicehost/sluice/core/stream"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// token is the one-token step as one list of dispatches, whose grids the GPU reads from a buffer. After each layer's routing
// the host's resolve kernel looks for the picks' slots there, and where one is missing it sets stop and zeroes all later
// grids. So several layers go to the GPU at once, and what comes after a miss runs nothing.
//
// The buffer's words: stop (a stage's number and 1, or 0) | grids | of each stage its picks, then its guesses.
type token struct {
	ops     []tokenOp
	stages  []stage
	guesses int    // of the stage that has most
	tail    int    // first op of the head
	log     int    // word at which picks and guesses begin
	bytes   []byte // of the buffer up to log
	grids   gridsOf
	buffer  *gpu.Buffer

	resolve   *gpu.Pipeline
	constants *gpu.Buffer
	groups    []*gpu.BindGroup // of resolve, by stage
	missing   float64          // share of stages that stopped lately
	ahead     *lookahead.Controller
	counters  []stream.Counters // for ahead
	tally     stream.Counters   // of all layers, when tallied steps had run
	tallied   int
	whole     prepared // the next step where every expert is resident
	flight    flight   // of steps where not
	heard     int      // stages of the step that are heard of
	guessed   []int    // what stage guesser guessed: picks of the stages after it
	guesser   int
}

// tokenOp is a dispatch of the program, or of topn where d is nil.
type tokenOp struct {
	d       *program.Dispatch
	flat, i int  // variant among all, dispatch in it
	guess   int  // stages ahead that it guesses; 0 for none
	fixed   bool // its grid is the same for every step with as many output rows
}

// stage is the ops of one MoE layer: [first, experts) up to its routing, with guesses, [experts, end) its experts and combine.
type stage struct {
	layer, first, experts, end int
	guesses                    int
}

const (
	resolveWords = 8 // of the constants struct
	resolveLanes = 64
)

// planToken lists the ops; nil where a one-token step has a form that this can't run: experts in waves.
func (m *Model) planToken(depth, readers int) (*token, error) {
	t, flat := &token{missing: 1}, 0
	for _, sec := range m.Program.Sections {
		v := sec.Pick(1)
		if v == nil || sec.Kind == program.Kind_EXPERTS && v.Tiled() {
			return nil, nil
		}
		t.add(sec, v, flat+slices.Index(sec.Variants, v))
		flat += len(sec.Variants)
	}
	if m.topn != nil {
		t.ops = append(t.ops, tokenOp{fixed: true}, tokenOp{fixed: true})
	}
	switch {
	case depth > t.guesses:
		return nil, fmt.Errorf("engine: lookahead: have %d layers, want at most %d: the model's plan guesses no deeper", depth, t.guesses)
	case depth != 0:
		t.ahead = lookahead.Fixed(max(depth, 0))
	default:
		t.ahead = lookahead.New(t.guesses, readers)
	}
	t.log = t.word(len(t.ops))
	t.bytes = make([]byte, 4*t.log)
	return t, nil
}

// spent tells the controller what a token cost, before which the counters stood so.
func (t *token) spent(m *Model, took time.Duration, before Stats) {
	was := t.tally
	t.count(m)
	c := &t.tally
	t.ahead.Token(lookahead.Token{
		Took: took, Waited: m.stats.DiskWait - before.DiskWait, Waits: m.stats.Stops - before.Stops, Pieces: int(c.Pieces - was.Pieces), Needed: int(c.Misses + c.Useful - was.Misses - was.Useful), Guessed: int(c.Guessed - was.Guessed),
		Useful: int(c.Useful - was.Useful), Harmed: int(c.Harmed - was.Harmed),
	})
}

// begin makes the tally that of now: it is where the step before was a token, too.
func (t *token) begin(m *Model) {
	if t.tallied != m.stats.Steps {
		t.count(m)
	}
}

// count sums up the pool's counters so far.
func (t *token) count(m *Model) {
	t.tallied = m.stats.Steps
	t.counters = m.experts.pool.Counters(t.counters[:0])
	t.tally = stream.Counters{}
	for _, c := range t.counters {
		t.tally.Misses += c.Misses
		t.tally.Pieces += c.Pieces
		t.tally.Guessed += c.Guessed
		t.tally.Useful += c.Useful
		t.tally.Harmed += c.Harmed
	}
}

// add appends a section's one-token variant, which is number flat of all.
func (t *token) add(sec *program.Section, v *program.Variant, flat int) {
	switch sec.Kind {
	case program.Kind_TRUNK:
		t.stages = append(t.stages, stage{layer: int(sec.Layer), first: len(t.ops)})
	case program.Kind_HEAD:
		t.tail = len(t.ops)
	}
	st := &t.stages[len(t.stages)-1]
	op := tokenOp{flat: flat}
	if sec.Kind == program.Kind_GUESS {
		st.guesses++
		t.guesses = max(t.guesses, st.guesses)
		op.guess = st.guesses
	}
	for op.i, op.d = range v.Dispatches {
		op.fixed = !slices.ContainsFunc(op.d.Grid, func(t *program.Term) bool { return t.N == program.Var_S || t.N == program.Var_SW })
		t.ops = append(t.ops, op)
	}
	switch sec.Kind {
	case program.Kind_TRUNK, program.Kind_GUESS:
		st.experts = len(t.ops)
	case program.Kind_EXPERTS, program.Kind_COMBINE:
		st.end = len(t.ops)
	}
}

// running is how many stages ahead the GPU guesses: all, where a trace wants them, and else as many as are read.
func (t *token) running(m *Model) int {
	if m.routed != nil {
		return t.guesses
	}
	return t.ahead.Depth()
}

// Guesses is how many of the MoE layers after one are guessed at from there: 0 where each layer's routing is waited for.
func (m *Model) Guesses(layer int) int {
	if m.token == nil {
		return 0
	}
	return m.token.stages[m.experts.index[layer]].guesses
}

// perStage is how many words a stage has in the log.
func (t *token) perStage(m *Model) int { return int(m.Plan.Model.TopK) * (1 + t.guesses) }

// logBytes is the size of the picks and guesses of all stages.
func (t *token) logBytes(m *Model) uint64 { return 4 * uint64(len(t.stages)*t.perStage(m)) }

// readbackBytes is the size of what is read back of it: stop and the log.
func (t *token) readbackBytes(m *Model) uint64 { return 4 + t.logBytes(m) }

// buffers lists the buffers with their sizes.
func (t *token) buffers(m *Model, uniformAlign uint64) []tableBuffer {
	return []tableBuffer{
		{&t.buffer, "token", uint64(len(t.bytes)) + t.logBytes(m), storageUsage | gpu.UsageIndirect},
		{&t.constants, "resolve constants", uint64(len(t.stages)) * alignUp(4*resolveWords, uniformAlign), gpu.UsageUniform | gpu.UsageCopyDst},
	}
}

// make creates buffers, the resolve kernel and its bind groups.
func (t *token) make(m *Model) error {
	align := m.device.Limits().UniformAlign
	if err := m.makeTableBuffers(t.buffers(m, align)); err != nil {
		return err
	}
	var err error
	for i := range t.flight.stretches {
		if t.flight.stretches[i].back, err = m.device.NewReadback(fmt.Sprintf("token %d", i), t.readbackBytes(m)); err != nil {
			return err
		}
	}
	k, err := kernels.Build(kernels.Spec{Name: "resolve", Params: map[string]uint32{"W": resolveLanes}})
	if err != nil {
		return err
	}
	p, err := m.device.NewPipelines([]gpu.PipelineSpec{{Label: k.Name, WGSL: k.Wgsl, Bindings: bindingTypes(k)}})
	if err != nil {
		return err
	}
	t.resolve = p[0]
	stride := alignUp(4*resolveWords, align)
	packed := make([]byte, stride*uint64(len(t.stages)))
	for i, s := range t.stages {
		topK := int(m.Plan.Model.TopK)
		for j, v := range [resolveWords]int{i, topK, int(m.Plan.Model.Experts), t.word(s.experts), t.log, t.log + i*t.perStage(m),
			s.guesses, int(m.sizes.guessStride / 4)} {
			binary.LittleEndian.PutUint32(packed[uint64(i)*stride+4*uint64(j):], uint32(v))
		}
		g, err := t.bind(m, k, i, gpu.Range{Buffer: t.constants, Offset: uint64(i) * stride, Size: 4 * resolveWords})
		if err != nil {
			return err
		}
		t.groups = append(t.groups, g)
	}
	return m.device.Write(t.constants, 0, packed)
}

func (t *token) bind(m *Model, k *program.Kernel, i int, constants gpu.Range) (*gpu.BindGroup, error) {
	at := m.experts.index[t.stages[i].layer]
	ranges := make([]gpu.Range, len(k.Slots))
	for j, s := range k.Slots {
		ranges[j] = map[string]gpu.Range{
			"c":         constants,
			"picks":     {Buffer: m.tables.picks, Offset: at * m.sizes.picksStride, Size: m.sizes.picksStride},
			"residency": {Buffer: m.tables.residency, Offset: at * m.sizes.residencyStride, Size: m.sizes.residencyStride},
			"guesses":   m.guessRange(t.stages[i].layer, 0, max(t.guesses, 1)),
			"token":     {Buffer: t.buffer},
		}[s.Name]
	}
	return m.device.NewBindGroup(t.resolve, k.Name, ranges)
}

// tokenHead is how many words come before the grids.
const tokenHead = 1

// word is where the grid of an op begins.
func (t *token) word(op int) int { return tokenHead + 3*op }

// gridsOf says of which steps the grids are, but for those that every step changes.
type gridsOf struct {
	filled  bool
	outs    uint32
	running int
}

// fill works out a step's grids.
func (t *token) fill(m *Model, step program.StepUniform) error {
	of := gridsOf{true, step.O, t.running(m)}
	same := of == t.grids
	t.grids = gridsOf{}
	for i, op := range t.ops {
		if op.d == nil {
			break
		}
		if same && op.fixed {
			continue
		}
		var grid [3]uint32 // none where it guesses deeper, and was recorded before that changed
		if op.guess <= of.running {
			var err error
			if grid, err = program.Grid(op.d.Grid, step, m.device.Limits().MaxGroups); err != nil {
				return fmt.Errorf("engine: %s: %w", op.d.Label, err)
			}
		}
		t.put(i, grid)
	}
	if m.topn != nil {
		first, merge := m.topn.op.Grids(step.O)
		t.put(len(t.ops)-2, first)
		t.put(len(t.ops)-1, merge)
	}
	t.grids = of
	return nil
}

// put sets the grid of an op.
func (t *token) put(op int, grid [3]uint32) {
	for i, n := range grid {
		binary.LittleEndian.PutUint32(t.bytes[4*(t.word(op)+i):], n)
	}
}

// write puts the grids into the buffer and clears stop.
func (t *token) write(m *Model) error { return m.device.Write(t.buffer, 0, t.bytes) }

// record appends ops from up to to, with the grids that the GPU reads from the buffer; once everything is resident (whole) with
// those that don't change as they are, which spares the GPU their fetching.
func (t *token) record(m *Model, c *gpu.Commands, s *Session, from, to int, whole bool) {
	for i := from; i < to; i++ {
		op := t.ops[i]
		if op.guess > t.running(m) || op.guess > 0 && whole {
			continue
		}
		p, g := t.bound(m, s, i)
		if !whole || !op.fixed {
			c.DispatchIndirect(p, g, t.buffer, 4*uint64(t.word(i)))
			continue
		}
		if x, y, z := t.grid(i); x > 0 && y > 0 && z > 0 {
			c.Dispatch(p, g, x, y, z)
		}
	}
}

// bound is the pipeline and the bind group of an op.
func (t *token) bound(m *Model, s *Session, i int) (*gpu.Pipeline, *gpu.BindGroup) {
	op := t.ops[i]
	switch {
	case op.d == nil && i == len(t.ops)-2:
		return m.topn.first, m.topn.firstSet
	case op.d == nil:
		return m.topn.merge, m.topn.mergeSet
	}
	g := m.shared[op.flat][op.i]
	if g == nil {
		g = s.groups[op.flat][op.i]
	}
	return m.code.pipelines[op.d.Kernel], g
}

// grid is the grid of an op as it was last written.
func (t *token) grid(op int) (x, y, z uint32) {
	at := t.bytes[4*t.word(op):]
	return binary.LittleEndian.Uint32(at), binary.LittleEndian.Uint32(at[4:]), binary.LittleEndian.Uint32(at[8:])
}

func (t *token) release() {
	if t == nil {
		return
	}
	t.forget(nil)
	for _, b := range []*gpu.Buffer{t.buffer, t.constants} {
		if b != nil {
			b.Release()
		}
	}
	for i := range t.flight.stretches {
		if r := t.flight.stretches[i].back; r != nil {
			r.Release()
		}
	}
	for _, g := range t.groups {
		g.Release()
	}
	if t.resolve != nil {
		t.resolve.Release()
	}
}

// errNoProgress says that the GPU stopped before a stage that it was never given, or again at one whose experts are there.
var errNoProgress = errors.New("engine: the GPU's stop makes no sense")
