// Package engine runs a model: it asks a planner (an architecture plugin) for a
// plan and a program, puts the weights where sdk/place says, streams experts
// through a core/stream pool, and replays the program token by token. After Load
// the planner is never asked again. It samples nothing and knows no text.
//
// Start at Load, then Model.NewSession and Session.Feed. docs/architecture.md walks through a token.
package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/core/stream"
	"github.com/sluicehost/sluice/sdk/program"
)

// Planner is an architecture plugin, in a process or not.
type Planner interface {
	Plan(ctx context.Context, h *program.Header) (*program.Plan, error)
	Encode(ctx context.Context, req *program.EncodeRequest) (*program.Program, error)
}

// Opener makes the Source once weights and records are placed.
type Opener func(p *program.Plan, weights []*program.Placed, records []*program.PlacedRecord) (store.Source, error)

// Options shape a loaded model.
type Options struct {
	Budget    uint64                       // bytes of every GPU buffer together, as reserved (gpu.Reserved); 0 holds everything
	Context   int                          // tokens a session can hold; 0 is min(4096, the file's)
	Chunk     int                          // tokens of a prompt that go through the model at once; 0 is 256, and more where experts are read from disk again and again
	KVF32     bool                         // KV caches in f32 rather than f16
	Sessions  int                          // that the budget has room for; 0 is 1
	Snapshots int                          // of recurrent state that each session keeps, see Session.Snapshot
	Top       int                          // read back only the best Top tokens of each row, at most MaxTop; 0 is every logit
	Suppress  []int32                      // tokens whose logits count as -Inf
	Profile   bool                         // time every dispatch by itself, see Model.Profile
	Timing    bool                         // take the GPU's time of each submit, where the device can: Stats.GPU
	Trace     *Trace                       // sees values as steps compute them; may be nil
	Routed    Routed                       // is told the experts that are picked; may be nil
	Wait      bool                         // for each layer's routing, rather than resolve it on the GPU
	Lookahead int                          // MoE layers ahead whose experts are guessed and read: 0 chooses by what pays, below 0 is none
	Readers   int                          // expert records read at once; 0 is DefaultReaders
	Keep      bool                         // give records that leave the GPU back to the source, a Keeper
	Policy    func(keys int) stream.Policy // makes each bank's eviction policy; nil is the pool's default
	Progress  func(done, total uint64)     // of the dense upload, in bytes; may be nil

	binding uint64 // the most that is bound of a bank, for tests; 0 is what the device allows
}

// Routed is told which experts the tokens of a step at positions pos, pos + 1, … picked in an MoE layer (numbered as in the
// model): picks holds as many as are used for each token, in pick order. guesses is what the layer foretold of the picks of the
// [Model.Guesses] MoE layers after it, the nearest first; empty in steps that make none. Both belong to the engine again when it returns.
type Routed func(layer, pos int, picks, guesses []int)

// Model is a loaded model.
type Model struct {
	*Planned
	Budget    Budget // what was predicted
	Compile   time.Duration
	device    *gpu.Device
	limits    gpu.Limits // the device's
	source    store.Source
	code      *code
	arenas    []*gpu.Buffer // of dense weights
	dense     [][]gpu.Range // by weight and band
	scratch   map[uint32]*gpu.Buffer
	kept      sessionArenas // by each session
	sizes     tableBytes
	tables    *tables
	shared    [][]*gpu.BindGroup // by section variant and dispatch; nil where a session buffer is bound
	experts   *experts
	ropes     []ropeTable
	snapshots int // per session
	sessions  sessions
	suppress  []int32
	profile   *profile
	timing    *timing // nil for none
	trace     *tracer
	routed    Routed
	foretold  []int  // for routed
	topn      *topn  // nil where whole rows are read back
	token     *token // nil where each layer's routing is waited for
	runner    runner
	stats     Stats
	busy      chan struct{} // one step at a time: it owns the scratch
}

// Load plans a model, places and uploads its dense weights, and compiles its kernels. The
// header is the file's, maxima come from the device. Errors of the planner and the
// validator come back as they are.
func Load(ctx context.Context, dev *gpu.Device, h *program.Header, p Planner, open Opener, o Options) (*Model, error) {
	if o.Readers <= 0 {
		o.Readers = DefaultReaders()
	}
	device := DeviceBounds(dev.Limits())
	planned, err := Ask(ctx, h, p, device, o)
	if err != nil {
		return nil, err
	}
	if err := planned.checkLoops(device.Limits); err != nil {
		return nil, err
	}
	limits := dev.Limits()
	if o.binding > 0 {
		limits.MaxStorageBinding = o.binding
	}
	planned = planned.stretched(limits, o)
	m := &Model{Planned: planned, device: dev, limits: limits, snapshots: o.Snapshots, routed: o.Routed, busy: make(chan struct{}, 1)}
	m.sessions.budget, m.sessions.planned = o.Budget, max(1, o.Sessions)
	mask, err := suppressMask(o.Suppress, m.Plan.Model.Vocab)
	if err != nil {
		return nil, err
	}
	m.suppress = o.Suppress
	budget, banks, err := m.budget(o)
	if err != nil {
		return nil, err
	}
	m.Budget = budget
	if m.source, err = open(m.Plan, m.Weights, m.Records); err != nil {
		return nil, err
	}
	if err := m.allocate(ctx, banks, mask, o); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// allocate makes everything on the GPU, the largest last.
func (m *Model) allocate(ctx context.Context, banks []stream.Bank, suppress []byte, o Options) error {
	start := time.Now()
	var err error
	if m.code, err = m.compile(); err != nil {
		return err
	}
	m.Compile = time.Since(start)
	if m.ropes, err = m.readRopes(); err != nil {
		return err
	}
	if err := m.makeScratch(); err != nil {
		return err
	}
	if m.tables, err = m.makeTables(); err != nil {
		return err
	}
	if m.topn != nil {
		if err := m.topn.make(m, suppress); err != nil {
			return err
		}
	}
	if err := m.upload(ctx, o.Progress); err != nil {
		return err
	}
	if m.experts, err = m.makeExperts(banks, o); err != nil {
		return err
	}
	if err := m.makeRunner(); err != nil {
		return err
	}
	if m.token != nil {
		if err := m.token.make(m); err != nil {
			return err
		}
	}
	if o.Profile {
		if err := m.makeProfile(ctx); err != nil {
			return err
		}
	}
	if o.Timing && m.limits.Timestamps {
		if err := m.makeTiming(ctx); err != nil {
			return err
		}
	}
	if o.Trace != nil {
		if err := m.makeTracer(o.Trace); err != nil {
			return err
		}
	}
	m.shared, err = m.bindAll(nil)
	return err
}

// Close frees what the model holds on the GPU. Sessions must not be used afterwards.
func (m *Model) Close() error {
	if m.experts != nil {
		m.experts.close()
	}
	for _, b := range m.arenas {
		b.Release()
	}
	for _, b := range m.scratch {
		b.Release()
	}
	for _, r := range []*gpu.Readback{m.runner.picks, m.runner.logits} {
		if r != nil {
			r.Release()
		}
	}
	if m.tables != nil {
		m.tables.release()
	}
	if m.topn != nil {
		m.topn.release()
	}
	if m.profile != nil && m.profile.timer != nil {
		m.profile.timer.Release()
	}
	m.timing.release()
	m.trace.release()
	m.token.release()
	for _, groups := range m.shared {
		for _, g := range groups {
			if g != nil {
				g.Release()
			}
		}
	}
	if m.code != nil {
		m.code.release()
	}
	return m.source.Close()
}

// Counters appends what happened to each MoE layer's experts so far.
func (m *Model) Counters(dst []stream.Counters) []stream.Counters {
	return m.experts.pool.Counters(dst)
}

// Resident reports whether every expert is on the GPU.
func (m *Model) Resident() bool { return m.experts.pool.Whole() }

// BytesRead is how much of the model was read from disk so far.
func (m *Model) BytesRead() int64 { return m.source.BytesRead() }

// fail prefixes an error with what the engine was doing.
func fail(doing string, err error) error { return fmt.Errorf("engine: %s: %w", doing, err) }
