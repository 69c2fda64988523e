package engine

import "time"

// lookahead chooses how many stages ahead guesses are read. It is told what each token cost: it tries every depth for a window
// of tokens, 1 first, stays with the cheapest for some windows, and tries again, ever more seldom, or when the cost rises. A trial that goes badly ends early.
type lookahead struct {
	depth int
	cost  []float64 // by depth, seconds a token when it was last in use; nil where the depth is fixed
	queue []int     // depths to try yet in this round
	hold  int       // windows at the best depth in this round yet
	holds int       // in a whole round
	round int

	left  int // tokens of the window to come
	spent float64
	n     int // tokens counted in spent

	calm   int // tokens since one waited
	resume int // depth to go on with after a calm
}

const (
	windowTokens = 14
	settling     = 2 // first tokens of a window, not counted: they meet what the depth before has read
	firstHolds   = 4
	mostHolds    = 64
	hopeless     = 1.5 // times the best cost
	far          = 2.0 // times the best cost: tried again only in every seldom-th round
	seldom       = 4
	changed      = 1.3 // times what the same depth cost before
)

// newLookahead is for at most deepest stages; fixed is a depth to stay with, or below 0.
func newLookahead(deepest, fixed int) *lookahead {
	if fixed >= 0 || deepest == 0 {
		return &lookahead{depth: max(0, min(fixed, deepest))}
	}
	l := &lookahead{cost: make([]float64, deepest+1), depth: 1, left: windowTokens, hold: firstHolds, holds: firstHolds}
	for d := 2; d <= deepest; d++ {
		l.queue = append(l.queue, d)
	}
	l.queue = append(l.queue, 0) // last: where guesses pay it is given up at once, and to begin with a guess of one stage costs little
	return l
}

// token notes a token's time, and whether a layer of it waited for the disk. Once none has for a window of tokens there is
// nothing to gain, and nothing is guessed until one does.
func (l *lookahead) token(took time.Duration, waited bool) {
	if l.cost == nil {
		return
	}
	if !waited {
		l.calm++
		if l.calm == windowTokens {
			l.resume, l.depth = l.depth, 0
		}
		if l.calm >= windowTokens {
			return
		}
	} else if l.calm >= windowTokens {
		l.depth, l.left, l.spent, l.n, l.calm = l.resume, windowTokens, 0, 0, 0
	} else {
		l.calm = 0
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
	now, before := l.spent/float64(max(l.n, 1)), l.cost[l.depth]
	l.cost[l.depth] = now
	if before > 0 && now > changed*before && len(l.queue) == 0 {
		l.hold, l.holds, l.round = 0, firstHolds/2, -1 // what was measured of the others is stale too
	}
	l.left, l.spent, l.n = windowTokens, 0, 0
	if len(l.queue) == 0 && l.hold == 0 {
		l.holds = min(2*l.holds, mostHolds)
		l.hold = l.holds
		l.round++
		for d, c := range l.cost {
			if best := l.best(); d != best && (c < far*l.cost[best] || l.round%seldom == 0) {
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
