package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/core/stream"
	"github.com/sluicehost/sluice/sdk/program"
)

// tiling sorts a step's (row, pick) pairs by expert, so that each expert's rows are
// computed together, in tiles.
type tiling struct {
	first   []int  // by expert, where its pairs start; one more entry at the end
	experts []int  // picked at least once, ascending
	pairs   []byte // the PAIRS table
	tiles   []byte // the TILES table of a wave
}

// sort arranges the picks of a step, given row by row.
func (t *tiling) sort(picks []int, experts int) {
	t.first = append(t.first[:0], make([]int, experts+1)...)
	for _, e := range picks {
		t.first[e+1]++
	}
	t.experts = t.experts[:0]
	for e := range experts {
		if t.first[e+1] > 0 {
			t.experts = append(t.experts, e)
		}
		t.first[e+1] += t.first[e]
	}
	t.pairs = append(t.pairs[:0], make([]byte, 4*len(picks))...)
	next := append([]int(nil), t.first...)
	for i, e := range picks {
		binary.LittleEndian.PutUint32(t.pairs[4*next[e]:], uint32(i))
		next[e]++
	}
}

// cut fills the TILES table for the experts of one wave and returns how many tiles there are.
func (t *tiling) cut(wave []int, rows int) int {
	t.tiles = t.tiles[:0]
	for _, e := range wave {
		for at := t.first[e]; at < t.first[e+1]; at += rows {
			for _, v := range []int{e, at, min(rows, t.first[e+1]-at), 0} {
				t.tiles = binary.LittleEndian.AppendUint32(t.tiles, uint32(v))
			}
		}
	}
	return len(t.tiles) / tileBytes
}

// shares is in how many parts a chunk computes what it waited for: the more, the less is left to compute when the last record
// is there, but for a submit each, and small grids.
const (
	shares     = 4
	leastShare = 2 // records
)

// expertsSection is a layer's tiled experts section and what runs it.
type expertsSection struct {
	m     *Model
	s     *Session
	layer int
	v     *program.Variant
	flat  int // the variant's number among all
	step  program.StepUniform
}

// run runs the section in waves, each of the experts that are there: while records are read, the GPU computes with those that
// came before.
func (x expertsSection) run(ctx context.Context) error {
	m, r := x.m, &x.m.runner
	r.tiles.sort(r.asked, int(m.Plan.Model.Experts))
	if err := m.device.Write(m.tables.pairs, 0, r.tiles.pairs); err != nil {
		return err
	}
	slots := m.experts.slots[m.experts.bank[x.layer]]
	if len(r.tiles.experts) <= slots {
		return x.asTheyCome(ctx, r.tiles.experts)
	}
	slots = max(1, slots/2) // the other half is for the next wave, which is read meanwhile
	for rest := r.tiles.experts; len(rest) > 0; {
		wave := rest[:min(slots, len(rest))]
		if rest = rest[len(wave):]; r.holding { // an earlier wave reads the tables that this one rewrites
			if err := x.submit(); err != nil {
				return err
			}
		}
		pins, err := m.hold(ctx, x.layer, wave)
		if err != nil {
			return err
		}
		m.experts.pool.Guess(x.layer, rest, 0) // the next wave's are read while this one computes
		if err := m.await(ctx, pins, 0); err != nil {
			return err
		}
		if err := x.record(ctx, wave); err != nil {
			return err
		}
	}
	return nil
}

// asTheyCome runs experts that the bank has slots for: first those that are there, then the others as they come.
func (x expertsSection) asTheyCome(ctx context.Context, experts []int) error {
	pins, err := x.m.request(ctx, x.layer, experts)
	if err != nil {
		return err
	}
	if err := x.waves(ctx, pins, experts); err != nil {
		pins.Release()
		return err
	}
	x.m.runner.held, x.m.runner.holding = pins, true
	return nil
}

// waves runs requested experts, all but the last wave of them submitted.
func (x expertsSection) waves(ctx context.Context, pins stream.Pins, experts []int) error {
	m, r := x.m, &x.m.runner
	if m.trace != nil || m.profile != nil { // which look at each dispatch: as few as there can be
		if err := m.await(ctx, pins, 0); err != nil {
			return err
		}
	}
	r.wave, r.coming = r.wave[:0], r.coming[:0]
	for i := range experts {
		r.coming = append(r.coming, i)
	}
	r.arrived(pins, experts)
	share := max(leastShare, (len(r.coming)+shares-1)/shares)
	for {
		if len(r.wave) > 0 {
			if err := x.record(ctx, r.wave); err != nil || len(r.coming) == 0 {
				return err
			}
			if err := x.submit(); err != nil {
				return err
			}
		}
		if err := m.await(ctx, pins, max(0, len(r.coming)-share)); err != nil {
			return err
		}
		r.wave = r.wave[:0]
		r.arrived(pins, experts)
	}
}

// arrived moves experts whose records are there from those that are coming to the wave.
func (r *runner) arrived(pins stream.Pins, experts []int) {
	r.coming = slices.DeleteFunc(r.coming, func(i int) bool {
		there := pins.There(i)
		if there {
			r.wave = append(r.wave, experts[i])
		}
		return there
	})
}

// submit sends a wave, of several.
func (x expertsSection) submit() error {
	x.m.stats.Waves++
	return x.m.submit()
}

// record records the section for the experts of one wave.
func (x expertsSection) record(ctx context.Context, wave []int) error {
	m, tiles := x.m, &x.m.runner.tiles
	x.step.G = uint32(tiles.cut(wave, int(m.Program.TileRows)))
	if err := m.device.Write(m.tables.tiles, 0, tiles.tiles); err != nil {
		return err
	}
	if err := m.writeStep(x.step); err != nil {
		return err
	}
	return m.record(ctx, x.s, x.v, x.flat, x.step)
}

// checkPicks refuses expert ids that no layer has: what a router gives that computed NaNs.
func (m *Model) checkPicks(layer int) error {
	for _, e := range m.runner.asked {
		if e < 0 || e >= int(m.Plan.Model.Experts) {
			return fmt.Errorf("engine: layer %d: its router picked expert %d of %d: the model computed nothing usable", layer, e, m.Plan.Model.Experts)
		}
	}
	return nil
}
