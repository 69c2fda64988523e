package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/place"
	"github.com/sluicehost/sluice/sdk/program"
)

type benchDiskCmd struct {
	modelFlags
	registryFlags
	Seconds float64 `default:"30" placeholder:"S" help:"Time to read in all (default 30)."`
	JSON    bool    `name:"json" help:"As JSON."`
}

// Help is the command's long help.
func (benchDiskCmd) Help() string {
	return `Reads expert records as a model's misses do, each at another place, 1 to 64 at once: by way of the page cache, from which the file is dropped before where the system allows it, and past it (direct). From the GGUF a record is a read for each of its tensors and their repacking; from a store (--store) it is one read. Without a store its reads are measured on the GGUF, with nothing repacked. Says what to run with. It needs no GPU.`
}

// depths are the numbers of readers that are measured.
var depths = []int{1, 2, 4, 8, 16, 32, 64}

// diskTarget is a source under measurement.
type diskTarget interface {
	recordReader
	Prepare(store.Reading) error
	PageCache() store.PageCache
	Close() error
}

// diskBench is a model's records, and where they are read from.
type diskBench struct {
	records []*program.PlacedRecord
	experts int
	sources []diskSourceNamed
	most    time.Duration // for each measurement
	shown   *progress
	report  diskReport
}

type diskSourceNamed struct {
	name string
	diskTarget
}

// Names of sources.
const (
	fromGGUF  = "gguf"
	fromStore = "store"
	likeStore = "as a store" // what a store's reads would take, were there one on the GGUF's disk
)

// Run measures.
func (c *benchDiskCmd) Run(a *app) (err error) {
	if !(c.Seconds > 0 && c.Seconds <= 3600) {
		return fmt.Errorf("--seconds: have %v, want more than 0 and at most 3600", c.Seconds)
	}
	b := &diskBench{shown: a.progress("measuring")}
	defer func() {
		for _, s := range b.sources {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := c.open(a, b); err != nil {
		return err
	}
	b.most = time.Duration(c.Seconds * float64(time.Second) / float64(2*len(depths)*len(b.sources)))
	err = b.run(a.ctx)
	b.shown.done()
	if err != nil {
		return err
	}
	b.report.advise(c.modelFlags)
	if c.JSON {
		return a.printJSON(b.report)
	}
	return b.report.print(a.out)
}

// open asks the plugin for the records and opens the sources.
func (c *benchDiskCmd) open(a *app, b *diskBench) error {
	m, err := c.modelFlags.open()
	if err != nil {
		return err
	}
	fail := func(err error) error { return errors.Join(err, m.Close()) }
	plan, err := a.planOf(m.File, m.path, c.registryFlags)
	if err != nil {
		return fail(err)
	}
	h := store.Header(m.File)
	weights, err := place.Weights(h, plan, 0)
	if err != nil {
		return fail(err)
	}
	if b.records, err = place.Records(h, plan, 0); err != nil {
		return fail(err)
	}
	b.experts = int(plan.GetModel().GetExperts())
	if len(b.records) == 0 || b.experts == 0 {
		return fail(fmt.Errorf("%s: have no expert records, want some to read", m.path))
	}
	b.report.describe(m, b.records, b.experts)
	s, err := m.source(plan, weights, b.records)
	if err != nil {
		return fail(err)
	}
	if packed, ok := s.(*store.Packed); ok {
		packed.Unchecked()
		b.sources = append(b.sources, diskSourceNamed{fromStore, packed})
		if c.Model == "" || c.Store == "" {
			return nil
		}
		f, err := gguf.Open(c.Model)
		if err != nil {
			return err
		}
		if s, err = store.NewGGUF(f, plan, weights, b.records); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	b.sources = append(b.sources, diskSourceNamed{fromGGUF, s.(*store.GGUF)})
	if m.packed != nil {
		return nil
	}
	f, err := gguf.Open(c.Model)
	if err != nil {
		return err
	}
	b.sources = append(b.sources, diskSourceNamed{likeStore, store.NewProbe(f, b.records, b.experts)})
	return nil
}

// run measures everything, one after the other.
func (b *diskBench) run(ctx context.Context) error {
	for _, s := range b.sources {
		for _, direct := range []bool{false, true} {
			err := s.Prepare(store.Reading{Readers: slices.Max(depths), Direct: direct})
			if errors.Is(err, store.ErrNoDirect) {
				b.report.note(fmt.Sprintf("%s: %v", s.name, err))
				continue
			}
			if err != nil {
				return err
			}
			for _, n := range depths {
				row, err := b.measure(ctx, s, direct, n)
				if err != nil {
					return err
				}
				b.report.Rows = append(b.report.Rows, row)
			}
		}
	}
	return nil
}

// measure reads records with n readers, see readRandomly.
func (b *diskBench) measure(ctx context.Context, s diskSourceNamed, direct bool, n int) (diskRow, error) {
	row := diskRow{Source: s.name, Direct: direct, Readers: n}
	if now := time.Now(); !now.Before(b.shown.next) {
		b.shown.show(now, fmt.Sprintf("measuring: %s, %s, %s", s.name, row.mode(), plural(n, "reader")))
	}
	if left, err := s.PageCache().Uncache(); err != nil {
		b.report.note(fmt.Sprintf("%s: can't drop it from the page cache: %v", s.name, err))
	} else {
		row.Cached = &left
	}
	x, err := readRandomly(ctx, s, b.records, b.experts, n, b.most)
	row.fill(x.took, x.bytes, x.wall)
	return row, err
}

// recordReader gives records.
type recordReader interface {
	ReadRecord(ctx context.Context, layer, expert int, dst []byte) error
}

// randomReads are records that were read, each at another place.
type randomReads struct {
	took  []float64 // seconds, of each
	bytes int64     // as the GPU takes them
	wall  time.Duration
}

// readRandomly reads records with n readers until the time is over or each was read once.
func readRandomly(ctx context.Context, s recordReader, records []*program.PlacedRecord, experts, n int, most time.Duration) (randomReads, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	order := rand.New(rand.NewPCG(benchSeed, uint64(n))).Perm(len(records) * experts)
	var next, bytes atomic.Int64
	took := make([][]float64, n)
	var all sync.WaitGroup
	start := time.Now()
	for i := range n {
		all.Go(func() {
			var buf []byte
			for time.Since(start) < most || len(took[i]) == 0 {
				at := next.Add(1) - 1
				if at >= int64(len(order)) {
					return
				}
				r := records[order[at]/experts]
				if uint64(len(buf)) < r.GetStride() {
					buf = make([]byte, r.GetStride())
				}
				begun := time.Now()
				if err := s.ReadRecord(ctx, int(r.GetLayer()), order[at]%experts, buf[:r.GetStride()]); err != nil {
					cancel(err)
					return
				}
				took[i] = append(took[i], time.Since(begun).Seconds())
				bytes.Add(int64(r.GetStride()))
			}
		})
	}
	all.Wait()
	return randomReads{slices.Concat(took...), bytes.Load(), time.Since(start)}, context.Cause(ctx)
}
