package kerneltest

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/sluicehost/sluice/sdk/program"
)

// guard is how many bytes of poison lie before and after each variable: a
// multiple of every storage alignment.
const guard = 512

// The patterns that stand for memory nobody has written, by element type. The
// floats are NaNs. Arithmetic passes a NaN's bits on: what kernels only read has
// patterns of its own, so that a result of it is not taken for unwritten.
const (
	poisonF32 = 0xFFC0DEAD
	poisonU32 = 0xDEADBEEF
	poisonF16 = 0xFEAD

	readPoisonF32 = 0x7FC0BAD1
	readPoisonU32 = 0xBAD1BAD1
	readPoisonF16 = 0x7EB1
)

// poisonWord is two f16 or one other element of poison.
func poisonWord(m *program.Memory, read bool) uint32 {
	switch {
	case m.Elem == program.Elem_U32 && read:
		return readPoisonU32
	case m.Elem == program.Elem_U32:
		return poisonU32
	case (m.Elem == program.Elem_F16 || m.Form != nil) && read:
		return readPoisonF16<<16 | readPoisonF16
	case m.Elem == program.Elem_F16 || m.Form != nil:
		return poisonF16<<16 | poisonF16
	case read:
		return readPoisonF32
	}
	return poisonF32
}

// poisonBits is Poison in float64.
const poisonBits = 0x7FF8DEADBEEF0000

// Poison is an element of Memory.Values that nobody has written: a NaN. On the
// GPU it is a pattern of its own in each element type.
func Poison() float64 { return math.Float64frombits(poisonBits) }

// IsPoison reports whether v is Poison, and not some other NaN.
func IsPoison(v float64) bool { return math.Float64bits(v) == poisonBits }

// Output is n elements for a kernel to write: poison.
func Output(e program.Elem, n int) *program.Memory {
	m := &program.Memory{Elem: e, Values: make([]float64, n)}
	for i := range m.Values {
		m.Values[i] = Poison()
	}
	return m
}

// F32 is memory of f32 values, rounded to f32.
func F32(values []float64) *program.Memory {
	m := &program.Memory{Elem: program.Elem_F32, Values: slices.Clone(values)}
	for i, v := range m.Values {
		if !IsPoison(v) {
			m.Values[i] = float64(float32(v))
		}
	}
	return m
}

// U32 is memory of u32 values.
func U32(values ...uint32) *program.Memory {
	m := &program.Memory{Elem: program.Elem_U32}
	for _, v := range values {
		m.Values = append(m.Values, float64(v))
	}
	return m
}

// size is the length of m's data in bytes, a multiple of 4.
func size(m *program.Memory) int {
	if m.Form != nil {
		return len(m.Form)
	}
	return (len(m.Values)*int(m.Elem.Bytes()) + 3) &^ 3
}

// encode lays m out as its buffer holds it, guards included; read tells memory
// that the kernel can't write.
func encode(m *program.Memory, read bool) []byte {
	n := size(m)
	raw := make([]byte, 0, 2*guard+n)
	word := poisonWord(m, read)
	fill := func(end int) {
		for len(raw) < end {
			raw = binary.LittleEndian.AppendUint32(raw, word)
		}
	}
	fill(guard)
	raw = append(raw, m.Form...)
	for _, v := range m.Values {
		switch {
		case m.Elem == program.Elem_F16 && IsPoison(v):
			raw = binary.LittleEndian.AppendUint16(raw, uint16(word))
		case m.Elem == program.Elem_F16:
			raw = binary.LittleEndian.AppendUint16(raw, f16Bits(v))
		case IsPoison(v):
			raw = binary.LittleEndian.AppendUint32(raw, word)
		case m.Elem == program.Elem_U32:
			raw = binary.LittleEndian.AppendUint32(raw, uint32(v))
		default:
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
		}
	}
	if len(raw)%4 != 0 {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(word))
	}
	fill(2*guard + n)
	return raw
}

// decode is the inverse of encode for n elements from the start of raw.
func decode(raw []byte, e program.Elem, n int) *program.Memory {
	m := &program.Memory{Elem: e, Values: make([]float64, n)}
	for i := range m.Values {
		var poison bool
		switch e {
		case program.Elem_F16:
			h := binary.LittleEndian.Uint16(raw[2*i:])
			m.Values[i], poison = f16Value(h), h == poisonF16
		case program.Elem_U32:
			w := binary.LittleEndian.Uint32(raw[4*i:])
			m.Values[i], poison = float64(w), w == poisonU32
		default:
			w := binary.LittleEndian.Uint32(raw[4*i:])
			m.Values[i], poison = float64(math.Float32frombits(w)), w == poisonF32
		}
		if poison {
			m.Values[i] = Poison()
		}
	}
	return m
}

// f16Bits is v, which f16 holds exactly, as IEEE 754 binary16.
func f16Bits(v float64) uint16 {
	switch {
	case v == 0:
		return uint16(math.Float64bits(v) >> 48)
	case math.IsInf(v, 0):
		return uint16(math.Float64bits(v)>>48)&0x8000 | 0x7C00
	}
	sign := uint16(math.Float64bits(v)>>48) & 0x8000
	frac, e := math.Frexp(math.Abs(v)) // frac in [0.5, 1)
	if e < -13 {
		return sign | uint16(math.Abs(v)*0x1p24) // subnormal
	}
	return sign | uint16(e+14)<<10 | uint16((frac*2-1)*1024)
}

// f16Value is the inverse of f16Bits.
func f16Value(h uint16) float64 {
	sign, e, m := 1.0, int(h>>10&31), float64(h&1023)
	if h&0x8000 != 0 {
		sign = -1
	}
	switch e {
	case 0:
		return sign * m * 0x1p-24
	case 31:
		if m != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1+m/1024, e-15)
}
