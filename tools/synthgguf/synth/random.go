package synth

import (
	"math"
	"math/bits"
)

// stream is a pseudo-random sequence (wyrand: Wang Yi's 64-bit multiply and fold). It is as fast as memory and good
// enough for weights, not for secrets.
type stream struct{ s uint64 }

func (r *stream) next() uint64 {
	r.s += 0xa0761d6478bd642f
	hi, lo := bits.Mul64(r.s, r.s^0xe7037ed1a0b428db)
	return hi ^ lo
}

// gauss is about a standard normal value, and never outside ±3.5: the sum of four uniform ones.
func (r *stream) gauss() float64 {
	const std = 65536 / 1.7320508075688772 // of four values uniform in [0, 65536)
	x := r.next()
	sum := x&0xffff + x>>16&0xffff + x>>32&0xffff + x>>48
	return (float64(sum) - 4*65535.0/2) / std
}

// uniform is a value in [lo, hi).
func (r *stream) uniform(lo, hi float64) float64 {
	return lo + (hi-lo)*float64(r.next()>>11)/(1<<53)
}

// seedOf gives every use of randomness a sequence of its own: same seed, name and number, same values, whoever asks and in
// whatever order. It is FNV-1a over the name with a finishing mix.
func seedOf(seed uint64, name string, n uint64) uint64 {
	h := uint64(14695981039346656037) ^ mix(seed)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return mix(h ^ mix(n+0x9e3779b97f4a7c15))
}

// mix is splitmix64's finisher: every bit of x moves about half the bits of the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hypot is the root of the sum of squares: the size of a sum of independent signals.
func hypot(parts ...float64) float64 {
	var sum float64
	for _, p := range parts {
		sum += p * p
	}
	return math.Sqrt(sum)
}
