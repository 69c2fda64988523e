package kernels

import "math"

// convLoops is an invocation that walks its run of tokens to the last of the step.
func convLoops(l *loops) float64 {
	move := loop(l.p("TAPS")-1, 0)
	run := math.Ceil(float64(l.step.T) / l.p("LANES"))
	return loop(l.p("TAPS"), 0) + move + loop(run, loop(l.p("TAPS"), 0)+move) + move
}

// deltaLoops is a walk over T tokens, TB at a time; the steps over a column of S are written out.
func deltaLoops(l *loops) float64 {
	t, tb, w := float64(l.step.T), l.p("TB"), l.p("W")
	team := min(16, max(1, math.Floor(w/(2*tb))))
	block := func(n float64) float64 {
		b := shared(l.p("D")/4, team, 0) + loop(team, 0) + loop(n, 0)
		if l.kernel.GetParams()["CHANNEL"] == 1 {
			b += shared(n*l.p("D"), w, 0)
		}
		return b
	}
	whole, rest := math.Floor(t/tb), math.Mod(t, tb)
	n := loop(whole, block(tb))
	if rest > 0 {
		n += 1 + block(rest)
	}
	return n
}
