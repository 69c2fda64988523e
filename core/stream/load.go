package stream

import (
	"errors"
	"fmt"
)

var errUnwanted = errors.New("no call waits for it any more")

// load is one record on its way into a slot, which it owns until it ends.
type load struct {
	bank  *bank
	id    int
	slot  int
	guess bool  // no Ensure has asked for it
	keep  bool  // a guess that DropGuesses leaves in the queue
	next  *load // in a queue
	// done is closed at the end; err is written before, under the lock.
	done chan struct{}
	err  error
}

// loadQueue holds the loads that no reader has begun, oldest first. Each owns a
// slot, so there are never more than slots.
type loadQueue struct {
	head, tail *load
}

func (q *loadQueue) push(l *load) {
	if q.head == nil {
		q.head = l
	} else {
		q.tail.next = l
	}
	q.tail = l
}

func (q *loadQueue) pop() *load {
	l := q.head
	if l != nil {
		q.head, l.next = l.next, nil
	}
	return l
}

// remove takes l out, where it is in the queue.
func (q *loadQueue) remove(l *load) bool {
	var last *load
	for x := q.head; x != nil; last, x = x, x.next {
		if x != l {
			continue
		}
		if last == nil {
			q.head = x.next
		} else {
			last.next = x.next
		}
		if q.tail == x {
			q.tail = last
		}
		x.next = nil
		return true
	}
	return false
}

// start gives an absent id a slot, evicting if need be, and queues its load: a guess behind all that calls wait for.
func (p *Pool) start(b *bank, id int, guess bool) *load {
	if len(b.free) == 0 {
		p.evict(b)
	}
	last := len(b.free) - 1
	l := &load{bank: b, id: id, slot: b.free[last], guess: guess, done: make(chan struct{})}
	b.free = b.free[:last]
	b.entries[id].load = l
	if guess {
		p.guesses.push(l)
	} else {
		p.queue.push(l)
	}
	if p.reading < p.readers {
		p.reading++
		p.running.Go(p.read)
	}
	return l
}

// evict makes a slot of the bank free.
func (p *Pool) evict(b *bank) {
	victim := b.evict()
	c := &p.counters[b.counters+victim/b.experts]
	p.absent++
	c.Evictions++
	if e := &b.entries[victim]; e.guessed {
		e.guessed = false
		c.Wasted++
	}
}

// nextLoad gives a reader its next load: what calls wait for first, and a guess only where a reader stays free of them, so that a
// read that a call waits for need not wait for one that may be in vain.
func (p *Pool) nextLoad() *load {
	if l := p.queue.pop(); l != nil {
		return l
	}
	if p.guessing < max(1, p.readers-1) {
		return p.guesses.pop()
	}
	return nil
}

// read is a reader: it works until the queue is empty.
func (p *Pool) read() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := p.nextLoad(); l != nil; l = p.nextLoad() {
		switch {
		case p.closed:
			p.finish(l, errClosed)
		case l.guess:
			p.guessing++
			err := p.load(l)
			p.guessing--
			p.finish(l, err)
		case l.bank.entries[l.id].pins == 0:
			p.finish(l, errUnwanted)
		default:
			p.finish(l, p.load(l))
		}
	}
	p.reading--
}

// load runs the loader without the lock.
func (p *Pool) load(l *load) error {
	p.mu.Unlock()
	defer p.mu.Lock()
	return p.loader.Load(p.ctx, l.bank.key(l.id), l.bank.index, l.slot)
}

// finish makes the record resident, or frees its slot and takes its pins back.
func (p *Pool) finish(l *load, err error) {
	b, e := l.bank, &l.bank.entries[l.id]
	c := &p.counters[b.counters+l.id/b.experts]
	e.load = nil
	if err != nil {
		l.err = fmt.Errorf("stream: %v: %w", b.key(l.id), err)
		e.pins = 0
		b.release(l.slot)
		c.Failed++
	} else {
		b.setSlot(l.id, l.slot)
		p.absent--
		e.guessed = l.guess && !l.keep
		if e.pins == 0 {
			b.offer(l.id)
		}
		c.Loads++
		c.Bytes += b.bytes
	}
	close(l.done)
}
