package simulate

import (
	"time"

	"github.com/sluicehost/sluice/core/lookahead"
)

// Machine is what a simulated computer does, beside its Limits. Every record is read in Parts equal parts, each by one of
// Readers readers. Full of them at work have the disk at the rate of the limit: fewer have a share each, and more share it. A
// part that has begun is read to its end. Records go up to the GPU one after the other.
type Machine struct {
	Limits
	Readers int           // at least 1
	Full    int           // Readers where 0: a page cache, which gives more to each further reader; a disk is at its limit with few
	Parts   int           // at least 1
	Stop    time.Duration // what a submit and the wait for its result cost beyond the work
	Guess   time.Duration // of the GPU: one layer's guess at another's picks
	Noise   float64       // standard deviation of a token's time on the GPU and a record's of reading, as a share
	Seed    uint64
}

// Typical is a machine of which no more than the limits is known: a record's parts are read by all readers at once, a wait for
// the GPU takes what it takes on an H200, and so does a guess, two small dispatches.
func Typical(l Limits, readers int) Machine {
	return Machine{Limits: l, Readers: readers, Parts: readers, Stop: 70 * time.Microsecond, Guess: 6 * time.Microsecond, Noise: 0.1, Seed: 1}
}

// Ahead chooses how many MoE layers ahead guesses are read, as core/lookahead.Controller does.
type Ahead interface {
	// Depth is how many for the token that begins.
	Depth() int
	// Token tells how it went.
	Token(lookahead.Token)
}

// Fixed is always that depth.
type Fixed int

// Depth is f.
func (f Fixed) Depth() int { return int(f) }

// Token forgets.
func (Fixed) Token(lookahead.Token) {}

// Run is what a simulated run of a trace took, over the tokens that count.
type Run struct {
	Tokens  int           `json:"tokens"`
	Time    time.Duration `json:"nanoseconds"`
	Rate    float64       `json:"tokens_per_second"`
	Hits    int64         `json:"hits"` // of the experts asked for: in their slots, on their way, neither
	Late    int64         `json:"late"`
	Misses  int64         `json:"misses"`
	Guessed int64         `json:"guessed"` // records that guesses began to load
	Useful  int64         `json:"useful"`  // of them asked for, in time or late
	Wasted  int64         `json:"wasted"`  // evicted or dropped before that
	Harmed  int64         `json:"harmed"`  // asked for again after a guess had taken their slot that was not
	Stops   int64         `json:"stops"`
	Bytes   int64         `json:"bytes"` // read
	Depths  []int         `json:"-"`     // of each token, those that don't count too
}

// full is how many readers have the disk at its limit.
func (m Machine) full() int {
	if m.Full > 0 {
		return m.Full
	}
	return m.Readers
}
