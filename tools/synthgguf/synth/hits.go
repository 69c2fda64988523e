package synth

// LRU is the share of picks that are among the slots most recently used experts. The first eighth of the trace fills the
// cache and does not count.
func (t *Trace) LRU(slots int) float64 {
	last := make([]int, t.Experts) // when used, from 1 on; 0: not in the cache
	var clock, held, hits, asked int
	for at, picks := range t.Picks {
		for _, e := range picks {
			clock++
			if at >= len(t.Picks)/8 {
				asked++
				if last[e] > 0 {
					hits++
				}
			}
			if last[e] == 0 {
				if held == slots {
					last[oldest(last)] = 0
				} else {
					held++
				}
			}
			last[e] = clock
		}
	}
	return share(hits, asked)
}

func oldest(last []int) int {
	out := -1
	for e, at := range last {
		if at > 0 && (out < 0 || at < last[out]) {
			out = e
		}
	}
	return out
}

// Static is the share of the second half's picks among the slots experts that the first half picked most.
func (t *Trace) Static(slots int) float64 {
	half := len(t.Picks) / 2
	counts := make([]float64, t.Experts)
	for _, picks := range t.Picks[:half] {
		for _, e := range picks {
			counts[e]++
		}
	}
	hot := make([]bool, t.Experts)
	for _, e := range best(counts, slots) {
		hot[e] = true
	}
	var hits, asked int
	for _, picks := range t.Picks[half:] {
		for _, e := range picks {
			asked++
			if hot[e] {
				hits++
			}
		}
	}
	return share(hits, asked)
}

// Repeated is the share of picks that the token before had, too.
func (t *Trace) Repeated() float64 {
	var hits, asked int
	for at := 1; at < len(t.Picks); at++ {
		hits += common(t.Picks[at], t.Picks[at-1])
		asked += len(t.Picks[at])
	}
	return share(hits, asked)
}

// Guessed is the share of picks that were guessed.
func (t *Trace) Guessed() float64 {
	var hits, asked int
	for at, picks := range t.Picks {
		hits += common(picks, t.Guesses[at])
		asked += len(picks)
	}
	return share(hits, asked)
}

// common is how many of a are in b.
func common(a, b []int32) (n int) {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				n++
			}
		}
	}
	return n
}

func share(part, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}
