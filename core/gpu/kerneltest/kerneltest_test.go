package kerneltest_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

const doubling = `
struct Constants { n: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) {
  let i = gid.x;
  BODY
}`

// recorder takes what Run reports.
type recorder struct {
	testing.TB
	faults []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// TestRunFindsFaults runs kernels that are wrong in one way each. y[2i+1] = 2 x[i] for i < n; the even elements stay.
func TestRunFindsFaults(t *testing.T) {
	gputest.Open(t)
	for _, f := range []struct{ name, body, want string }{
		{"right", "if (i < c.n) { y[2u * i + 1u] = 2.0 * x[i]; }", ""},
		{"one too few", "if (i < c.n - 1u) { y[2u * i + 1u] = 2.0 * x[i]; }", "not written"},
		{"one untouched written", "if (i < c.n) { y[2u * i + 1u] = 2.0 * x[i]; y[2u * i] = 0.0; }", "want it untouched"},
		{"one past the end", "if (i <= c.n) { y[2u * i + 1u] = 2.0 * x[i]; }", "from its start"},
		{"reads past the end", "if (i < c.n) { y[2u * i + 1u] = 2.0 * x[i + 1u]; }", "have NaN"},
		{"wrong by little", "if (i < c.n) { y[2u * i + 1u] = 2.00002 * x[i]; }", "NMSE 1e-10"},
		{"one wrong by little", "if (i < c.n) { y[2u * i + 1u] = 2.0 * x[i]; if (i == 7u) { y[15] = 2.00004 * x[i]; } }", "element 15"},
	} {
		t.Run(f.name, func(t *testing.T) {
			k, err := kernels.BuildFrom(fstest.MapFS{"double.wgsl": {Data: []byte(strings.ReplaceAll(doubling, "BODY", f.body))}}, kernels.Spec{Name: "double"})
			if err != nil {
				t.Fatal(err)
			}
			const n = 37
			x := make([]float64, n)
			for i := range x {
				x[i] = 1 + float64(i%3)
			}
			ref := func(c *program.Call) {
				for i := range int(c.U32("n")) {
					c.Store("y", 2*i+1, 2*c.Values("x")[i])
				}
			}
			r := &recorder{TB: t}
			kerneltest.Run(r, kerneltest.Case{Kernel: k, Ref: ref, Grid: [3]uint32{1, 1, 1}, Constants: map[string]any{"n": uint32(n)},
				Memory: map[string]*program.Memory{"x": kerneltest.F32(x), "y": kerneltest.Output(program.Elem_F32, 2*n)},
				Bounds: map[string]kerneltest.Bound{"y": {NMSE: 1e-11, Max: 1e-5}}})
			if got := strings.Join(r.faults, "\n"); (got == "") != (f.want == "") || !strings.Contains(got, f.want) {
				t.Errorf("have %q, want %q in it", got, f.want)
			}
		})
	}
}

func TestCompareExact(t *testing.T) {
	m := func(e program.Elem, v ...float64) *program.Memory { return &program.Memory{Elem: e, Values: v} }
	zero, inf, nan, p := math.Copysign(0, -1), math.Inf(1), math.NaN(), kerneltest.Poison()
	for _, c := range []struct {
		name       string
		have, want *program.Memory
		ok         bool
	}{
		{"equal", m(program.Elem_F32, 1, inf, nan, p), m(program.Elem_F32, 1, inf, nan, p), true},
		{"sign of zero", m(program.Elem_F32, zero), m(program.Elem_F32, 0), false},
		{"inf for a number", m(program.Elem_F32, inf), m(program.Elem_F32, 1), false},
		{"NaN for a number", m(program.Elem_F32, nan), m(program.Elem_F32, 1), false},
		{"number for NaN", m(program.Elem_F32, 1), m(program.Elem_F32, nan), false},
		{"poison for NaN", m(program.Elem_F32, p), m(program.Elem_F32, nan), false},
		{"other id", m(program.Elem_U32, 1), m(program.Elem_U32, 2), false},
	} {
		if _, err := kerneltest.Compare(c.have, c.want, kerneltest.Bound{}); (err == nil) != c.ok {
			t.Errorf("%s: have %v, want ok %v", c.name, err, c.ok)
		}
	}
	f16 := kerneltest.Bound{NMSE: 1e-12}
	if _, err := kerneltest.Compare(m(program.Elem_F16, 1+0x1p-10), m(program.Elem_F16, 1), f16); err != nil {
		t.Errorf("one f16 step: %v", err)
	}
	if _, err := kerneltest.Compare(m(program.Elem_F16, 1+0x1p-9), m(program.Elem_F16, 1), f16); err == nil {
		t.Error("two f16 steps: have no error")
	}
	low := m(program.Elem_F16, 1, 1, 1, 1)
	if _, err := kerneltest.Compare(low, m(program.Elem_F16, 1+0x1p-10, 1+0x1p-10, 1+0x1p-10, 1), f16); err == nil {
		t.Error("three of four f16 rounded down: have no error")
	}
}

// TestRandomMatrix holds the test weights to be about 1, so that bounds mean the same for every type.
func TestRandomMatrix(t *testing.T) {
	r := random(t)
	for _, typ := range kerneltest.Types() {
		const rows, cols = 30, 1024
		m := kerneltest.RandomMatrix(r, typ, rows, cols)
		sum := 0.0
		for g := range uint64(rows * cols / 32) {
			for _, v := range ggml.Unit(typ, m.Form, m.Planes, g) {
				sum += v * v
			}
		}
		if rms := math.Sqrt(sum / (rows * cols)); !(rms > 0.2 && rms < 3) {
			t.Errorf("%v: have rms %v, want about 1", typ, rms)
		}
	}
}
