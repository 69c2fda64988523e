package layer

import (
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// TestSplit: shapes of real models get lanes that have units, and no more in flight than registers allow.
func TestSplit(t *testing.T) {
	q4, q6, f32 := uint32(ggml.Q4_0), uint32(ggml.Q6_K), uint32(ggml.F32)
	gpu := &Encoder{limits: &program.Limits{WorkgroupBytes: 48 << 10}}
	for _, c := range []struct {
		what string
		have split
		want split
	}{
		{"middling", gpu.split(2816, 88, q4), split{256, 32, 2, 3}},
		{"short rows", gpu.split(2816, 4, q4), split{256, 8, 2, 1}},
		{"long rows", gpu.split(2816, 256, q4), split{256, 32, 2, 4}},
		{"pair", gpu.split(2112, 88, q4, q4), split{256, 32, 1, 3}},
		{"router", gpu.split(128, 88, f32), split{64, 64, 1, 2}},
		{"head", gpu.split(262144, 88, q6), split{128, 8, 4, 2}},
		{"experts", gpu.expertSplit(704, 88, q4, q4), split{128, 32, 2, 3}},
		{"experts' second half", gpu.expertDownSplit(22, q4), split{128, 8, 2, 3}},
		{"software", (&Encoder{limits: &program.Limits{Cpu: true}}).split(2816, 88, q4), split{8, 1, 4, 1}},
	} {
		if c.have != c.want {
			t.Errorf("%s: have %+v, want %+v", c.what, c.have, c.want)
		}
	}
}

// TestStaged: x goes through workgroup memory where a row fits, and nowhere on a software device.
func TestStaged(t *testing.T) {
	s := split{128, 32, 2, 1}
	for _, c := range []struct {
		limits *program.Limits
		units  int
		x      string
		room   uint32
	}{
		{&program.Limits{WorkgroupBytes: 48 << 10}, 88, "staged", 96},
		{&program.Limits{WorkgroupBytes: 48 << 10}, 256, "staged", 256},
		{&program.Limits{WorkgroupBytes: 48 << 10}, 368, "plain", 0},
		{&program.Limits{WorkgroupBytes: 16 << 10}, 128, "plain", 0},
		{&program.Limits{Cpu: true, WorkgroupBytes: 32 << 10}, 88, "plain", 0},
	} {
		o := spec("matvec")
		(&Encoder{limits: c.limits}).apply(o, s, c.units)
		if o.Choices["x"] != c.x || o.Params["XU"] != c.room {
			t.Errorf("%d units, %v: have x %s and room for %d, want %s and %d", c.units, c.limits, o.Choices["x"], o.Params["XU"], c.x, c.room)
		}
	}
}
