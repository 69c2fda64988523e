package lookahead

import (
	"math/rand/v2"
	"testing"
	"time"
)

// world makes tokens whose cost depends on the depth: each record that is needed waits less where it was guessed, and wrong
// guesses take slots of what is needed later.
type world struct {
	rng   *rand.Rand
	wait  []float64 // ms a needed record, by depth
	wrong []float64 // wrong guesses a token, by depth
	harm  float64   // records that a wrong guess costs later
	owed  float64   // records harmed that are not asked for yet
}

// token makes one at a depth.
func (w *world) token(depth int) Token {
	needed := 5 + w.rng.IntN(30)
	wrong := w.wrong[depth] * (0.5 + w.rng.Float64())
	w.owed += w.harm * wrong
	harmed := min(int(w.owed), w.rng.IntN(8))
	w.owed -= float64(harmed)
	ms := 10 + w.wait[depth]*float64(needed+harmed)
	useful := needed * min(depth, 1)
	return Token{
		Took: time.Duration(ms * (1 + 0.1*w.rng.NormFloat64()) * float64(time.Millisecond)), Waits: 1,
		Needed: needed + harmed, Guessed: useful + int(wrong), Useful: useful, Harmed: harmed,
	}
}

// spend is the mean time of tokens, chosen by the controller or, where there is none, at a depth.
func (w world) spend(c *Controller, depth, tokens int) (mean float64) {
	w.rng = rand.New(rand.NewPCG(7, 8))
	for range tokens {
		if c != nil {
			depth = c.Depth()
		}
		t := w.token(depth)
		mean += t.Took.Seconds() / float64(tokens)
		if c != nil {
			c.Token(t)
		}
	}
	return mean
}

// near is how near the best tokens come where the wrong depth costs up to three times as much; core/simulate has what models do.
const near = 0.94

// Whatever the costs, 400 tokens take little more than at the best depth.
func TestController(t *testing.T) {
	for name, w := range map[string]world{
		"guesses don't pay": {wait: []float64{1, 1.5, 2, 2.5, 3, 3.5, 4}, wrong: make([]float64, 7)},
		"one pays":          {wait: []float64{2, 1, 1.2, 1.4, 1.6, 1.8, 2}, wrong: make([]float64, 7)},
		"four pay":          {wait: []float64{3, 2, 1.5, 1.2, 1, 1.2, 1.4}, wrong: make([]float64, 7)},
		"all pay":           {wait: []float64{3, 2.6, 2.2, 1.8, 1.5, 1.2, 1}, wrong: make([]float64, 7)},
		"wrong ones harm":   {wait: []float64{2, 1.9, 1.9, 1.8, 1.8, 1.8, 1.8}, wrong: []float64{0, 10, 20, 40, 60, 80, 100}, harm: 0.4},
	} {
		best, at := w.spend(nil, 0, 400), 0
		for depth := 1; depth < len(w.wait); depth++ {
			if mean := w.spend(nil, depth, 400); mean < best {
				best, at = mean, depth
			}
		}
		c := New(len(w.wait)-1, 4)
		if mean := w.spend(c, 0, 400); mean > best/near {
			t.Errorf("%s: have %.1f ms a token, want at most 5 %% above %.1f at depth %d; now at %d", name, 1e3*mean, 1e3*best, at, c.Depth())
		}
	}
}

// A change of habits is noticed.
func TestControllerFollows(t *testing.T) {
	w := world{wait: []float64{3, 2, 1.5, 1.2, 1}, wrong: make([]float64, 5)}
	c := New(4, 4)
	w.spend(c, 0, 500)
	w.wait = []float64{1, 2, 3, 4, 5}
	w.spend(c, 0, 300)
	if mean, best := w.spend(c, 0, 300), w.spend(nil, 0, 300); mean > best/near {
		t.Errorf("have %.1f ms a token after the change, want at most 5 %% above %.1f", 1e3*mean, 1e3*best)
	}
}

// While nothing waits nothing is guessed; then it goes on where it was.
func TestControllerCalm(t *testing.T) {
	w := world{rng: rand.New(rand.NewPCG(1, 2)), wait: []float64{3, 2, 1.5, 1.2}, wrong: make([]float64, 4)}
	c := New(3, 4)
	for range 60 {
		c.Token(w.token(c.Depth()))
	}
	best := c.best
	for range 2 * calmAfter {
		c.Token(Token{Took: time.Microsecond})
	}
	if c.Depth() != 0 || best == 0 {
		t.Errorf("have depth %d while nothing waits, want 0; %d before, want more", c.Depth(), best)
	}
	if c.Token(w.token(0)); c.Depth() != best {
		t.Errorf("have depth %d after it, want %d", c.Depth(), best)
	}
}

// What is tried first is no depth at all where the records that layers wait for keep the readers busy, and a deeper one else.
func TestControllerTriesFirst(t *testing.T) {
	for _, c := range []struct{ pieces, want int }{{4, 0}, {3, 0}, {2, 3}, {1, 3}} {
		ctl := New(8, 4)
		for i := 0; ctl.Depth() == start && i < 20; i++ {
			ctl.Token(Token{Took: time.Second, Waits: 3, Pieces: 3 * c.pieces, Needed: 9, Guessed: 9, Useful: 8})
		}
		if ctl.Depth() != c.want {
			t.Errorf("%d pieces a wait for 4 readers: have depth %d on trial, want %d", c.pieces, ctl.Depth(), c.want)
		}
	}
}

// A fixed depth stays, and so does one without any to choose from.
func TestFixed(t *testing.T) {
	for _, c := range []*Controller{Fixed(3), New(0, 4), {}} {
		before := c.Depth()
		for range 100 {
			c.Token(Token{Took: time.Second, Waits: 1, Needed: 9})
		}
		if c.Depth() != before {
			t.Errorf("have depth %d, want %d", c.Depth(), before)
		}
	}
}

// Depths stay within bounds whatever the tokens say.
func TestControllerBounds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for deepest := range 9 {
		c := New(deepest, 4)
		for range 2000 {
			c.Token(Token{
				Took: time.Duration(rng.Int64N(int64(time.Second))), Waits: rng.IntN(20),
				Needed: rng.IntN(3) * rng.IntN(50), Guessed: rng.IntN(100), Useful: rng.IntN(50), Harmed: rng.IntN(5),
			})
			if d := c.Depth(); d < 0 || d > deepest {
				t.Fatalf("have depth %d, want 0 to %d", d, deepest)
			}
		}
	}
}

func TestControllerAllocatesNothing(t *testing.T) {
	c := New(4, 4)
	if n := testing.AllocsPerRun(100, func() { c.Token(Token{Took: time.Millisecond, Waits: 1, Needed: 3}) }); n != 0 {
		t.Errorf("have %v allocations a token, want none", n)
	}
}

func TestLead(t *testing.T) {
	for _, c := range []struct {
		missing float64
		want    int
	}{{1, 1}, {0, 30}, {0.5, 2}, {0.02, 13}} {
		if have := Lead(c.missing, 30); have != c.want {
			t.Errorf("%v missing: have %d stages, want %d", c.missing, have, c.want)
		}
	}
}

func TestPasses(t *testing.T) {
	for _, c := range []struct {
		missing float64
		stages  int
		want    bool
	}{{0, 30, true}, {1, 1, false}, {0.5, 2, false}, {0.02, 19, true}, {0.02, 40, false}} {
		if have := Passes(c.missing, c.stages); have != c.want {
			t.Errorf("%v missing, %d stages: have %v, want %v", c.missing, c.stages, have, c.want)
		}
	}
}

// Where a busy disk decides, no depth beyond the next layer is tried; with readers that stand idle, or a GPU that decides, it is.
func TestControllerBoundByDisk(t *testing.T) {
	for name, c := range map[string]struct {
		pieces  int
		waited  time.Duration
		deepest int
	}{
		"disk":         {9, 800 * time.Millisecond, 1},
		"GPU":          {9, 500 * time.Millisecond, 2},
		"idle readers": {1, 800 * time.Millisecond, 2},
	} {
		ctl, deepest := New(8, 4), 0
		for range 200 {
			ctl.Token(Token{Took: time.Second, Waited: c.waited, Waits: 3, Pieces: 3 * c.pieces, Needed: 9, Guessed: 9, Useful: 8})
			deepest = max(deepest, ctl.Depth())
		}
		if (deepest > 1) != (c.deepest > 1) {
			t.Errorf("%s: have depths up to %d, want %d or so", name, deepest, c.deepest)
		}
	}
}

// One token of a machine that slept, or of a process that was stopped, tells nothing about the tokens after it.
func TestControllerSleep(t *testing.T) {
	w := world{wait: []float64{1, 1.5, 2, 2.5, 3, 3.5, 4}, wrong: make([]float64, 7)}
	best := w.spend(nil, 0, 300)
	for _, asleep := range []time.Duration{time.Minute, 8 * time.Hour} {
		sum := 0.0
		for i := range 20 {
			c := New(6, 4)
			w.spend(c, 0, 100+7*i)
			c.Token(Token{Took: asleep, Waited: asleep, Waits: 1, Pieces: 9, Needed: 10})
			sum += w.spend(c, 0, 300) / 20
		}
		if sum > best/0.97 {
			t.Errorf("%v: have %.1f ms a token after it, want at most 3 %% above %.1f", asleep, 1e3*sum, 1e3*best)
		}
	}
}

// Everything at once costs a hundred times as much, or as little, and other depths pay.
func TestControllerFollowsFar(t *testing.T) {
	for _, times := range []float64{100, 0.01} {
		w := world{wait: []float64{300, 200, 150, 120, 100}, wrong: make([]float64, 5)}
		c := New(4, 4)
		w.spend(c, 0, 500)
		w.wait = []float64{100 * times, 200 * times, 300 * times, 400 * times, 500 * times}
		w.spend(c, 0, 600)
		if mean, best := w.spend(c, 0, 300), w.spend(nil, 0, 300); mean > best/near {
			t.Errorf("%v: have %.1f ms a token after the change, want at most 6 %% above %.1f", times, 1e3*mean, 1e3*best)
		}
	}
}
