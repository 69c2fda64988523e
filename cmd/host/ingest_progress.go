package main

import (
	"fmt"
	"math"
	"time"
)

// transfer is progress with a rate and the time that is left.
type transfer struct {
	*progress
	begun bool
	last  uint64 // bytes that were done
	at    time.Time
	rate  float64 // bytes a second, lately
}

func (a *app) transfer(doing string) *transfer { return &transfer{progress: a.progress(doing)} }

// lately is about how much of the past the rate is of.
const lately = 10 * time.Second

// update shows done of total bytes, if it is time to. What was done before the first call
// does not count for the rate.
func (t *transfer) update(done, total uint64) {
	now := time.Now()
	if t.begun && now.Before(t.next) || total == 0 {
		return
	}
	if !t.begun {
		t.begun, t.last, t.at = true, done, now
		return
	}
	past := now.Sub(t.at)
	rate := float64(done-min(t.last, done)) / past.Seconds()
	weight := 1 - math.Exp(-past.Seconds()/lately.Seconds())
	if t.rate == 0 {
		weight = 1
	}
	t.rate += weight * (rate - t.rate)
	t.last, t.at = done, now
	t.show(now, fmt.Sprintf("%s: %s of %s, %s", t.doing, doneText(done, total), size(total), pace(t.rate, total-min(done, total))))
}

// pace is a rate and how long what is left takes at it.
func pace(rate float64, left uint64) string {
	text := size(uint64(rate)) + "/s"
	if s := float64(left) / rate; s < 1000*3600 { // not for a rate of 0
		text += ", " + (time.Duration(s+1) * time.Second).String() + " left"
	}
	return text
}
