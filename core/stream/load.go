package stream

import (
	"errors"
	"fmt"
)

var errUnwanted = errors.New("no call waits for it any more")

// load is one record on its way into a slot, which it owns until it ends.
type load struct {
	bank *bank
	id   int
	slot int
	next *load // in the queue
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

// start gives an absent id a slot, evicting if need be, and queues its load.
func (p *Pool) start(b *bank, id int) {
	if len(b.free) == 0 {
		victim := b.evict()
		p.counters[b.counters+victim/b.experts].Evictions++
	}
	last := len(b.free) - 1
	l := &load{bank: b, id: id, slot: b.free[last], done: make(chan struct{})}
	b.free = b.free[:last]
	b.entries[id].load = l
	p.queue.push(l)
	if p.reading < p.readers {
		p.reading++
		p.running.Go(p.read)
	}
}

// read is a reader: it works until the queue is empty.
func (p *Pool) read() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := p.queue.pop(); l != nil; l = p.queue.pop() {
		switch {
		case p.closed:
			p.finish(l, errClosed)
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
		if e.pins == 0 {
			b.offer(l.id)
		}
		c.Loads++
		c.Bytes += b.bytes
	}
	close(l.done)
}
