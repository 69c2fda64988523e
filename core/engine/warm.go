package engine

import (
	"context"

	"github.com/sluicehost/sluice/core/stream"
	"golang.org/x/sync/errgroup"
)

// Hot lists the experts that are on the GPU, those first that steps used most.
func (m *Model) Hot() []stream.Key { return m.experts.pool.Resident() }

// Slots is how many experts fit on the GPU at once.
func (m *Model) Slots() (n int) {
	for _, s := range m.experts.slots {
		n += s
	}
	return n
}

// Fill loads experts into slots that are free, in order, and then, where all fit, the rest. Steps may run meanwhile, and their
// reads go first. It ends when it is done, when ctx ends, and with the first error; experts that the model has not are left out.
func (m *Model) Fill(ctx context.Context, keys []stream.Key) error {
	if m.Budget.Pool >= m.Budget.Whole {
		for _, r := range m.Records {
			for e := range int(m.Plan.Model.Experts) {
				keys = append(keys, stream.Key{Layer: int(r.Layer), Expert: e})
			}
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fillReaders)
	for _, k := range keys {
		if _, ok := m.experts.index[k.Layer]; !ok || k.Expert < 0 || k.Expert >= int(m.Plan.Model.Experts) {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			_, err := m.experts.pool.Fill(ctx, k.Layer, k.Expert)
			return err
		})
	}
	return g.Wait()
}

// fillReaders is how many reads of Fill are under way at once.
const fillReaders = 3
