package gpu_test

import (
	"encoding/binary"
	"testing"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

const double = `
@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	if (id.x < arrayLength(&dst)) { dst[id.x] = 2u * src[id.x]; }
}
`

const anyUse = gpu.UsageStorage | gpu.UsageCopySrc | gpu.UsageCopyDst

func TestSmoke(t *testing.T) {
	d := gputest.Open(t)
	t.Logf("%v\n%+v", d.Info(), d.Limits())
	a, err := d.NewBuffer(gpu.Scratch, "a", 1000, anyUse)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.NewBuffer(gpu.Scratch, "b", 1000, anyUse)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.NewPipeline("double", double, []gpu.BindingType{gpu.ReadStorage, gpu.Storage})
	if err != nil {
		t.Fatal(err)
	}
	g, err := d.NewBindGroup(p, "g", []gpu.Range{{Buffer: a}, {Buffer: b}})
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 1000)
	for i := range 250 {
		binary.LittleEndian.PutUint32(data[i*4:], uint32(i))
	}
	if err := d.Write(a, 0, data); err != nil {
		t.Fatal(err)
	}
	var c gpu.Commands
	c.Dispatch(p, g, 4, 1, 1)
	if err := d.Submit(&c); err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 1000)
	if err := d.Read(t.Context(), b, 0, out); err != nil {
		t.Fatal(err)
	}
	for i := range 250 {
		if got := binary.LittleEndian.Uint32(out[i*4:]); got != uint32(2*i) {
			t.Fatalf("element %d: have %d, want %d", i, got, 2*i)
		}
	}
	tm, err := d.NewTimer(t.Context(), "t", 2)
	if err != nil {
		t.Fatal(err)
	}
	c.Reset()
	c.Timestamp(tm, 0)
	c.Dispatch(p, g, 4, 1, 1)
	c.Timestamp(tm, 1)
	c.ResolveTimer(tm)
	if err := d.Submit(&c); err != nil {
		t.Fatal(err)
	}
	s, err := tm.Read(t.Context())
	t.Log(s, err)
	_, err = d.NewPipeline("bad", "fn main() {\n let a = ;\n}", nil)
	t.Log(err)
	_, err = d.NewPipeline("bad", "\n@group(0) @binding(0) var<storage, read> src: array<u32>;\n@compute @workgroup_size(1) fn main() {\n src[0] = 1u;\n}", []gpu.BindingType{gpu.ReadStorage})
	t.Log(err)
	_, err = d.NewPipeline("bad", "\n@group(0) @binding(0) var<storage, read_write> src: array<u32>;\n@compute @workgroup_size(1) fn main() {\n src[0] = 1u;\n}", []gpu.BindingType{gpu.ReadStorage})
	t.Log(err)
}
