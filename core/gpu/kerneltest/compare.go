package kerneltest

import (
	"fmt"
	"math"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// Bound is how far a variable may be from its reference. Errors of an f32
// result behave like noise, so a bound says what their mean square and the
// worst of them may be. The zero Bound allows no difference, not of a zero's
// sign either; any two NaNs are equal.
type Bound struct {
	NMSE float64 // Σ (have - want)² / Σ want²; of n elements 1 + 10/n times as much, for the mean of few fluctuates
	Max  float64 // max |have - want|, in units of the rms of want
	Rms  float64 // the rms of want counts as at least this: for values whose error is absolute
}

// Stat is how far a variable was from its reference, as Bound measures it.
type Stat struct {
	Bound
	Written int // elements that the reference wrote
}

// Compare measures have against want. It fails where an element was written
// and should not have been, or the reverse, or where a bound is exceeded.
// Elements of type F16 may besides be one f16 step off, two and one in a
// hundred of them: f32 noise before rounding.
func Compare(have, want *program.Memory, b Bound) (Stat, error) {
	var s Stat
	var sumD, sumW, maxD float64
	worst, flips := 0, 0
	for i, w := range want.Values {
		h := have.Values[i]
		switch {
		case IsPoison(w) && !IsPoison(h):
			return s, fmt.Errorf("element %d of %d: have %v, want it untouched", i, len(want.Values), h)
		case IsPoison(h) && !IsPoison(w):
			return s, fmt.Errorf("element %d of %d: not written, want %v", i, len(want.Values), w)
		case IsPoison(w):
			continue
		}
		s.Written++
		if b == (Bound{}) && h == w && math.Signbit(h) != math.Signbit(w) {
			return s, fmt.Errorf("element %d of %d: have %v, want %v", i, len(want.Values), h, w)
		}
		d := math.Abs(h - w)
		if h == w || math.IsNaN(h) && math.IsNaN(w) {
			d = 0 // infinities and NaNs too
		}
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return s, fmt.Errorf("element %d of %d: have %v, want %v", i, len(want.Values), h, w)
		}
		if math.IsNaN(w) || math.IsInf(w, 0) {
			continue // equal, and no size to measure errors by
		}
		if want.Elem == program.Elem_F16 && d > 0 {
			flips++
			d = max(0, d-f16Step(w))
		}
		sumD, sumW = sumD+d*d, sumW+w*w
		if d > maxD {
			maxD, worst = d, i
		}
	}
	if flips > 2+s.Written/100 {
		return s, fmt.Errorf("%d of %d elements are off by an f16 step or more: want few", flips, s.Written)
	}
	if sumD > 0 {
		n := float64(s.Written)
		sumW = max(sumW, n*b.Rms*b.Rms)
		s.NMSE, s.Max = sumD/sumW, maxD/math.Sqrt(sumW/n)
	}
	most := b.NMSE * (1 + 10/math.Max(1, float64(s.Written)))
	if !(s.NMSE <= most) || !(s.Max <= b.Max) {
		return s, fmt.Errorf("NMSE %.2g, worst %.2g at element %d of %d (have %v, want %v): want at most %.2g and %.2g",
			s.NMSE, s.Max, worst, len(want.Values), have.Values[worst], want.Values[worst], most, b.Max)
	}
	return s, nil
}

// f16Step is the distance of neighbouring f16 values at v.
func f16Step(v float64) float64 {
	_, e := math.Frexp(ggml.RoundF16(v))
	return math.Ldexp(1, max(e-11, -24))
}
