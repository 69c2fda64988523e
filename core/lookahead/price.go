package lookahead

import (
	"math"
	"time"

	"github.com/sluicehost/sluice/core/stream"
)

// Token is what a token cost and why. Counts are of expert records.
type Token struct {
	Took    time.Duration
	Waited  time.Duration // of it, for experts
	Waits   int           // layers of it that did
	Pieces  int           // that could be read at once, of the records that they waited for
	Needed  int           // asked for that were not in a slot, but for guesses
	Guessed int           // loads that guesses began
	Useful  int           // guesses that were asked for
	Harmed  int           // asked for again after a guess had taken their slot that nobody asked for
}

// pricing makes tokens comparable. What a token takes depends above all on how many records it needs, which is the text's
// doing and varies several times over. So a line through the last tokens' times and needs says what one like it takes,
// and its price is its own time as a share of that.
//
// A guess that is wrong costs twice: its read, which the token's time has in it, and the record whose slot it took, if that
// is asked for again. The second is some later token's time. There it is taken off, and here it is charged, at the rate that
// guesses have done harm so far.
type pricing struct {
	n, time, need, square, product float64 // decayed sums
	wrong, harm                    float64 // decayed sums of guesses that were not asked for, and of records harmed
	guessed, useful                float64 // decayed sums
	pieces, waits, waited          float64 // decayed sums
}

const (
	memory   = 48.0  // tokens over which sums are kept
	caution  = 0.15  // harm of a wrong guess before any is seen
	weight   = 20.0  // wrong guesses that this counts as much as
	few      = 3.0   // tokens that tell nothing yet of what is unusual
	enough   = 16.0  // guesses that tell how many are right
	tooFew   = 0.15  // share of those that are right below which deeper ones are not tried
	mostWait = 0.7   // share of a token's time that is waiting for records, from which on the disk decides
	keptBusy = 0.6   // share of the readers that have a piece of what a layer waits for, from which on guesses find none idle
	unusual  = 8.0   // times what a token like it takes: the most that one token counts for. More has other causes: a machine that slept, a process that was stopped
	forgiven = 0.998 // of a token's wrong and harm, a token later
)

// line is the time of a token that needs nothing, and of each record that it needs.
func (p *pricing) line() (base, each float64) {
	if p.n == 0 {
		return 0, 0
	}
	time, need := p.time/p.n, p.need/p.n
	if spread := p.square/p.n - need*need; spread > 0 {
		each = (p.product/p.n - time*need) / spread
	}
	if need > 0 {
		each = min(max(each, 0), time/need)
	}
	return time - each*need, each
}

// useless says whether so few guesses are right that deeper ones, which are right less often, need no trial.
func (p *pricing) useless() bool { return p.guessed >= enough && p.useful < tooFew*p.guessed }

// mostly says whether most guesses are right.
func (p *pricing) mostly() bool { return p.guessed >= enough && p.useful > p.guessed/2 }

// busy says whether what layers wait for keeps most of so many readers busy. Then guesses gain no more than what is read while
// the GPU computes, and every wrong one costs its read.
func (p *pricing) busy(readers int) bool {
	return p.waits > 0 && p.pieces >= keptBusy*float64(min(readers, stream.AtLimit))*p.waits
}

// bound says whether the disk decides what tokens take, with all readers at what layers wait for. Then a guess gains only what is
// read of it while nothing waits, which guesses at the next layer are enough for.
func (p *pricing) bound(readers int) bool {
	return p.waits > 0 && p.pieces >= float64(readers)*p.waits && p.waited > mostWait*p.time
}

// believed is what a token took and waited, as far as it can be the doing of what it needed.
func (p *pricing) believed(t Token, need float64) (took, waited float64) {
	took, waited = t.Took.Seconds(), t.Waited.Seconds()
	base, each := p.line()
	if most := unusual * (base + each*need); p.n > few && most > 0 && took > most {
		return most, waited * most / took
	}
	return took, waited
}

// price is a token's, and learns from it.
func (p *pricing) price(t Token) float64 {
	need, wrong := float64(t.Needed), float64(t.Guessed-t.Useful)
	took, waited := p.believed(t, need)
	const keep = 1 - 1/memory
	for _, x := range []struct {
		sum *float64
		add float64
	}{{&p.n, 1}, {&p.time, took}, {&p.need, need}, {&p.square, need * need}, {&p.product, took * need},
		{&p.guessed, float64(t.Guessed)}, {&p.useful, float64(t.Useful)}, {&p.pieces, float64(t.Pieces)}, {&p.waits, float64(t.Waits)}, {&p.waited, waited}} {
		*x.sum = *x.sum*keep + x.add
	}
	p.wrong, p.harm = p.wrong*forgiven+wrong, p.harm*forgiven+float64(t.Harmed)
	base, each := p.line()
	rate := math.Min(1, (p.harm+caution*weight)/(math.Max(p.wrong, 0)+weight))
	expected := base + each*(need-float64(t.Harmed))
	if expected <= 0 {
		return 1
	}
	return (took + each*(rate*wrong-float64(t.Harmed))) / expected
}
