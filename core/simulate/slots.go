package simulate

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/sluicehost/sluice/core/stream"
)

// slots is a bank as core/stream keeps it, in simulated time.
type slots struct {
	first     []int // id of expert 0, by layer of the header, all banks'
	policy    stream.Policy
	size      int // slots
	record    int64
	free      int
	evictable int
	entries   []slot // by id
}

// slot is what is known of a key.
type slot struct {
	resident bool
	guessed  bool // resident because of a guess, and not asked for since
	pins     int
	read     *read // while it is loaded
	// displaced says that a guess took its slot, and victim is the id and 1 of the key whose slot this one's guess took; 0 for none.
	displaced bool
	victim    int
}

// pool is all banks, and the disk behind them.
type pool struct {
	disk
	banks  []*slots // by layer of the header
	all    []*slots
	run    *Run
	waited float64 // seconds in ensure
}

func (d *Demand) newPool(banks []stream.Bank, policy func(keys int) stream.Policy, m Machine, run *Run) *pool {
	p := &pool{disk: disk{m: m, rng: rand.New(rand.NewPCG(m.Seed, 1))}, banks: make([]*slots, len(d.Header.Layers)), run: run}
	p.done, p.dropped = p.arrived, p.gone
	first := make([]int, len(d.Header.Layers))
	for _, b := range banks {
		served := d.serve(b.Layers)
		s := &slots{first: first, policy: policy(served.keys), size: b.Slots, free: b.Slots, record: b.RecordBytes, entries: make([]slot, served.keys)}
		for _, l := range served.layers {
			p.banks[l.layer], first[l.layer] = s, l.first
		}
		p.all = append(p.all, s)
	}
	return p
}

// has reports whether all experts of a layer are resident.
func (p *pool) has(layer int, experts []uint16) bool {
	b := p.banks[layer]
	for _, e := range experts {
		if !b.entries[b.first[layer]+int(e)].resident {
			return false
		}
	}
	return true
}

// used books experts that a token found.
func (p *pool) used(layer int, experts []uint16) {
	b := p.banks[layer]
	for _, e := range experts {
		id := b.first[layer] + int(e)
		b.policy.Touch(id)
		p.wanted(b, &b.entries[id])
		p.run.Hits++
	}
}

// wanted notes that a key is asked for, whoever loads it.
func (p *pool) wanted(b *slots, s *slot) {
	if s.displaced {
		p.run.Harmed++
		s.displaced = false
	}
	if s.guessed {
		s.guessed = false
		p.run.Useful++
		p.settle(b, s)
	}
	if r := s.read; r != nil && r.guess {
		if r.given { // it is gone on with
			r.given = false
			p.guesses = append(p.guesses, r)
		}
		r.guess = false
		if r.left > 0 { // else it is on its way up
			p.asked++
		}
		p.run.Useful++
		p.settle(b, s)
		if i := slices.Index(p.guesses, r); i >= 0 {
			p.guesses = slices.Delete(p.guesses, i, i+1)
			p.demand = append(p.demand, r)
		}
	}
}

// settle forgets whose slot a guess took that was asked for: the read that was asked for would have taken it.
func (p *pool) settle(b *slots, s *slot) {
	if s.victim > 0 {
		b.entries[s.victim-1].displaced = false
		s.victim = 0
	}
}

// start loads a key into a slot, which it takes from another where none is free.
func (p *pool) start(b *slots, id int, guess bool) {
	b.entries[id].victim = 0
	if guess {
		b.entries[id].displaced = false
	}
	if b.free == 0 {
		victim := b.policy.Evict()
		s := &b.entries[victim]
		if guess {
			s.displaced, b.entries[id].victim = true, victim+1
		}
		b.evictable--
		b.free++
		if s.resident = false; s.guessed {
			s.guessed = false
			p.run.Wasted++
		}
	}
	b.free--
	r := &read{bank: b, id: id, bytes: b.record, left: p.m.Parts, guess: guess}
	b.entries[id].read = r
	if guess {
		p.run.Guessed++
		p.guesses = append(p.guesses, r)
	} else {
		p.asked++
		p.demand = append(p.demand, r)
	}
}

// arrived makes a record resident.
func (p *pool) arrived(r *read) {
	s := &r.bank.entries[r.id]
	s.read, s.resident, s.guessed = nil, true, r.guess
	if s.pins == 0 {
		r.bank.policy.Push(r.id)
		r.bank.evictable++
	}
}

// guess begins to load what a layer may pick.
func (p *pool) guess(layer int, experts []uint16) {
	b := p.banks[layer]
	for _, e := range experts {
		id := b.first[layer] + int(e)
		if b.free+b.evictable <= len(experts) {
			return
		}
		switch s := &b.entries[id]; {
		case s.read != nil:
		case s.resident:
			b.policy.Touch(id)
		default:
			p.start(b, id, true)
			s.read.layer = layer
		}
	}
}

// drop gives up guesses that no reader has begun, and of the layers up to one, which have picked, those that are begun, too.
func (p *pool) drop(picked int) {
	p.guesses = slices.DeleteFunc(p.guesses, func(r *read) bool {
		if r.begun > 0 && r.layer > picked {
			return false
		}
		if r.given = true; r.reading(p.m) == 0 {
			p.dropped(r)
		}
		return true
	})
}

// gone takes note that no part is read any more of a guess that was given up.
func (p *pool) gone(r *read) {
	p.bytes += r.bytes * int64(r.begun) / int64(p.m.Parts)
	r.bank.entries[r.id].read = nil
	r.bank.free++
	p.run.Wasted++
}

// ensure pins experts, loads what is missing, calls meanwhile, and lets time pass until all are resident.
func (p *pool) ensure(layer int, experts []uint16, meanwhile func()) {
	b, first, from := p.banks[layer], p.banks[layer].first[layer], p.now
	defer func() { p.waited += p.now - from }()
	for !b.room(first, experts) && p.advance(math.Inf(1)) {
	}
	for _, e := range experts {
		id := first + int(e)
		s := &b.entries[id]
		if s.pins++; s.resident {
			b.policy.Remove(id)
			b.evictable--
		}
		b.policy.Touch(id)
		switch {
		case s.resident:
			p.run.Hits++
		case s.read != nil:
			p.run.Late++
		default:
			p.run.Misses++
		}
		p.wanted(b, s)
	}
	for _, e := range experts {
		if s := &b.entries[first+int(e)]; !s.resident && s.read == nil {
			p.start(b, first+int(e), false)
		}
	}
	meanwhile()
	for i := 0; i < len(experts); { // what is there is pinned, and stays
		if b.entries[first+int(experts[i])].resident {
			i++
		} else if !p.advance(math.Inf(1)) {
			break
		}
	}
	for _, e := range experts {
		b.entries[first+int(e)].pins--
		b.policy.Push(first + int(e))
		b.evictable++
	}
}

// room reports whether what is missing can have slots.
func (b *slots) room(first int, experts []uint16) bool {
	missing, idle := 0, 0
	for _, e := range experts {
		switch s := b.entries[first+int(e)]; {
		case s.resident:
			idle++
		case s.read == nil:
			missing++
		}
	}
	return missing <= b.free+b.evictable-idle
}
