package stream

import "slices"

// load is one record on its way into a slot, which it owns until it ends.
type load struct {
	bank  *bank
	id    int
	slot  int
	guess bool  // no Ensure has asked for it
	keep  bool  // a Fill began it: no guess in the counters
	next  *load // in a queue

	// From its beginning on:
	transfer Transfer
	pieces   int
	taken    int   // pieces that a reader has begun
	left     int   // pieces that have not ended
	given    bool  // up: a guess that is not asked for any more, while pieces of it are being read
	err      error // of the first piece that failed

	waiting []*pinSet // of calls that wait for it
	filling *filling  // the same of Fill; nil for none
}

// filling is what a call of Fill waits for.
type filling struct {
	done chan struct{} // closed at the end; err is written before
	err  error
}

// newLoad returns a load, an ended one where there is one.
func (p *Pool) newLoad(b *bank, id, slot int, guess bool) *load {
	var l *load
	if last := len(p.spare) - 1; last >= 0 {
		l, p.spare = p.spare[last], p.spare[:last]
	} else {
		l = &load{}
	}
	*l = load{bank: b, id: id, slot: slot, guess: guess, waiting: l.waiting[:0]}
	return l
}

// reading is how many pieces readers are at.
func (l *load) reading() int { return l.taken - (l.pieces - l.left) }

// forget takes a call that waits no longer off the load.
func (l *load) forget(s *pinSet) {
	l.waiting = slices.DeleteFunc(l.waiting, func(x *pinSet) bool { return x == s })
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
	e := &b.entries[id]
	e.victim = 0
	if guess {
		e.displaced = false // nobody asked for it in time to know whether that did harm
	}
	if len(b.free) == 0 {
		victim := p.evict(b)
		if guess {
			b.entries[victim].displaced, e.victim = true, int32(victim+1)
		}
	}
	last := len(b.free) - 1
	l := p.newLoad(b, id, b.free[last], guess)
	b.free = b.free[:last]
	e.load = l
	if guess {
		p.guesses.push(l)
	} else {
		p.asked++
		p.queue.push(l)
	}
	p.wake(1)
	return l
}

// evict makes a slot of the bank free and returns whose it was.
func (p *Pool) evict(b *bank) (victim int) {
	victim = b.evict()
	c := &p.counters[b.counters+victim/b.experts]
	p.absent++
	c.Evictions++
	if e := &b.entries[victim]; e.guessed {
		e.guessed = false
		c.Wasted++
	}
	return victim
}
