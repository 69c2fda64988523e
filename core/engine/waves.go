package engine

import (
	"context"
	"encoding/binary"
	"fmt"

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

// runWaves runs a layer's tiled experts section: as many experts at once as the bank has slots.
func (m *Model) runWaves(ctx context.Context, s *Session, layer int, v *program.Variant, flat int, step program.StepUniform) error {
	r := &m.runner
	r.tiles.sort(r.asked, int(m.Plan.Model.Experts))
	if err := m.device.Write(m.tables.pairs, 0, r.tiles.pairs); err != nil {
		return err
	}
	slots := m.experts.slots[m.experts.bank[layer]]
	if len(r.tiles.experts) > slots {
		slots = max(1, slots/2) // the other half is for the next wave, which is read meanwhile
	}
	for rest := r.tiles.experts; len(rest) > 0; {
		wave := rest[:min(slots, len(rest))]
		if rest = rest[len(wave):]; r.holding { // an earlier wave reads the tables that this one rewrites
			if err := m.submit(); err != nil {
				return err
			}
			m.stats.Waves++
		}
		ahead := func() { m.experts.pool.Guess(layer, rest, 0) } // the next wave's are read while this one computes
		if err := m.ensure(ctx, layer, wave, ahead); err != nil {
			return err
		}
		step.G = uint32(r.tiles.cut(wave, int(m.Program.TileRows)))
		if err := m.device.Write(m.tables.tiles, 0, r.tiles.tiles); err != nil {
			return err
		}
		if err := m.writeStep(step); err != nil {
			return err
		}
		if err := m.record(ctx, s, v, flat, step); err != nil {
			return err
		}
	}
	return nil
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
