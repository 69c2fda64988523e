package engine

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
)

// timedSubmits is how many submits between two waits are timed: more than there are, but for prompts in many waves.
const timedSubmits = 64

// timing takes the GPU's time of every submit: a stamp before, one after.
type timing struct {
	timer  *gpu.Timer
	before gpu.Commands
	after  gpu.Commands
	n      int // submits since the last wait that are timed
	stamps [2 * timedSubmits]time.Duration
}

func (m *Model) makeTiming(ctx context.Context) error {
	t, err := m.device.NewTimer(ctx, "timing", 2*timedSubmits)
	m.timing = &timing{timer: t}
	return err
}

// noCommands is an empty list.
var noCommands gpu.Commands

// around are the stamps of a submit, before and behind what it is about.
func (t *timing) around() (before, behind *gpu.Commands) {
	if t == nil || t.n == timedSubmits {
		return &noCommands, &noCommands
	}
	t.before.Reset()
	t.after.Reset()
	t.start(&t.before, t.n)
	t.stop(&t.after, t.n)
	return &t.before, &t.after
}

// submitted counts a submit with its stamps: those of one that failed were never taken, and can't be read.
func (t *timing) submitted() {
	if t != nil && t.n < timedSubmits {
		t.n++
	}
}

// start records the stamp before the i-th submit since the last wait, and stop that after it.
func (t *timing) start(c *gpu.Commands, i int) {
	if t != nil {
		c.Timestamp(t.timer, 2*i)
	}
}

func (t *timing) stop(c *gpu.Commands, i int) {
	if t != nil {
		c.Timestamp(t.timer, 2*i+1)
		c.ResolveTimer(t.timer, 2*i+2)
	}
}

// only says that a list with the stamps of the first submit is submitted: those of others that none has waited for are lost.
func (t *timing) only() {
	if t != nil {
		t.n = 1
	}
}

// waited adds up what was timed, all of which is done, to a sum.
func (t *timing) waited(ctx context.Context, sum *time.Duration) error {
	if t == nil || t.n == 0 {
		return nil
	}
	stamps := t.stamps[:2*t.n]
	t.n = 0
	if err := t.timer.Read(ctx, stamps); err != nil {
		return err
	}
	for i := 0; i < len(stamps); i += 2 {
		*sum += stamps[i+1] - stamps[i]
	}
	return nil
}

func (t *timing) release() {
	if t != nil && t.timer != nil {
		t.timer.Release()
	}
}
