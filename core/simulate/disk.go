package simulate

import (
	"math"
	"math/rand/v2"

	"github.com/sluicehost/sluice/core/stream"
)

// read is a record on its way into a slot.
type read struct {
	bank   *slots
	id     int
	bytes  int64
	begun  int // parts that a reader has begun
	left   int // parts that are not read to their end
	guess  bool
	layer  int     // of a guess
	given  bool    // up, while parts of it are read
	slower float64 // times what the disk's rate says
}

// reading is how many parts readers are at.
func (r *read) reading(m Machine) int { return r.begun - (m.Parts - r.left) }

// disk reads parts of records in simulated time, in seconds: what is asked for before what is guessed.
type disk struct {
	m       Machine
	rng     *rand.Rand
	now     float64
	parts   []part   // that are being read, at most Machine.Readers
	uploads []upload // records on their way up, in order
	line    float64  // when the last of them will be there
	demand  []*read  // oldest first
	guesses []*read
	guessed int // parts of guesses being read
	asked   int // records that are asked for, and not read to their end
	done    func(*read)
	dropped func(*read)
	bytes   int64
}

// part is being read.
type part struct {
	of    *read
	left  float64 // bytes
	guess bool    // as which it was begun
}

// upload ends at a time.
type upload struct {
	of  *read
	end float64
}

// noisy is a number of seconds as it may turn out.
func (m Machine) noisy(rng *rand.Rand, seconds float64) float64 {
	if m.Noise <= 0 {
		return seconds
	}
	return seconds * math.Max(0.2, 1+m.Noise*rng.NormFloat64())
}

// next takes the read whose part a free reader begins: a guess only where the disk has something left for it, and one reader stays
// free of them.
func (d *disk) next() *read {
	if len(d.demand) > 0 {
		r := d.demand[0]
		if r.begun+1 == d.m.Parts {
			d.demand = d.demand[1:]
		}
		return r
	}
	if len(d.guesses) > 0 && (d.asked == 0 || len(d.parts) < stream.AtLimit) && d.guessed < max(1, d.m.Readers-1) {
		r := d.guesses[0]
		if r.begun+1 == d.m.Parts {
			d.guesses = d.guesses[1:]
		}
		return r
	}
	return nil
}

// begin lets free readers work.
func (d *disk) begin() {
	for len(d.parts) < d.m.Readers {
		r := d.next()
		if r == nil {
			return
		}
		if r.begun == 0 {
			r.slower = d.m.noisy(d.rng, 1)
		}
		d.parts = append(d.parts, part{r, r.slower * float64(r.bytes) / float64(d.m.Parts), r.guess})
		if r.begun++; r.guess {
			d.guessed++
		}
	}
}

// each is the seconds that a byte takes of each part being read.
func (d *disk) each() float64 { return over(float64(max(d.m.full(), len(d.parts))), d.m.Disk) }

// ahead is when something ends next, and which part of those being read; +Inf where nothing is on its way, -1 for an upload.
func (d *disk) ahead() (at float64, index int) {
	at, index = math.Inf(1), -1
	for i, p := range d.parts {
		if end := d.now + p.left*d.each(); end < at {
			at, index = end, i
		}
	}
	if len(d.uploads) > 0 && d.uploads[0].end <= at {
		return d.uploads[0].end, -1
	}
	return at, index
}

// pass lets time pass, in which nothing ends.
func (d *disk) pass(until float64) {
	if until <= d.now {
		return
	}
	if each := d.each(); each > 0 {
		for i := range d.parts {
			d.parts[i].left = math.Max(0, d.parts[i].left-(until-d.now)/each)
		}
	}
	d.now = until
}

// advance lets time pass until what ends next, or until a time that comes before.
func (d *disk) advance(until float64) (more bool) {
	d.begin()
	at, i := d.ahead()
	if at > until {
		d.pass(until)
		return false
	}
	if math.IsInf(at, 1) {
		return false
	}
	d.pass(at)
	if i < 0 {
		r := d.uploads[0].of
		d.uploads = d.uploads[1:]
		d.done(r)
		return true
	}
	p := d.parts[i]
	d.parts[i] = d.parts[len(d.parts)-1]
	d.parts = d.parts[:len(d.parts)-1]
	if p.guess {
		d.guessed--
	}
	p.of.left--
	if p.of.given && p.of.reading(d.m) == 0 {
		d.dropped(p.of)
		return true
	}
	if p.of.left == 0 {
		if !p.of.guess {
			d.asked--
		}
		d.bytes += p.of.bytes
		d.line = math.Max(d.line, d.now) + over(float64(p.of.bytes), d.m.Upload)
		d.uploads = append(d.uploads, upload{p.of, d.line})
	}
	return true
}

// until lets time pass up to at.
func (d *disk) until(at float64) {
	for d.advance(at) {
	}
}

// drain lets all that is on its way arrive.
func (d *disk) drain() {
	for d.advance(math.Inf(1)) {
	}
}
