package ggml

import "math"

// Unit is the 32 values of unit g of a GPU form of type t whose plane i starts
// at p[i]·16 bytes of form: what the WGSL snippet's T_load reads. It panics
// where the planes lie outside form, or t has no form.
func Unit(t Type, form []byte, p [4]uint32, g uint64) (values [UnitSize]float64) {
	k := kinds[t]
	var in planes
	for i := range k.planes {
		in[i] = form[16*int(p[i]):]
	}
	k.unit(values[:], &in, int(g))
	return values
}

// FormNames lists the types that have a GPU form, in the order of their ids.
func FormNames() string {
	var names string
	for t := Type(0); t < 64; t++ {
		if _, ok := kinds[t]; ok {
			if names != "" {
				names += ", "
			}
			names += t.String()
		}
	}
	return names
}

// RoundF16 is v as an IEEE 754 binary16 holds it, ties to even; past its range
// it is an infinity.
func RoundF16(v float64) float64 {
	a := math.Abs(v)
	switch {
	case a >= 65520:
		return math.Copysign(math.Inf(1), v)
	case a < 0x1p-14: // subnormal: multiples of 2^-24
		return math.RoundToEven(v*0x1p24) * 0x1p-24
	case math.IsNaN(v):
		return v
	}
	_, e := math.Frexp(v)
	unit := math.Ldexp(1, e-11)
	return math.RoundToEven(v/unit) * unit
}
