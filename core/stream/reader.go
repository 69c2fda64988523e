package stream

import (
	"errors"
	"fmt"
)

var errUnwanted = errors.New("no call waits for it any more")

// wake gets readers to work for n loads or pieces more.
func (p *Pool) wake(n int) {
	for ; n > 0; n-- {
		switch {
		case p.idle > 0:
			p.idle-- // here, so that the next call does not count on the same one
			p.work.Signal()
		case p.alive < p.readers:
			p.alive++
			p.running.Go(p.read)
		default:
			return
		}
	}
}

// read is a reader: it works until the pool closes.
func (p *Pool) read() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		l := p.nextLoad()
		switch {
		case l != nil:
			guess := l.guess // an Ensure may ask for it meanwhile
			if guess {
				p.guessing++
			}
			p.working++
			p.advance(l)
			p.working--
			if guess {
				p.guessing--
			}
		case p.closed:
			p.alive--
			return
		default:
			p.idle++
			p.work.Wait()
		}
	}
}

// AtLimit is how many readers most disks are at their limit with (docs/streaming.md): more of them share it.
const AtLimit = 4

// nextLoad gives a reader its next work: what calls wait for first. A guess that may be in vain must not hold that up: so while
// calls wait guesses are read only where the disk has something left, and one reader stays free of them. What is begun comes
// first: it is there sooner, and copied while the next is read.
func (p *Pool) nextLoad() *load {
	if l := p.begun(false); l != nil {
		return l
	}
	if l := p.queue.pop(); l != nil {
		return l
	}
	if (p.asked > 0 && p.working >= AtLimit || p.guessing >= max(1, p.readers-1)) && !p.closed {
		return nil
	}
	if l := p.begun(true); l != nil {
		return l
	}
	return p.guesses.pop()
}

// begun is the first load that has pieces no reader has taken.
func (p *Pool) begun(guess bool) *load {
	for _, l := range p.open {
		if l.guess == guess {
			return l
		}
	}
	return nil
}

// advance begins a load or reads its next piece, and ends it after the last.
func (p *Pool) advance(l *load) {
	if l.pieces == 0 && !p.begin(l) {
		return
	}
	piece := l.taken
	l.taken++
	if l.taken == l.pieces {
		p.shut(l)
	}
	err := errClosed
	if !p.closed {
		p.mu.Unlock()
		err = l.transfer.Read(p.ctx, piece)
		p.mu.Lock()
	}
	l.left--
	if err != nil && l.err == nil {
		l.err = err
		l.left -= l.pieces - l.taken // those that no reader has taken won't be read
		if l.taken < l.pieces {
			l.taken = l.pieces
			p.shut(l)
		}
	}
	if l.given && l.reading() == 0 {
		p.abandon(l)
		return
	}
	if l.left > 0 {
		return
	}
	p.mu.Unlock()
	err = l.transfer.End(l.err)
	p.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	p.finish(l, l.err)
}

// begin begins a load, and reports whether it has pieces to read.
func (p *Pool) begin(l *load) bool {
	switch {
	case p.closed:
		p.finish(l, errClosed)
		return false
	case !l.guess && l.filling == nil && l.bank.entries[l.id].pins == 0:
		p.finish(l, errUnwanted)
		return false
	}
	p.mu.Unlock()
	t, pieces, err := p.loader.Begin(p.ctx, l.bank.key(l.id), l.bank.index, l.slot)
	p.mu.Lock()
	if err != nil {
		p.finish(l, err)
		return false
	}
	l.transfer, l.pieces, l.left = t, max(pieces, 1), max(pieces, 1)
	if !l.guess {
		p.counters[l.bank.counters+l.id/l.bank.experts].Pieces += int64(l.pieces)
	}
	if l.pieces > 1 {
		p.open = append(p.open, l)
		p.wake(l.pieces - 1)
	}
	return true
}

// shut takes a load off those that have pieces to take.
func (p *Pool) shut(l *load) {
	for i, x := range p.open {
		if x == l {
			p.open = append(p.open[:i], p.open[i+1:]...)
			return
		}
	}
}

// finish makes the record resident, or frees its slot and takes its pins back.
func (p *Pool) finish(l *load, err error) {
	b, e := l.bank, &l.bank.entries[l.id]
	c := &p.counters[b.counters+l.id/b.experts]
	e.load = nil
	if !l.guess {
		p.answered()
	}
	if err != nil {
		if len(l.waiting) > 0 || l.filling != nil { // guesses are given up by the hundred
			err = fmt.Errorf("stream: %v: %w", b.key(l.id), err)
		}
		e.pins = 0
		b.release(l.slot)
		c.Failed++
	} else {
		e.slot = int32(l.slot)
		p.absent--
		e.guessed = l.guess && !l.keep
		if e.pins == 0 {
			b.offer(l.id)
		}
		c.Loads++
		c.Bytes += b.bytes
	}
	for _, s := range l.waiting {
		s.ended(l, err)
	}
	if l.filling != nil {
		l.filling.err = err
		close(l.filling.done)
	}
	p.spare = append(p.spare, l)
}

// answered takes note that a load that calls waited for has ended. Behind the last one guesses are read.
func (p *Pool) answered() {
	if p.asked--; p.asked == 0 && (p.guesses.head != nil || p.begun(true) != nil) {
		p.wake(p.readers - 1)
	}
}
