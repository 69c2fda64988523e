package engine

import "time"

// lookahead chooses how many stages ahead guesses are read. It is told what each token cost: it tries every depth for a window
// of tokens, stays with the cheapest for some windows, and tries again, ever more seldom. A trial that goes badly ends early.
type lookahead struct {
	depth int
	cost  []float64 // by depth, seconds a token when it was last in use; nil where the depth is fixed
	queue []int     // depths to try yet in this round
	hold  int       // windows at the best depth in this round yet
	holds int       // in a whole round

	left  int // tokens of the window to come
	spent float64
	n     int // tokens counted in spent
}

const (
	windowTokens = 14
	settling     = 2 // first tokens of a window, not counted: they meet what the depth before has read
	firstHolds   = 4
	mostHolds    = 64
	hopeless     = 1.5 // times the best cost
)

// newLookahead is for at most deepest stages; fixed is a depth to stay with, or below 0.
func newLookahead(deepest, fixed int) *lookahead {
	if fixed >= 0 || deepest == 0 {
		return &lookahead{depth: max(0, min(fixed, deepest))}
	}
	l := &lookahead{cost: make([]float64, deepest+1), left: windowTokens, hold: firstHolds, holds: firstHolds}
	for d := 1; d <= deepest; d++ {
		l.queue = append(l.queue, d)
	}
	return l
}

// token notes a token's time, and whether a layer of it waited for the disk. Where none does at depth 0 there is nothing to gain.
func (l *lookahead) token(took time.Duration, waited bool) {
	if l.cost == nil || l.depth == 0 && !waited {
		return
	}
	l.left--
	if l.left < windowTokens-settling {
		l.spent += took.Seconds()
		l.n++
	}
	if l.left <= 0 || l.n >= settling && l.spent/float64(l.n) > hopeless*l.least() {
		l.turn()
	}
}

// least is the lowest cost known of another depth than the present one; +Inf would do, but nothing costs a day.
func (l *lookahead) least() float64 {
	least := (24 * time.Hour).Seconds()
	for d, c := range l.cost {
		if c > 0 && d != l.depth {
			least = min(least, c)
		}
	}
	return least
}

// best is the cheapest depth known.
func (l *lookahead) best() int {
	best := l.depth
	for d, c := range l.cost {
		if c > 0 && c < l.cost[best] {
			best = d
		}
	}
	return best
}

// turn ends a window and chooses the depth of the next.
func (l *lookahead) turn() {
	l.cost[l.depth] = l.spent / float64(max(l.n, 1))
	l.left, l.spent, l.n = windowTokens, 0, 0
	if len(l.queue) == 0 && l.hold == 0 {
		l.holds = min(2*l.holds, mostHolds)
		l.hold = l.holds
		for d := range l.cost {
			if d != l.best() {
				l.queue = append(l.queue, d)
			}
		}
	}
	if len(l.queue) > 0 {
		l.depth, l.queue = l.queue[0], l.queue[1:]
		return
	}
	l.hold--
	l.depth = l.best()
}
