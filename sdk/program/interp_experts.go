package program

import (
	"fmt"
	"slices"
)

// absent is the residency of an expert without a slot.
const absent = 0xFFFFFFFF

// bank is the slots of one layer's experts. They are handed out in turn, from
// the last down, so that an expert's slot is seldom its id.
type bank struct {
	form  []byte
	owner []int // expert in each slot, -1 where there is none
	slot  []int // of each expert, -1 where it has none
	hand  int
}

func newBank(slots, experts int) *bank {
	return &bank{owner: slices.Repeat([]int{-1}, slots), slot: slices.Repeat([]int{-1}, experts)}
}

// ensure makes experts resident, at most as many as there are slots, by
// evicting others.
func (b *bank) ensure(experts []int, stride int, read func(expert int) ([]byte, error)) error {
	if b.form == nil {
		b.form = make([]byte, stride*len(b.owner))
	}
	for _, e := range experts {
		if b.slot[e] >= 0 {
			continue
		}
		for {
			b.hand = (b.hand + len(b.owner) - 1) % len(b.owner)
			if !slices.Contains(experts, b.owner[b.hand]) {
				break
			}
		}
		if old := b.owner[b.hand]; old >= 0 {
			b.slot[old] = -1
		}
		b.owner[b.hand] = -1
		record, err := read(e)
		if err != nil {
			return err
		}
		if len(record) != stride {
			return fmt.Errorf("have a record of %d bytes, want %d", len(record), stride)
		}
		copy(b.form[b.hand*stride:], record)
		b.owner[b.hand], b.slot[e] = e, b.hand
	}
	return nil
}

// experts runs an EXPERTS section: a tiled variant in as many waves as the
// slots make necessary, any other once with everything resident.
func (w *walk) experts(v *Variant, record int) error {
	pairs := w.pairs()
	var wanted []int // the experts picked, ascending
	for _, p := range pairs {
		if n := len(wanted); n == 0 || wanted[n-1] != p.expert {
			wanted = append(wanted, p.expert)
		}
	}
	if !v.Tiled() {
		if len(wanted) > w.o.Slots {
			return fmt.Errorf("program: layer %d: %d tokens pick %d experts, but there are %d slots and the variant for them is not tiled",
				w.section.Layer, w.step.T, len(wanted), w.o.Slots)
		}
		return w.runWave(v, record, wanted)
	}
	for i, p := range pairs {
		w.tables[Table_PAIRS].Values[i] = float64(p.pair)
	}
	for len(wanted) > 0 {
		n := min(w.o.Slots, len(wanted))
		w.step.G = w.tiles(pairs, wanted[:n])
		if err := w.runWave(v, record, wanted[:n]); err != nil {
			return err
		}
		wanted = wanted[n:]
		w.wave++
	}
	w.step.G = 0
	return nil
}

// runWave runs a variant with those experts resident.
func (w *walk) runWave(v *Variant, record int, experts []int) error {
	b := w.banks[record]
	err := b.ensure(experts, int(w.records[record].Stride), func(e int) ([]byte, error) { return w.src.Expert(record, e) })
	if err != nil {
		return fmt.Errorf("program: experts of layer %d: %w", w.section.Layer, err)
	}
	for e, slot := range b.slot {
		w.tables[Table_RESIDENCY].Values[e] = absent
		if slot >= 0 {
			w.tables[Table_RESIDENCY].Values[e] = float64(slot)
		}
	}
	return w.run(v, &Memory{Elem: Elem_U32, Form: b.form})
}

// pair is one pick of one token: row·top_k + pick, as PAIRS holds it.
type pair struct{ expert, pair int }

// pairs is the step's picks, sorted by expert and then by row.
func (w *walk) pairs() []pair {
	var out []pair
	for i, e := range w.tables[Table_PICKS].Values[:w.step.T*w.plan.Model.TopK] {
		out = append(out, pair{int(e), i})
	}
	slices.SortStableFunc(out, func(a, b pair) int { return a.expert - b.expert })
	return out
}

// tiles writes TILES for a wave of experts and returns how many there are.
func (w *walk) tiles(pairs []pair, wave []int) uint32 {
	table, most := w.tables[Table_TILES].Values, int(w.prog.TileRows)
	n := uint32(0)
	for i := 0; i < len(pairs); {
		j := i
		for j < len(pairs) && pairs[j].expert == pairs[i].expert && j-i < most {
			j++
		}
		if slices.Contains(wave, pairs[i].expert) {
			copy(table[4*n:], []float64{float64(pairs[i].expert), float64(i), float64(j - i), 0})
			n++
		}
		i = j
	}
	return n
}
