package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/sluicehost/sluice/core/lookahead"
	"github.com/sluicehost/sluice/core/stream"
)

// beforeExperts is the share of a layer's time that passes before its experts: attention and routing.
const beforeExperts = 0.5

// decoding is a token on its way through the layers.
type decoding struct {
	*Demand
	pool    *pool
	slower  []float64 // of the tokens to come, times what one takes
	depth   int
	missing float64 // share of stages that stopped lately
}

// Decode simulates in time how a machine makes the trace's tokens with these banks, and what reading ahead gives: layers go
// to the GPU several at a time and stop at a missing expert, which is read, and guesses are read meanwhile, as core/engine
// does it (docs/streaming.md). Prompts take no time. Where the trace has no guesses, or ahead is Fixed(0), nothing is read
// ahead. Experts of a prompt's chunk are taken at once.
func (d *Demand) Decode(banks []stream.Bank, policy func(keys int) stream.Policy, m Machine, ahead Ahead) Run {
	m.Readers, m.Parts = max(m.Readers, 1), max(m.Parts, 1)
	var run, before Run
	x := &decoding{Demand: d, slower: d.noise(m), missing: 1}
	x.pool = d.newPool(banks, policy, m, &run)
	layers, begun := len(d.Header.Layers), 0.0
	for at := 0; at < len(d.asks); at += layers {
		step := d.asks[at : at+layers]
		if step[0].counted && run.Tokens == 0 {
			before, begun = run, x.pool.now
			before.Bytes = x.pool.bytes
		}
		for _, b := range x.pool.all {
			b.policy.Tick(step[0].tokens)
		}
		if step[0].prompt {
			x.prompt(step)
			continue
		}
		x.depth = ahead.Depth()
		from, waited, was := x.pool.now, x.pool.waited, run
		x.token(step)
		t := run.token(was, x.pool.now-from, m.Parts)
		t.Waited = time.Duration((x.pool.waited - waited) * 1e9)
		ahead.Token(t)
		run.Depths = append(run.Depths, x.depth)
		if step[0].counted {
			run.Tokens++
		}
	}
	run.Bytes = x.pool.bytes
	return run.since(before, x.pool.now-begun)
}

// noise is how each token's time turns out, times what it should be. Over the tokens that count the mean is 1: a run must not
// come out faster than the machine is.
func (d *Demand) noise(m Machine) (out []float64) {
	rng, layers := rand.New(rand.NewPCG(m.Seed, 2)), len(d.Header.Layers)
	var sum float64
	var counted int
	for at := 0; at < len(d.asks); at += layers {
		if d.asks[at].prompt {
			continue
		}
		out = append(out, m.noisy(rng, 1))
		if d.asks[at].counted {
			sum, counted = sum+out[len(out)-1], counted+1
		}
	}
	if counted > 0 {
		for i := range out {
			out[i] *= float64(counted) / sum
		}
	}
	return out
}

// token is what happened after another state, in so many seconds, as a controller is told it; a record is read in so many parts.
func (r Run) token(b Run, seconds float64, parts int) lookahead.Token {
	return lookahead.Token{
		Took: time.Duration(seconds * 1e9), Waits: int(r.Stops - b.Stops), Pieces: parts * int(r.Misses+r.Late-b.Misses-b.Late),
		Needed: int(r.Misses + r.Useful - b.Misses - b.Useful), Harmed: int(r.Harmed - b.Harmed),
		Guessed: int(r.Guessed - b.Guessed), Useful: int(r.Useful - b.Useful),
	}
}

// since is what happened after another state, in so many seconds.
func (r Run) since(b Run, seconds float64) Run {
	r.Hits, r.Late, r.Misses = r.Hits-b.Hits, r.Late-b.Late, r.Misses-b.Misses
	r.Guessed, r.Useful, r.Wasted = r.Guessed-b.Guessed, r.Useful-b.Useful, r.Wasted-b.Wasted
	r.Harmed, r.Stops, r.Bytes = r.Harmed-b.Harmed, r.Stops-b.Stops, r.Bytes-b.Bytes
	r.Time = time.Duration(seconds * 1e9)
	if seconds > 0 {
		r.Rate = float64(r.Tokens) / seconds
	}
	return r
}

// prompt takes a chunk's experts through the slots in no time.
func (x *decoding) prompt(step []ask) {
	p := x.pool
	p.drain()
	now, run, bytes := p.now, *p.run, p.bytes
	for _, a := range step {
		for rest := a.experts; len(rest) > 0; {
			n := min(p.banks[a.layer].size, len(rest))
			p.ensure(a.layer, rest[:n], func() {})
			rest = rest[n:]
		}
	}
	*p.run, p.bytes, p.now, p.line = run, bytes, now, now
}

// token makes a token: spans of layers, each up to a stop or as far as the GPU was told to go.
func (x *decoding) token(step []ask) {
	p, n := x.pool, len(step)
	each := x.slower[0] * p.m.Token.Seconds() / float64(n)
	x.slower = x.slower[1:]
	resumed := false // the first layer of the span is at its experts
	for next := 0; ; {
		p.until(p.now)
		end := min(next+lookahead.Lead(x.missing, n), n)
		stop, seconds := -1, 0.0
		if resumed {
			seconds += each * (1 - beforeExperts)
		}
		at := next
		for ; at < end && stop < 0; at++ {
			seconds += each*beforeExperts + float64(min(x.depth, x.guesses(step[at])))*p.m.Guess.Seconds()
			if !p.has(step[at].layer, step[at].experts) {
				stop = at
				continue
			}
			seconds += each * (1 - beforeExperts)
		}
		if stop >= 0 || end < n {
			seconds += p.m.Stop.Seconds()
		}
		p.until(p.now + seconds)
		x.book(step[next:at], stop >= 0)
		if next, resumed = at, stop >= 0; resumed {
			p.run.Stops++
			p.ensure(step[stop].layer, step[stop].experts, func() { x.ahead(step, stop) })
			continue
		}
		if end == n {
			return
		}
		x.ahead(step, end-1)
	}
}

// book notes what ran; the last of it stopped, or not.
func (x *decoding) book(ran []ask, stopped bool) {
	for i, a := range ran {
		miss := 0.0
		if stopped && i == len(ran)-1 {
			miss = 1
		} else {
			x.pool.used(a.layer, a.experts)
		}
		x.missing += (miss - x.missing) / lookahead.Memory
	}
}

// guesses is how many layers ahead a layer's guesses look.
func (d *Demand) guesses(a ask) int { return len(a.ahead) / d.Header.TopK }

// ahead replaces the guesses that wait by those of a layer, nearest first.
func (x *decoding) ahead(step []ask, from int) {
	p, k := x.pool, x.Header.TopK
	p.drop(step[from].layer)
	for i := range min(x.depth, x.guesses(step[from])) {
		p.guess(step[from+1+i].layer, step[from].ahead[i*k:(i+1)*k])
	}
}
