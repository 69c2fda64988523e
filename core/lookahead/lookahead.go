// Package lookahead chooses how many MoE layers ahead guesses are read while tokens are made, by what tokens cost; and how
// many layers go to the GPU at once. It knows no model, no disk and no clock: it is told what each token took.
//
// How deep pays differs by model and machine, and the wrong depth can cost more than guessing gains: too shallow a guess
// comes too late, too deep a one is wrong too often, and reads what nobody asks for in place of what is. The cost is close
// to unimodal in the depth, so [Controller] climbs: it compares the depth in use with a neighbour, in turns of a few tokens
// so that both meet the same text and the same state of the slots, and moves to what is cheaper.
package lookahead

import (
	"math"
)

const (
	start     = 1     // depth to begin with: where guesses are good it gives most of what there is to gain, and a wrong one costs little
	look      = 4     // tokens before the first trial
	turn      = 2     // tokens in a row at one of the depths that are compared
	fewest    = 2     // tokens at the depth on trial before it is judged
	most      = 20    // tokens after which the means decide
	sure      = 1.7   // standard errors that decide before that
	steadiest = 0.04  // least standard deviation of a token's time that is believed, as a share
	leaning   = 0.7   // standard errors by which it must be better where the means decide
	bias      = 0.004 // what each layer deeper must gain where the means decide, as a share
	hopeless  = 2.5   // times the cost of the depth in use: given up at once

	firstHold = 24  // tokens before neighbours are tried again; each time twice as many
	lastHold  = 512 //
	recent    = 8   // tokens whose mean tells that costs have changed
	changed   = 0.3 // by that share
	calmAfter = 14  // tokens in a row without a wait
)

// Controller chooses the depth: 0 reads nothing ahead. The zero Controller stays at 0.
type Controller struct {
	depth   int // for the next token
	deepest int // 0 where the depth is fixed
	readers int // that read pieces of records at once

	best      int     // the depth in use
	trial     int     // the depth on trial, or -1
	used      cost    // of the depth in use, during the trial or since the last one
	tried     cost    // of the depth on trial
	turn      int     // tokens left in this turn
	direction int     // of the trials
	step      int     // from the depth in use to the one on trial
	rejected  int     // directions in a row that led nowhere
	hold      int     // tokens to the next trials
	holds     int     // in the last hold
	last      recents // token times in this hold

	pricing pricing

	calm int // tokens since one waited
}

// cost sums up tokens' times, in seconds.
type cost struct {
	n           int
	sum, square float64
}

func (c *cost) add(price float64) {
	c.n++
	c.sum += price
	c.square += price * price
}

func (c *cost) mean() float64 { return c.sum / float64(max(c.n, 1)) }

// spread is the sum of squared differences from the mean.
func (c *cost) spread() float64 { return math.Max(0, c.square-c.sum*c.mean()) }

// recents are the last few token times.
type recents struct {
	times [recent]float64
	n     int
}

func (r *recents) add(price float64) {
	r.times[r.n%recent] = price
	r.n++
}

func (r *recents) mean() float64 {
	sum := 0.0
	for _, t := range r.times {
		sum += t
	}
	return sum / recent
}

// New chooses among 0 to deepest, for so many readers.
func New(deepest, readers int) *Controller {
	c := &Controller{deepest: deepest, readers: readers, trial: -1, direction: 1, step: 1, holds: firstHold / 2}
	if deepest > 0 {
		c.best = min(start, deepest)
		c.depth, c.hold = c.best, look
	}
	return c
}

// Fixed stays at a depth.
func Fixed(depth int) *Controller { return &Controller{depth: depth} }

// Depth is how many layers ahead the next token reads guesses.
func (c *Controller) Depth() int { return c.depth }

// Token notes what a token took, and whether a layer of it waited for an expert. While none does there is nothing to gain,
// and nothing is guessed until one does.
func (c *Controller) Token(t Token) {
	if c.deepest == 0 {
		return
	}
	if t.Waits == 0 {
		if c.calm++; c.calm >= calmAfter {
			c.depth = 0
			return
		}
	} else {
		if c.calm >= calmAfter { // what this token took was at no depth of ours
			c.calm, c.turn = 0, turn
			c.depth = c.best
			return
		}
		c.calm = 0
	}
	c.note(c.pricing.price(t))
}

// note books a token, ends the trial or the hold where it is time, and chooses the next token's depth.
func (c *Controller) note(price float64) {
	switch {
	case c.trial < 0:
		c.last.add(price)
		if c.used.n < 4*recent {
			c.used.add(price)
		}
		if c.hold--; c.hold <= 0 || c.different() {
			c.again()
		}
		return
	case c.depth == c.trial:
		c.tried.add(price)
	default:
		c.used.add(price)
	}
	if done, better := c.judge(); done {
		c.decide(better)
		return
	}
	if c.turn--; c.turn <= 0 {
		c.turn = turn
		c.depth = c.best + c.trial - c.depth // the other one's
	}
}

// different says whether tokens cost something else than when the hold began.
func (c *Controller) different() bool {
	if c.last.n < 2*recent {
		return false
	}
	return math.Abs(c.last.mean()/c.used.mean()-1) > changed
}

// judge says whether the trial is decided, and whether the depth on trial is the better one.
func (c *Controller) judge() (done, better bool) {
	if c.tried.n < 1 || c.used.n < 1 {
		return false, false
	}
	used, tried := c.used.mean(), c.tried.mean()
	if tried > hopeless*used {
		return true, false
	}
	if c.tried.n < fewest || c.used.n < fewest {
		return false, false
	}
	free := float64(c.used.n + c.tried.n - 2)
	spread := math.Max(math.Sqrt((c.used.spread()+c.tried.spread())/free), steadiest*used)
	err := spread * math.Sqrt(1/float64(c.used.n)+1/float64(c.tried.n))
	if math.Abs(tried-used) > sure*err || c.tried.n >= most {
		return true, used-tried > leaning*err+bias*float64(c.trial-c.best)*used
	}
	return false, false
}

// decide ends a trial: onwards with doubled steps while that is better, back between where a long step went too far, and then
// the other way.
func (c *Controller) decide(better bool) {
	if better {
		c.best, c.rejected = c.trial, 0
		c.step *= 2
		c.next()
		return
	}
	if c.step > 1 {
		c.step /= 2
		if c.rejected == 0 {
			c.next()
			return
		}
	}
	c.turnRound()
}

func (c *Controller) turnRound() {
	c.rejected++
	c.step, c.direction = 1, -c.direction
	if c.rejected >= 2 {
		c.rest()
		return
	}
	c.next()
}

// next begins the trial of a neighbour, if there is one in this direction.
func (c *Controller) next() {
	to := min(max(c.best+c.direction*c.step, 0), c.deepest)
	if to == c.best || c.direction > 0 && c.best > 0 && (c.pricing.useless() || c.pricing.bound(c.readers)) {
		c.turnRound()
		return
	}
	c.trial = to
	c.used, c.tried = cost{}, cost{}
	c.depth, c.turn = c.best, turn
}

// rest stays at the best depth for a while.
func (c *Controller) rest() {
	c.trial, c.depth = -1, c.best
	c.holds = min(2*c.holds, lastHold)
	c.hold = c.holds
	c.used, c.last = cost{}, recents{}
}

// again tries the neighbours: in time, or because costs have changed.
func (c *Controller) again() {
	first := c.holds < firstHold
	if c.hold > 0 {
		c.holds = firstHold / 2
	}
	c.rejected, c.step, c.direction = 0, 1, 1
	switch {
	case !first:
	case c.pricing.busy(c.readers):
		c.direction = -1
	case c.pricing.mostly():
		c.step = 2
	}
	c.next()
}
