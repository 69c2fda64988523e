package program

import (
	"encoding/binary"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// callKernel has one constant of each type and slots of several kinds.
func callKernel() *Kernel {
	return &Kernel{
		Name: "k", Params: map[string]uint32{"W": 64}, Types: map[string]uint32{"w": uint32(ggml.Q8_0)},
		Wgsl:  "struct Constants { n: u32, eps: f32, planes: vec4<u32> } @group(0) @binding(0) var<uniform> c: Constants;",
		Slots: []*Slot{{Name: "w"}, {Name: "y", Access: Access_READ_WRITE}, {Name: "c", Access: Access_UNIFORM}},
	}
}

func TestCall(t *testing.T) {
	consts := make([]byte, 32)
	binary.LittleEndian.PutUint32(consts, 7)
	binary.LittleEndian.PutUint32(consts[4:], math.Float32bits(0.5))
	binary.LittleEndian.PutUint32(consts[20:], 2)
	form := make([]byte, 48) // a unit of Q8_0: 32 quants, then its scale
	form[3], form[33] = 0xFE, 0x3C
	y := &Memory{Elem: Elem_F16, Values: make([]float64, 2)}
	c, err := NewCall(callKernel(), StepUniform{T: 3}, [3]uint32{1, 2, 3}, consts, map[string]*Memory{"w": {Form: form}, "y": y})
	if err != nil {
		t.Fatal(err)
	}
	if c.U32("n") != 7 || c.F32("eps") != 0.5 || c.Planes("planes") != [4]uint32{0, 2, 0, 0} || c.Param("W") != 64 {
		t.Errorf("constants: have %d %v %v %d", c.U32("n"), c.F32("eps"), c.Planes("planes"), c.Param("W"))
	}
	if !c.Has("y") || c.Has("x") {
		t.Error("has: want y and no x")
	}
	if u := c.Unit("w", "w", c.Planes("planes"), 0); u[3] != -2 || u[4] != 0 {
		t.Errorf("unit: have %v, want -2 at 3", u)
	}
	c.Store("y", 1, 1+1.0/4096)
	if y.Values[1] != 1 {
		t.Errorf("store: have %v, want it as F16", y.Values[1])
	}
}

func TestNewCallRefuses(t *testing.T) {
	k := callKernel()
	if _, err := NewCall(k, StepUniform{}, [3]uint32{}, nil, map[string]*Memory{"w": {}}); err == nil || !strings.Contains(err.Error(), "nothing is bound to y") {
		t.Errorf("have %v, want an error about y", err)
	}
	k.Wgsl = "struct Constants {}"
	if _, err := NewCall(k, StepUniform{}, [3]uint32{}, nil, nil); err == nil || !strings.Contains(err.Error(), "kernel k: wgsl") {
		t.Errorf("have %v, want an error about the WGSL", err)
	}
}

func TestRopeRow(t *testing.T) {
	r := &Rope{Name: "r", Pairs: 2, Base: 100, BaseDims: 4, Divisor: "d"}
	freqs, err := RopeFreqs(r, []float64{1, 2})
	if err != nil || freqs[0] != 1 || math.Abs(freqs[1]-0.05) > 1e-15 {
		t.Fatalf("have %v, %v, want 1 and 0.05", freqs, err)
	}
	row := make([]float64, 4)
	RopeRow(row, r, freqs, 1_000_000) // in f32 the angle itself would be off by 0.06
	for i, want := range []float64{math.Cos(1e6), math.Cos(5e4), math.Sin(1e6), math.Sin(5e4)} {
		if row[i] != float64(float32(row[i])) || math.Abs(row[i]-want) > 1e-7 {
			t.Errorf("value %d: have %v, want %v as f32", i, row[i], want)
		}
	}
	if _, err := RopeFreqs(r, nil); err == nil {
		t.Error("a missing divisor: have no error")
	}
	listed, err := RopeFreqs(&Rope{Pairs: 1, Freqs: []float64{0.25}}, nil)
	if err != nil || listed[0] != 0.25 {
		t.Errorf("listed: have %v, %v", listed, err)
	}
}

// Far positions: the rows are those of angles computed with 200 bits, to the rounding of f32. Half a unit of f32 near 1
// is 3e-8; the angle itself is off by 2e-10 in float64 at position 1,000,000. Step by step or with an f32 power it would
// be 1e-2.
func TestRopeFarPositions(t *testing.T) {
	const pairs = 64
	for _, base := range []float64{1e4, 1e6, 1e7} {
		r := &Rope{Name: "r", Pairs: pairs, Base: base, BaseDims: 2 * pairs}
		freqs, err := RopeFreqs(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		root := new(big.Float).SetPrec(200).SetFloat64(base) // base^(1/64), by six square roots
		for range 6 {
			root.Sqrt(root)
		}
		for _, pos := range []uint32{131_071, 131_072, 262_143, 1_000_000} {
			row := make([]float64, 2*pairs)
			RopeRow(row, r, freqs, pos)
			angle := new(big.Float).SetPrec(200).SetInt64(int64(pos))
			for i := range pairs {
				sin, cos := math.Sincos(reduced(angle))
				if dc, ds := math.Abs(row[i]-cos), math.Abs(row[pairs+i]-sin); max(dc, ds) > 3.1e-8 {
					t.Errorf("base %g, position %d, pair %d: off by %.2g", base, pos, i, max(dc, ds))
				}
				angle.Quo(angle, root)
			}
		}
	}
	// The pairs of rope_freqs that do not turn.
	still := &Rope{Name: "r", Pairs: 2, Base: 1e6, BaseDims: 4, Divisor: "d"}
	freqs, err := RopeFreqs(still, []float64{1, 1e30})
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float64, 4)
	if RopeRow(row, still, freqs, 262_143); row[1] != 1 || math.Abs(row[3]) > 1e-20 {
		t.Errorf("a pair whose angle is divided by 1e30: have cos %g, sin %g", row[1], row[3])
	}
}

// reduced is the angle less whole turns.
func reduced(angle *big.Float) float64 {
	turn, _, err := big.ParseFloat("6.28318530717958647692528676655900576839433879875021164194988918", 10, 200, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	turns, _ := new(big.Float).SetPrec(200).Quo(angle, turn).Int(nil)
	rest := new(big.Float).SetPrec(200).Mul(turn, new(big.Float).SetPrec(200).SetInt(turns))
	out, _ := rest.Sub(angle, rest).Float64()
	return out
}
