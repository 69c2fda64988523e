package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// benchTable is the command's result for several budgets or states of the page cache. Sizes are in bytes.
type benchTable struct {
	Model       string        `json:"model"`
	Device      string        `json:"device"`
	File        int64         `json:"file_bytes"`
	Experts     int           `json:"experts"` // of all layers
	ExpertBytes uint64        `json:"expert_bytes"`
	Largest     uint64        `json:"record_bytes"` // the largest
	Fixed       uint64        `json:"fixed_bytes"`  // of the GPU, beside the experts
	Prompt      int           `json:"prompt_tokens"`
	Decode      int           `json:"decode_tokens"`
	Runs        int           `json:"runs_after_first"`
	Readers     int           `json:"readers"`
	Direct      bool          `json:"direct"`
	Why         string        `json:"direct_why"`
	Limits      machineLimits `json:"limits"`
	Rows        []benchRow    `json:"rows"`
	Notes       []string      `json:"notes"`
	Interrupted bool          `json:"interrupted"`

	mu     sync.Mutex // held while the above changes
	capped bool       // no budget makes every expert resident
}

// errNoRow says that nothing could be measured.
var errNoRow = errors.New("no budget could be measured")

// runTable measures a row for each budget and state. Ctrl-C prints those that are done at once, since a step that has begun
// may take longer than the host may after it.
func (c *benchCmd) runTable(a *app, out *outputFile) error {
	t := &benchTable{Prompt: c.Prompt, Decode: c.Decode, Runs: c.Runs, Rows: []benchRow{}, Notes: []string{}, Limits: machineLimits{Caches: []benchCache{}}}
	done := make(chan error, 1)
	go func() { done <- c.fill(a, t) }()
	select {
	case err := <-done:
		if err != nil && (!t.measured() && !errors.Is(err, errNoRow)) {
			return err
		}
		return errors.Join(t.show(c, a, out), err)
	case <-a.ctx.Done():
	}
	var err error
	if t.measured() {
		err = t.show(c, a, out)
	}
	return errors.Join(err, <-done)
}

// fill measures.
func (c *benchCmd) fill(a *app, t *benchTable) (err error) {
	s, err := c.survey(a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	states, err := c.states(s.reading)
	if err != nil {
		return err
	}
	plans, err := c.plans(a, s)
	if err != nil {
		return err
	}
	t.describe(s)
	if err := c.fits(s.planned); err != nil {
		return err
	}
	if text := capped(s.most, t.Experts, s.limits.MaxStorageBinding); text != "" {
		t.note("OF ALL: " + text)
	}
	if c.Cache != cacheAsIs && c.Cache != cacheCold && s.reading.direct {
		t.note("experts are read past the page cache (" + s.reading.why + "), so they always come from the disk: no row is warm")
	}
	for i, p := range plans {
		if p.tooSmall != nil {
			t.add(a, benchRow{Budget: p.text, Error: p.why(s), order: i})
		}
	}
	if !slices.ContainsFunc(plans, func(p benchPlan) bool { return p.tooSmall == nil }) {
		return errNoRow
	}
	upload, err := s.leave(a)
	if err != nil {
		return err
	}
	t.setUpload(upload)
	for _, cache := range states {
		if err := c.fillState(a, t, s, s.source.PageCache(), cache, plans); err != nil {
			return err
		}
	}
	if !t.measured() {
		return errNoRow
	}
	return nil
}

// fillState measures the budgets with the page cache in one state.
func (c *benchCmd) fillState(a *app, t *benchTable, s *benchSurvey, pages pageCache, cache string, plans []benchPlan) error {
	x := benchCache{Cache: cache}
	if err := x.begin(a.ctx, pages, s.reading.direct, a.progress("reading the file into the page cache")); err != nil {
		if a.ctx.Err() != nil || c.Cache != cacheBoth {
			return fmt.Errorf("--cache %s: %w", cache, err)
		}
		t.add(a, benchRow{Budget: "all", Cache: cache, Error: err.Error(), order: -1})
		return nil
	}
	// With the page cache as it is, the measurement itself would change it: then it comes last.
	if cache != cacheAsIs {
		if err := x.measure(a.ctx, s); err != nil {
			return err
		}
	}
	t.setCache(x)
	if text := x.note(); text != "" {
		t.note(text)
	}
	for i, p := range plans {
		if p.tooSmall != nil {
			continue
		}
		row, err := c.measureRow(a, s, p, &x, pages.Drop)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", p.text, cache, err)
		}
		row.order = i
		t.add(a, row)
	}
	if x.drop {
		if err := pages.Drop(); err != nil {
			return err
		}
	}
	if !s.reading.direct {
		x.After = cachedNow(pages)
	}
	if cache == cacheAsIs {
		if err := x.measure(a.ctx, s); err != nil {
			return err
		}
	}
	t.setCache(x)
	return nil
}

func (t *benchTable) describe(s *benchSurvey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Model, t.Device, t.File, t.Largest = s.path, s.device.Info().String(), s.bytes, s.largest
	t.Experts, t.ExpertBytes, t.Fixed = len(s.records)*s.experts, s.bytesOfAll(), s.fixed
	t.capped = s.most < t.Experts
	t.Readers, t.Direct, t.Why = s.reading.readers, s.reading.direct, s.reading.why
}

func (t *benchTable) note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Notes = append(t.Notes, text)
}

func (t *benchTable) setUpload(rate float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Limits.Upload = rate
}

// setCache puts a state's limits in, in place of what was known of it.
func (t *benchTable) setCache(x benchCache) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.Limits.Caches, func(y benchCache) bool { return y.Cache == x.Cache })
	if i < 0 {
		t.Limits.Caches = append(t.Limits.Caches, x)
		return
	}
	t.Limits.Caches[i] = x
}

// add adds a row, and says so.
func (t *benchTable) add(a *app, r benchRow) {
	t.mu.Lock()
	t.Rows = append(t.Rows, r)
	t.mu.Unlock()
	fmt.Fprintf(a.err, "host: %s\n", r.line())
}

// measured says whether any row is.
func (t *benchTable) measured() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.Rows, benchRow.measured)
}

// show computes what takes all rows, and prints.
func (t *benchTable) show(c *benchCmd, a *app, out *outputFile) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Interrupted = context.Cause(a.ctx) != nil
	t.finish()
	return c.show(a, out, t, func(w io.Writer) error { return t.print(w) })
}

// finish sorts the rows by budget and sets the limits beside them.
func (t *benchTable) finish() {
	slices.SortStableFunc(t.Rows, func(a, b benchRow) int { return a.order - b.order })
	for _, r := range t.Rows {
		x := counted(r.Runs)
		if !r.measured() || r.Slots < t.Experts || t.Decode == 0 {
			continue
		}
		best := medianRun(x, benchRun.decode)
		if each := (best.Decode - best.DecodeWait) / float64(t.Decode); t.Limits.Token == 0 || each < t.Limits.Token {
			t.Limits.Token = each
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if !r.measured() || r.Decode == 0 {
			continue
		}
		for _, x := range t.Limits.Caches {
			if x.Cache == r.Cache {
				r.Limit = t.Limits.speed(x, r.Read*r.Wanted, r.FromRAM*r.Wanted)
			}
		}
		if r.Limit.Bound > 0 {
			r.Efficient = r.Decode / r.Limit.Bound
		}
	}
	if text := t.unknown(); text != "" {
		t.Notes = append(t.Notes, text)
	}
}

// unknown says why rows have no limit; empty where all have one.
func (t *benchTable) unknown() string {
	if !slices.ContainsFunc(t.Rows, func(r benchRow) bool { return r.Decode > 0 && r.Limit.Bound == 0 }) {
		return ""
	}
	const what = "LIMIT, SERIAL, OF LIMIT and LIMITED BY are unknown "
	switch {
	case t.Limits.Token > 0:
		return what + "where the rate of the disk or of the upload is: see the limits"
	case t.capped:
		return what + "without a row that has every expert resident:\nonly that tells what a token takes on the GPU, and no budget gives it here"
	}
	return what + "without a row that has every expert resident:\nonly that tells what a token takes on the GPU; --budgets with max has one"
}
