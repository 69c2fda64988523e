package kernels

import "math"

func latentLoops(l *loops) float64 {
	w, turned := l.p("W"), shared(math.Floor(l.p("ROT")/2), l.p("W"), 0)
	return 2*shared(l.p("RANK"), w, 0) + l.all() + turned
}

func matmulHeadsLoops(l *loops) float64 { return tilePasses(l, l.c("head_rows")) }
