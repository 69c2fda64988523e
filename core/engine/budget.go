package engine

import (
	"errors"
	"fmt"
	"math"

	"github.com/dustin/go-humanize"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/stream"
	"github.com/sluicehost/sluice/sdk/program"
)

// Budget is what a model takes on the GPU, in bytes by kind as they are reserved (gpu.Reserved), as predicted before anything
// is made.
type Budget struct {
	Dense, KV, State, Scratch, Table, Staging, Pool uint64
	Whole                                           uint64 // what Pool would be with every expert resident
	Chunk                                           int    // most tokens of one step, chosen for the budget where none is asked for
	Session                                         uint64 // of KV and State, what one more session takes
	Requested                                       uint64 // what all buffers are asked for, Total without the rounding
}

// Total is the sum of all kinds.
func (b Budget) Total() uint64 {
	return b.Dense + b.KV + b.State + b.Scratch + b.Table + b.Staging + b.Pool
}

// ByKind is the budget in the terms of the GPU's own account.
func (b Budget) ByKind() map[gpu.Kind]uint64 {
	return map[gpu.Kind]uint64{gpu.Dense: b.Dense, gpu.KV: b.KV, gpu.State: b.State, gpu.Scratch: b.Scratch,
		gpu.Table: b.Table, gpu.Staging: b.Staging, gpu.Pool: b.Pool}
}

// BudgetError says that a budget does not hold a model's fixed parts and its smallest pool.
type BudgetError struct {
	Have, Fixed, Pool uint64 // bytes
}

// Want is the smallest budget that works.
func (e *BudgetError) Want() uint64 { return e.Fixed + e.Pool }

// Error implements error.
func (e *BudgetError) Error() string {
	size := func(n uint64) string { return humanize.BytesN(n, 3) }
	return fmt.Sprintf("engine: GPU budget: have %s, want at least %s (%d bytes): %s for the dense weights and other fixed parts, %s for the smallest expert pool",
		size(e.Have), size(e.Want()), e.Want(), size(e.Fixed), size(e.Pool))
}

// Predict is what Load would make of a device's memory with these options: bytes by kind, and the banks. It needs
// no device. A budget that is too small is a *BudgetError, which comes with all kinds but the pool.
func (m *Planned) Predict(device gpu.Limits, o Options) (Budget, []stream.Bank, error) {
	if o.Readers <= 0 {
		o.Readers = DefaultReaders()
	}
	if err := m.checkLoops(DeviceLimits(device)); err != nil {
		return Budget{}, nil, err
	}
	return m.stretched(device, o).predict(device, o)
}

// predict is Predict at the plan's chunk.
func (m *Planned) predict(device gpu.Limits, o Options) (Budget, []stream.Bank, error) {
	x := &Model{Planned: m, limits: device, snapshots: o.Snapshots}
	return x.budget(o)
}

// budget chooses what runs beside the program, adds up what is fixed and gives the rest to the pool.
func (m *Model) budget(o Options) (Budget, []stream.Bank, error) {
	b := Budget{Chunk: m.Chunk}
	if err := m.planTopN(o.Top); err != nil {
		return b, nil, err
	}
	if !o.Wait && !o.Profile && o.Trace == nil { // those look at each dispatch
		var err error
		if m.token, err = m.planToken(o.Lookahead, o.Readers); err != nil {
			return b, nil, err
		}
	}
	for _, n := range packArenas(m.Weights, m.limits.MaxBufferSize).sizes {
		b.add(&b.Dense, 1, n)
	}
	if err := m.budgetBuffers(&b, max(1, o.Sessions)); err != nil {
		return b, nil, err
	}
	m.budgetTables(&b)
	if err := m.budgetStaging(&b, o); err != nil {
		return b, nil, err
	}
	banks, err := m.budgetPool(&b, o.Budget)
	return b, banks, err
}

// add counts n buffers of a size.
func (b *Budget) add(kind *uint64, n int, size uint64) {
	*kind += uint64(n) * gpu.Reserved(size)
	b.Requested += uint64(n) * size
}

// budgetBuffers counts the program's buffers, of sessions with their snapshots.
func (m *Model) budgetBuffers(b *Budget, sessions int) error {
	for _, buf := range m.Program.Buffers {
		if buf.Class != program.Class_SCRATCH {
			continue
		}
		n, err := program.BufferBytes(buf, uint64(m.Chunk), uint64(m.outs()), uint64(m.Context))
		if err != nil {
			return fail("budget", err)
		}
		b.add(&b.Scratch, 1, n)
	}
	var err error
	if m.kept, err = m.packSession(m.limits.MaxBufferSize); err != nil {
		return fail("budget", err)
	}
	for _, a := range m.kept.list {
		b.Session += gpu.Reserved(a.size)
		b.add(b.of(a.class), sessions, a.size)
		if snapshotted(a.class) {
			b.Session += uint64(m.snapshots) * gpu.Reserved(a.size)
			b.add(&b.State, sessions*m.snapshots, a.size)
		}
	}
	return nil
}

// budgetTables counts what tells kernels of a step.
func (m *Model) budgetTables(b *Budget) {
	m.sizes = m.sizeTables()
	for _, n := range m.sizes.all() {
		b.add(&b.Table, 1, n)
	}
	if m.topn != nil {
		for _, x := range m.topn.buffers(m.outs()) {
			b.add(&b.Table, 1, x.size)
		}
	}
	if m.token != nil {
		for _, x := range m.token.buffers(m, m.limits.UniformAlign) {
			b.add(&b.Table, 1, x.size)
		}
	}
}

// budgetStaging counts what the CPU maps.
func (m *Model) budgetStaging(b *Budget, o Options) error {
	if m.token != nil {
		b.add(&b.Staging, len(m.token.flight.stretches), m.token.readbackBytes(m))
	}
	picks, logits := m.readbackSizes()
	b.add(&b.Staging, 1, picks)
	b.add(&b.Staging, 1, logits)
	b.add(&b.Staging, stagingBuffers(o.Readers), m.largestRecord())
	if o.Keep {
		b.add(&b.Staging, keepBuffers(o.Readers), m.largestRecord())
	}
	if o.Profile {
		b.add(&b.Staging, 2, gpu.TimerBytes(profileStamps))
	}
	if o.Timing && m.limits.Timestamps {
		b.add(&b.Staging, 2, gpu.TimerBytes(2*timedSubmits))
	}
	if o.Trace != nil {
		n, err := m.traceBytes()
		if err != nil {
			return err
		}
		b.add(&b.Staging, 1, n)
	}
	return nil
}

// budgetPool gives what is left of a budget to the banks; 0 holds every expert.
func (m *Model) budgetPool(b *Budget, budget uint64) ([]stream.Bank, error) {
	groups, fixed := m.Groups(), b.Total()
	all, err := m.divide(groups, math.MaxInt64)
	if err != nil {
		return nil, fail("expert pool", err)
	}
	for _, k := range all {
		missing := len(k.Layers)*k.Experts - k.Slots // where a layer's experts exceed a binding
		b.Whole += gpu.Reserved(uint64(k.Slots)*uint64(k.RecordBytes)) + uint64(missing)*uint64(k.RecordBytes)
	}
	banks := all
	if budget > 0 {
		banks, err = m.divide(groups, max(int64(budget)-int64(fixed), 0))
	}
	var small *stream.BudgetError
	if errors.As(err, &small) {
		return nil, &BudgetError{Have: budget, Fixed: fixed, Pool: uint64(small.Want)}
	}
	if err != nil {
		return nil, fail("expert pool", err)
	}
	for _, k := range banks {
		b.add(&b.Pool, 1, uint64(k.Slots)*uint64(k.RecordBytes))
	}
	return banks, nil
}

// divide makes banks that take at most so many bytes.
func (m *Model) divide(groups []stream.Group, bytes int64) ([]stream.Bank, error) {
	limit := int64(min(m.limits.MaxStorageBinding, m.limits.MaxBufferSize))
	return stream.DivideWith(groups, limit, bytes, reserved)
}

// reserved is gpu.Reserved in the pool's terms.
func reserved(bytes int64) int64 { return int64(gpu.Reserved(uint64(bytes))) }

// of is the sum that a session buffer's class counts to.
func (b *Budget) of(c program.Class) *uint64 {
	if c == program.Class_STATE {
		return &b.State
	}
	return &b.KV
}

// kindOf is a session buffer's kind in the GPU's account.
func kindOf(c program.Class) gpu.Kind {
	if c == program.Class_STATE {
		return gpu.State
	}
	return gpu.KV
}

// Groups are the MoE layers by record layout: layers whose records are laid out alike share banks.
func (m *Planned) Groups() []stream.Group {
	index := map[string]int{}
	var groups []stream.Group
	for _, r := range m.Records {
		key := layoutKey(r)
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, stream.Group{Experts: int(m.Plan.Model.Experts), Used: int(m.Plan.Model.TopK), RecordBytes: int64(r.Stride)})
		}
		groups[i].Layers = append(groups[i].Layers, int(r.Layer))
	}
	return groups
}

// layoutKey tells record layouts apart: types, rows and planes of every part.
func layoutKey(r *program.PlacedRecord) string {
	key := fmt.Sprint(r.Stride)
	for _, p := range r.Parts {
		for _, b := range p.Bands {
			key += fmt.Sprint(";", b.Type, b.Row0, b.Rows, b.Planes)
		}
	}
	return key
}

func alignUp(n, to uint64) uint64 { return (n + to - 1) / to * to }
