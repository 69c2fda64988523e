package main

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/plugin"
	"github.com/sluicehost/sluice/core/registry"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/program"
)

// contract is a model whose every allocation is counted.
type contract struct {
	*testing.T
	app     *app
	model   string
	device  *gpu.Device
	process *plugin.Process
	vocab   int32
}

func newContract(t *testing.T, model string) *contract {
	t.Helper()
	x := &contract{T: t, model: model, app: &app{ctx: t.Context(), err: io.Discard, log: hclog.NewNullLogger()}}
	f, err := modelFlags{Model: model}.open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x.process, err = x.app.pluginFor(f.File, model, registryFlags{registryPath: registryPath{Registry: filepath.Join(install(t), registry.FileName)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.process.Close() })
	if x.device, err = gpu.Open(t.Context(), gpu.Options{Adapter: gputest.Open(t).Info().Name}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.device.Close() })
	return x
}

// load loads the model with all that takes memory of the GPU, and two sessions planned.
func (x *contract) load(budget uint64) (*engine.Model, error) {
	f, err := modelFlags{Model: x.model}.open()
	if err != nil {
		x.Fatal(err)
	}
	held := f
	open := func(p *program.Plan, weights []*program.Placed, records []*program.PlacedRecord) (store.Source, error) {
		s, err := f.source(p, weights, records)
		if err != nil {
			return nil, err
		}
		held = nil
		r := readingFlags{Readers: 2, Direct: "off", RAMCache: 1 << 20}
		out, _, err := r.reading(x.app, s, f.bytes(), records, int(p.GetModel().GetExperts()))
		return out, err
	}
	m, err := engine.Load(x.Context(), x.device, store.Header(f.File), x.process, open, engine.Options{
		Budget: budget, Sessions: 2, Snapshots: 1, Chunk: 16, Context: 64, Top: 1, Lookahead: 2, Readers: 2, Keep: true,
	})
	if held != nil {
		_ = held.Close()
	}
	return m, err
}

// run loads the model within a budget, does everything with it, and returns the tokens made and the bytes predicted.
func (x *contract) run(budget uint64) (made []int32, want uint64) {
	x.Helper()
	x.device.SetBudget(budget)
	before := x.device.Memory()
	var allocations, sum uint64 // nothing is freed until the end
	x.device.SetAllocationHook(func(kind gpu.Kind, label string, size uint64) error {
		allocations++
		if sum += size; budget > 0 && sum > budget {
			x.Errorf("%s buffer %s brings the sum to %d, want at most %d", kind, label, sum, budget)
		}
		return nil
	})
	m, err := x.load(budget)
	if err != nil {
		x.Fatalf("budget %d: %v", budget, err)
	}
	x.vocab = int32(m.Plan.Model.Vocab)
	made = x.use(m)
	if err := m.Close(); err != nil {
		x.Error(err)
	}
	after := x.device.Memory()
	for kind, n := range m.Budget.ByKind() { // budgets ascend, so a peak is the last one's
		if after.Peak[kind] != n {
			x.Errorf("budget %d: %s: have a peak of %d bytes, predicted %d", budget, kind, after.Peak[kind], n)
		}
	}
	want = m.Budget.Total()
	if after.PeakTotal != want || budget > 0 && want > budget || sum != want || after.Created-before.Created != allocations || allocations == 0 {
		x.Errorf("budget %d: have a peak of %d bytes, %d in %d allocations, predicted %d", budget, after.PeakTotal, sum, allocations, want)
	}
	if after.Total != 0 || after.Requested != 0 || after.Created != after.Freed {
		x.Errorf("budget %d: have %+v left", budget, after)
	}
	return made, want
}

// use feeds prompts and tokens to two sessions in turn, rewinds, starts anew, and fills the slots as a warm start does.
func (x *contract) use(m *engine.Model) (made []int32) {
	check := func(err error) {
		x.Helper()
		if err != nil {
			x.Fatal(err)
		}
	}
	a, err := m.NewSession()
	check(err)
	defer a.Close()
	b, err := m.NewSession()
	check(err)
	defer b.Close()
	if budget := x.device.Memory().Budget; budget > 0 && budget-m.Budget.Total() < m.Budget.Session {
		if _, err := m.NewSession(); !errors.Is(err, gpu.ErrBudget) || !strings.Contains(err.Error(), "session 3") {
			x.Errorf("a third session: have error %v, want ErrBudget", err)
		}
	}
	emit := func(_ int, l *engine.Logits) error { made = append(made, l.IDs[0]); return nil }
	next := func(s *engine.Session) { check(s.Feed(x.Context(), made[len(made)-1:], 1, emit)) }
	prompt := make([]int32, 30)
	for i := range prompt {
		prompt[i] = int32(7+31*i) % x.vocab
	}
	check(a.Feed(x.Context(), prompt[:20], 1, emit))
	check(a.Snapshot())
	check(b.Feed(x.Context(), prompt[5:], 1, emit))
	check(m.Fill(x.Context(), m.Hot()))
	for range 3 {
		next(a)
		next(b)
	}
	_, err = a.Continue(x.Context(), prompt, 1, emit) // back to the snapshot, and on
	check(err)
	check(b.Reset())
	check(b.Feed(x.Context(), prompt[:9], 1, emit))
	next(b)
	return made
}

// TestBudgetIsAContract: whatever a model does, no allocation brings the sum over the budget, the most of each kind is what was
// predicted, and all of it goes away; the smallest budget works and one byte less does not.
func TestBudgetIsAContract(t *testing.T) {
	t.Parallel()
	needGPU(t)
	for i, arch := range goldenArchitectures {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			x := newContract(t, "../../testdata/models/tiny-"+arch+".gguf")
			refused := func(budget uint64) uint64 {
				t.Helper()
				_, err := x.load(budget)
				small := (*engine.BudgetError)(nil)
				if !errors.As(err, &small) || x.device.Memory().Created != 0 {
					t.Fatalf("budget %d: have %v, %d buffers made", budget, err, x.device.Memory().Created)
				}
				return small.Want()
			}
			least := refused(1)
			if want := refused(least - 1); want != least {
				t.Errorf("a byte below the smallest budget, %d: have %d wanted", least, want)
			}
			want, bytes := x.run(least)
			larger := []uint64{least + least/8, 0}[i%2]
			made, more := x.run(larger)
			if !slices.Equal(made, want) || more < bytes {
				t.Errorf("budget %d: have tokens %v, %d bytes, want %v, at least %d", larger, made, more, want, bytes)
			}
		})
	}
}
