package kernels

import "math"

// run is how many positions a run of lib/runs.wgsl has.
func (l *loops) run() float64 {
	blocks := 1.0
	if most := float64(l.kernel.GetParams()["MOST"]); most > 0 {
		blocks = max(1, math.Ceil(l.seen()/(l.p("KEYS")*most)))
	}
	return blocks * l.p("KEYS")
}

func attnSplitLoops(l *loops) float64 {
	if l.kernel.GetParams()["KL"] > 0 {
		return splitLanesLoops(l)
	}
	g, pairs, w := loop(l.p("G"), 0), math.Floor(l.p("HD")/2), l.p("W")
	keys := min(l.p("KEYS"), l.seen())
	return shared(l.p("GHD"), w, 0) + shared(keys, w, g+fours(pairs, g)+g) +
		shared(l.p("G"), w/l.p("LS"), 2*shared(keys, l.p("LS"), 0)+2*loop(l.p("LS"), 0)) + shared(math.Floor(l.p("VD")/2), w, g+fours(keys, g)+g)
}

// splitLanesLoops is lib/split_lanes.wgsl: a loop over blocks, and the end of each head.
func splitLanesLoops(l *loops) float64 {
	kl, slots, g := l.p("KL"), l.p("SLOTS"), l.p("G")
	blocks := math.Ceil(min(l.run(), l.seen()) / l.p("KEYS"))
	return loop(blocks, shared(4*g*l.p("B"), kl, shared(kl, 16, 0))) + g*(2*loop(slots, 0)+shared(l.p("VD"), l.p("W"), loop(slots, 0)))
}

func attnMergeLoops(l *loops) float64 {
	groups := l.p("RG")
	columns, runs := l.p("W")/groups, math.Ceil(l.seen()/l.run())
	join := 0.0
	if groups > 1 {
		join = 2 * loop(groups, 0)
	}
	return shared(math.Floor(l.p("HD")/2), columns*l.p("PARTS"), shared(runs, 4*groups, 0)+join)
}
