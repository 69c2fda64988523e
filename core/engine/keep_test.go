package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/program"
)

// keeper compares what leaves the GPU with what its source reads.
type keeper struct {
	store.Source
	mu      sync.Mutex
	wanted  int
	kept    map[[2]int]int
	strange []string
}

func (k *keeper) Wants(layer, expert int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wanted++
	return expert != 0 // expert 0 is never wanted
}

func (k *keeper) Keep(layer, expert int, data []byte) {
	want := make([]byte, len(data))
	err := k.ReadRecord(context.Background(), layer, expert, want)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[[2]int{layer, expert}]++
	if err != nil || expert == 0 || !bytes.Equal(data, want) {
		k.strange = append(k.strange, fmt.Sprintf("layer %d expert %d: %v", layer, expert, err))
	}
}

// What leaves the GPU comes back to the source as it was read, within the budget, and the logits stay.
func TestKeep(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 40)
	whole := load(t, dev, f, engine.Options{})
	want := oneByOne(t, whole, tokens)
	k := &keeper{kept: map[[2]int]int{}}
	open := func(p *program.Plan, w []*program.Placed, r []*program.PlacedRecord) (store.Source, error) {
		var err error
		k.Source, err = opener(f)(p, w, r)
		return k, err
	}
	o := engine.Options{KVF32: true, Keep: true, Budget: smallestBudget(whole)}
	before := dev.Memory()
	m, err := engine.Load(t.Context(), dev, store.Header(f), planner{}, open, o)
	if small := (*engine.BudgetError)(nil); errors.As(err, &small) {
		o.Budget = small.Want()
		m, err = engine.Load(t.Context(), dev, store.Header(f), planner{}, open, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if have := dev.Memory().Total - before.Total; have != m.Budget.Total() {
		t.Errorf("have %d bytes on the GPU, predicted %d", have, m.Budget.Total())
	}
	for i := range tokens { // one by one, so that experts come and go
		if have := feed(t, s, tokens[i:i+1]); !slices.Equal(have[0], want[i]) {
			t.Fatalf("token %d: have other logits", i)
		}
	}
	s.Close()
	if err := m.Close(); err != nil { // ends what is under way
		t.Error(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted == 0 || len(k.kept) == 0 || len(k.strange) > 0 {
		t.Errorf("have %d asked for, kept %v, wrong ones %v", k.wanted, k.kept, k.strange)
	}
	if _, err := engine.Load(t.Context(), dev, store.Header(f), planner{}, opener(f), o); err == nil {
		t.Error("a source that keeps nothing: have no error")
	}
	if have := dev.Memory(); have.Total != before.Total {
		t.Errorf("have %d bytes left on the GPU, want %d", have.Total, before.Total)
	}
}
