package lookahead

import "math"

// waitOverStage is what a submit and its readback cost, in stages encoded for nothing: 100 to 150 µs against some 20 dispatches of
// 2 to 5 µs each (H200).
const waitOverStage = 2.0

// Memory is over how many stages the share of those that stop is averaged.
const Memory = 32

// Lead is how many of a model's stages, its MoE layers, go to the GPU in one submit: as many as make the cost of a stage
// least, where each stops with the probability seen lately. A submit of n costs a wait and n stages, and gets
// (1 - (1-p)^n) / p of them done.
func Lead(missing float64, stages int) int {
	best, least, p := 1, math.Inf(1), min(max(missing, 1e-6), 1)
	pass := 1.0
	for n := 1; n <= stages; n++ {
		pass *= 1 - p
		cost := (waitOverStage + float64(n)) * p / (1 - pass)
		if cost > least { // from here on it rises: it is a line over what is concave
			break
		}
		best, least = n, cost
	}
	return best
}

// Passes reports whether it is likely that so many stages pass without a stop, so that what comes after them may well be
// submitted before they are done.
func Passes(missing float64, stages int) bool {
	return math.Pow(1-min(max(missing, 0), 1), float64(stages)) > 0.5
}
