package main

import (
	"fmt"
	"io"
	"time"
)

// progress shows how far a slow thing is: on a terminal as one line that is drawn anew,
// elsewhere as a plain line now and then. What is quick shows nothing.
type progress struct {
	w        io.Writer
	doing    string
	terminal bool
	next     time.Time
	drawn    bool
}

// The time until the first line, and between lines.
const (
	redraw     = 200 * time.Millisecond
	plainLines = 10 * time.Second
)

func (a *app) progress(doing string) *progress {
	p := &progress{w: a.err, doing: doing, terminal: isTerminal(a.err)}
	p.next = time.Now().Add(p.every())
	return p
}

func (p *progress) every() time.Duration {
	if p.terminal {
		return redraw
	}
	return plainLines
}

// update shows done of total bytes, if it is time to.
func (p *progress) update(done, total uint64) {
	now := time.Now()
	if now.Before(p.next) || total == 0 {
		return
	}
	p.show(now, fmt.Sprintf("%s: %s of %s", p.doing, doneText(done, total), size(total)))
}

// show shows a text in place of the one before.
func (p *progress) show(now time.Time, text string) {
	p.next = now.Add(p.every())
	if !p.terminal {
		fmt.Fprintln(p.w, text)
		return
	}
	p.drawn = true
	fmt.Fprint(p.w, clearLine, text)
}

// done takes the line away.
func (p *progress) done() {
	if p.drawn {
		fmt.Fprint(p.w, clearLine)
	}
}
