package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/store"
)

// planned is the toy's plan for a GPU that is not there, with more experts, whose records have so many bytes.
func planned(t *testing.T, stride uint64) (*engine.Planned, gpu.Limits) {
	t.Helper()
	limits := gpu.Limits{
		MaxBufferSize: 1 << 33, MaxStorageBinding: 1 << 31, MaxStorageBuffersPerStage: 16, MaxGroups: 65535,
		MaxWorkgroupStorage: 32 << 10, StorageAlign: 256, UniformAlign: 256,
	}
	limits.MaxWorkgroup.Invocations = 1024
	m, err := engine.Ask(t.Context(), store.Header(toyFile(t, seedOf(t))), planner{}, engine.DeviceBounds(limits), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.Context, m.Plan.Model.Experts = 4096, 500
	for _, r := range m.Records {
		r.Stride = stride
	}
	return m, limits
}

// Where experts come and go, the chunk is as long as costs the pool next to nothing.
func TestChunkOfABudget(t *testing.T) {
	chosen := map[int]bool{}
	for _, stride := range []uint64{1 << 13, 1 << 15, 1 << 16, 1 << 18} {
		m, limits := planned(t, stride)
		predict := func(budget uint64, chunk int) (engine.Budget, error) {
			b, _, err := m.Predict(limits, engine.Options{Budget: budget, Chunk: chunk})
			return b, err
		}
		all, err := predict(0, 0)
		if err != nil || all.Chunk != 256 {
			t.Fatalf("with everything resident: have a chunk of %d, error %v, want 256", all.Chunk, err)
		}
		for share := uint64(2); share <= 6; share++ {
			budget := all.Total() - all.Pool + share*all.Pool/6
			have, err := predict(budget, 0)
			if err != nil {
				t.Fatal(err)
			}
			short, err := engineAt(m, limits, budget, 256)
			if err != nil {
				t.Fatal(err)
			}
			chosen[have.Chunk] = true
			if have.Total() > budget || short.Pool-have.Pool > short.Pool/16 {
				t.Errorf("stride %d, budget %d, chunk %d: have %d bytes and a pool of %d, with a chunk of 256 one of %d", stride, budget, have.Chunk, have.Total(), have.Pool, short.Pool)
			}
			if share == 6 && have.Chunk != 256 {
				t.Errorf("stride %d: everything fits: have a chunk of %d, want 256", stride, have.Chunk)
			}
			if longer, err := engineAt(m, limits, budget, 2*have.Chunk); share < 6 && have.Chunk < 2048 && err == nil && short.Pool-longer.Pool <= short.Pool/16 {
				t.Errorf("stride %d, budget %d: have a chunk of %d, want twice that: the pool would lose only %d of %d bytes", stride, budget, have.Chunk, short.Pool-longer.Pool, short.Pool)
			}
		}
		if b, err := predict(all.Total()-all.Pool/2, 300); err != nil || b.Chunk != 256 {
			t.Errorf("have a chunk of %d, error %v, want the plan's where one is asked for", b.Chunk, err)
		}
	}
	if len(chosen) < 3 || !chosen[2048] {
		t.Errorf("have chunks %v chosen, want more of them: the test tests less than it says", chosen)
	}
}

// engineAt predicts at a chunk.
func engineAt(m *engine.Planned, limits gpu.Limits, budget uint64, chunk int) (engine.Budget, error) {
	x := *m
	x.Chunk = chunk
	b, _, err := x.Predict(limits, engine.Options{Budget: budget, Chunk: chunk})
	return b, err
}
