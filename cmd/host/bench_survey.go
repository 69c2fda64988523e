package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/core/stream"
	"github.com/sluicehost/sluice/sdk/program"
)

// benchSurvey is what is known of model and machine before the first row: sizes, and the records' source, open beside the
// loaded model's own.
type benchSurvey struct {
	path    string
	bytes   int64
	records []*program.PlacedRecord
	experts int // of a layer
	fixed   uint64
	whole   uint64 // bytes of the pool with every expert resident
	most    int    // slots that any budget gives
	largest uint64 // record
	planned *engine.Planned
	options engine.Options
	limits  gpu.Limits
	device  *gpu.Device // until measured
	source  diskSource
	reading *reading
}

// survey opens the model and asks its plugin.
func (c *benchCmd) survey(a *app) (_ *benchSurvey, err error) {
	s := &benchSurvey{}
	defer func() {
		if err != nil {
			_ = s.close() // the first error says more
		}
	}()
	if s.device, err = gpu.Open(a.ctx, gpu.Options{Adapter: c.Adapter}); err != nil {
		return nil, err
	}
	s.limits = s.device.Limits()
	m, err := c.modelFlags.open()
	if err != nil {
		return nil, err
	}
	fail := func(err error) error { return fmt.Errorf("%s: %w", m.path, errors.Join(err, m.Close())) }
	s.path, s.bytes, s.options = m.path, m.bytes(), c.engineFlags.options(engine.Options{Top: 1}, 0)
	process, err := a.pluginFor(m.File, m.path, c.registryFlags)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	s.planned, err = engine.Ask(a.ctx, store.Header(m.File), process, engine.DeviceBounds(s.limits), s.options)
	if err = errors.Join(err, process.Close()); err != nil {
		return nil, fail(err)
	}
	s.records, s.experts = s.planned.Records, int(s.planned.Plan.GetModel().GetExperts())
	for _, r := range s.records {
		s.largest = max(s.largest, r.GetStride())
	}
	if s.largest == 0 || s.experts == 0 {
		return nil, fail(errors.New("have no expert records, want some to stream"))
	}
	all, banks, err := s.predict(0)
	if err != nil {
		return nil, fail(err)
	}
	s.fixed, s.whole, s.most = all.Total()-all.Pool, max(all.Whole, all.Pool), slotsOf(banks)
	if s.source, err = m.source(s.planned.Plan, s.planned.Weights, s.records); err != nil {
		return nil, fail(err)
	}
	if packed, ok := s.source.(*store.Packed); ok {
		packed.Unchecked()
	}
	s.reading, err = c.prepare(a, s.source, uint64(s.bytes), availableMemory(os.DirFS("/proc")))
	return s, err
}

// predict says what a budget gives; 0 holds everything.
func (s *benchSurvey) predict(budget uint64) (engine.Budget, []stream.Bank, error) {
	o := s.options
	o.Budget = budget
	return s.planned.Predict(s.limits, o)
}

// slotsOf is how many slots banks have together.
func slotsOf(banks []stream.Bank) (n int) {
	for _, k := range banks {
		n += k.Slots
	}
	return n
}

// capped says why no budget gives every expert a slot; empty where one does.
func capped(most, experts int, binding uint64) string {
	if most >= experts {
		return ""
	}
	return fmt.Sprintf("at most %d of %s (%s) can have a slot, whatever the budget: a layer's slots lie in one buffer, of which the GPU binds %s at most",
		most, plural(experts, "expert"), percentText(float64(most)/float64(experts)), size(binding))
}

// bytesOfAll is the size of all records.
func (s *benchSurvey) bytesOfAll() (n uint64) {
	for _, r := range s.records {
		n += r.GetStride() * uint64(s.experts)
	}
	return n
}

// uploadTime is how long the copy to the GPU is measured.
const uploadTime = time.Second / 2

// leave measures the copy to the GPU, and gives the device up.
func (s *benchSurvey) leave(a *app) (rate float64, err error) {
	rate, err = s.device.CopyRate(a.ctx, s.largest, s.reading.readers, uploadTime)
	err = errors.Join(err, s.device.Close())
	s.device = nil
	return rate, err
}

func (s *benchSurvey) close() error {
	var errs []error
	if s.device != nil {
		errs = append(errs, s.device.Close())
	}
	if s.source != nil {
		errs = append(errs, s.source.Close())
	}
	return errors.Join(errs...)
}
