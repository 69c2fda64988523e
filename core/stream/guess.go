package stream

import "context"

// Guess starts loading experts of a layer that a later step may ask for, and returns how many loads that were. Guesses are read
// nearest first, with what reads that an Ensure waits for leave of the disk; all but one reader at most work on them. A guess that an Ensure asks for
// becomes a read like others.
//
// It takes a free slot, or one that can be evicted, only where spare more could be had: what the next Ensure may need.
// It never waits. Unknown layers and experts are left out.
func (p *Pool) Guess(layer int, experts []int, spare int) (started int) {
	at, err := p.find(layer, nil)
	if err != nil {
		return 0
	}
	b := at.bank
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range experts {
		if x < 0 || x >= b.experts || p.closed || len(b.free)+b.evictable <= spare {
			continue
		}
		e := &b.entries[at.first+x]
		switch {
		case e.load != nil:
			p.resume(e.load)
		case e.slot >= 0:
			b.policy.Touch(at.first + x) // expected soon: not the next to go
		default:
			p.start(b, at.first+x, true)
			p.counters[at.counters].Guessed++
			started++
		}
	}
	return started
}

// DropGuesses gives up the guesses that no reader has begun, and of the layers up to one, which have picked by now, the begun
// ones too: of those no further piece is read. What a Fill waits for, or waited, stays.
func (p *Pool) DropGuesses(picked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kept loadQueue
	for l := p.guesses.pop(); l != nil; l = p.guesses.pop() {
		if l.filling != nil {
			kept.push(l)
			continue
		}
		p.abandon(l)
	}
	p.guesses = kept
	for l := p.stale(picked); l != nil; l = p.stale(picked) {
		p.shut(l)
		if l.given = true; l.reading() == 0 {
			p.abandon(l)
		}
	}
}

// stale is a guess at one of the layers up to one that has pieces no reader has taken.
func (p *Pool) stale(picked int) *load {
	for _, l := range p.open {
		if l.guess && l.filling == nil && l.bank.key(l.id).Layer <= picked {
			return l
		}
	}
	return nil
}

// abandon ends a guess that was given up, begun or not, once no piece of it is being read.
func (p *Pool) abandon(l *load) {
	if l.transfer != nil {
		_ = l.transfer.End(errUnwanted)
	}
	p.counters[l.bank.counters+l.id/l.bank.experts].Wasted++
	p.finish(l, errUnwanted)
}

// resume goes on with a guess that was given up, if something wants it before it has ended. Where a piece has failed meanwhile
// none is left to read.
func (p *Pool) resume(l *load) {
	if !l.given {
		return
	}
	l.given = false
	if l.taken < l.pieces {
		p.open = append(p.open, l)
		p.wake(l.pieces - l.taken)
	}
}

// Fill loads an expert into a free slot as a guess, waits for it, and reports whether it is resident then: false means that
// its bank has no free slot left, so that something else would have to go.
func (p *Pool) Fill(ctx context.Context, layer, expert int) (bool, error) {
	at, err := p.find(layer, []int{expert})
	if err != nil {
		return false, err
	}
	f, there := p.fill(at, at.first+expert)
	if f == nil {
		return there, nil
	}
	select {
	case <-f.done:
		return f.err == nil, f.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// fill returns what to wait for; nil for nothing.
func (p *Pool) fill(at place, id int) (f *filling, there bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, e := at.bank, &at.bank.entries[id]
	l := e.load
	switch {
	case l != nil:
		p.resume(l)
	case e.slot >= 0:
		return nil, true
	case p.closed || len(b.free) == 0:
		return nil, false
	default:
		l = p.start(b, id, true)
		l.keep = true
		p.counters[at.counters].Filled++
	}
	if l.filling == nil {
		l.filling = &filling{done: make(chan struct{})}
	}
	return l.filling, false
}

// wanted counts that an expert is needed: a guess of it was useful, a guess that took its slot did harm.
func (p *Pool) wanted(b *bank, id int, c *Counters) {
	e := &b.entries[id]
	e.uses++
	if e.displaced {
		e.displaced = false
		c.Harmed++
	}
	if e.victim > 0 && (e.guessed || e.load != nil && e.load.guess) { // this read would have taken that slot, too
		b.entries[e.victim-1].displaced = false
		e.victim = 0
	}
	if e.guessed {
		e.guessed = false
		c.Useful++
	}
}

// asks has a call wait for an expert's load, if it is a guess: one still in the queue goes to the front.
func (p *Pool) asks(b *bank, id int, c *Counters) {
	l := b.entries[id].load
	if l == nil || !l.guess {
		return
	}
	l.guess = false
	p.asked++
	c.Pieces += int64(l.pieces) // none yet where it has not begun
	if !l.keep {
		c.Useful++
	}
	p.resume(l)
	if p.guesses.remove(l) {
		p.queue.push(l)
	}
	p.wake(max(1, l.pieces-l.taken)) // readers that must not guess may work at it now
}
