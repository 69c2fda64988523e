package main

import (
	"bytes"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	for name, c := range map[string]struct {
		terminal bool
		want     string
	}{
		"terminal": {true, "\r\x1b[Kloading: 50% of 2.00 kB\r\x1b[K"},
		"file":     {false, "loading: 50% of 2.00 kB\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			p := &progress{w: &b, doing: "loading", terminal: c.terminal, next: time.Now().Add(time.Hour)}
			p.update(500, 2000) // too early
			p.next = time.Now()
			p.update(1000, 2000)
			p.update(1500, 2000) // too soon
			p.next = time.Now()
			p.update(0, 0) // of nothing
			p.done()
			if b.String() != c.want {
				t.Errorf("have %q, want %q", &b, c.want)
			}
		})
	}
}

func TestProgressQuick(t *testing.T) {
	var b bytes.Buffer
	a := &app{err: &b}
	p := a.progress("loading")
	p.update(1, 2)
	p.update(2, 2)
	if p.done(); b.Len() > 0 {
		t.Errorf("have %q, want nothing for what is quick", &b)
	}
}
