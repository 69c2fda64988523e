package gpu_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

// tiny is a kernel that does next to nothing; n makes its source, and so its pipeline, differ.
func tiny(n int) string {
	return fmt.Sprintf(`
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x] = x[id.x] * 3u + %du; }
`, n)
}

func BenchmarkDispatch(b *testing.B) {
	d := gputest.Open(b)
	buf := newBuffer(b, d, 4096, anyUse)
	p, g := newKernel(b, d, tiny(1), []gpu.BindingType{gpu.Storage}, buf)
	back := newReadback(b, d, 256)
	const n = 500
	var c, last gpu.Commands
	for range n {
		c.Dispatch(p, g, 1, 1, 1)
	}
	back.Copy(&last, 0, buf, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		roundTrip(b, d, back, &c, &last)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/dispatch")
}

func BenchmarkEncode(b *testing.B) {
	d := gputest.Open(b)
	buf := newBuffer(b, d, 4096, anyUse)
	p, g := newKernel(b, d, tiny(1), []gpu.BindingType{gpu.Storage}, buf)
	const n = 500
	var c gpu.Commands
	for range n {
		c.Dispatch(p, g, 0, 1, 1) // nothing to run: only encoding is left
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Submit(&c); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/dispatch")
	sync(b, d)
}

func BenchmarkRoundTrip(b *testing.B) {
	d := gputest.Open(b)
	buf := newBuffer(b, d, 4096, anyUse)
	p, g := newKernel(b, d, tiny(1), []gpu.BindingType{gpu.Storage}, buf)
	back := newReadback(b, d, 256)
	var c gpu.Commands
	c.Dispatch(p, g, 1, 1, 1)
	back.Copy(&c, 0, buf, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		roundTrip(b, d, back, &c)
	}
}

func roundTrip(tb testing.TB, d *gpu.Device, back *gpu.Readback, lists ...*gpu.Commands) {
	if err := d.Submit(lists...); err != nil {
		tb.Fatal(err)
	}
	if _, err := back.Wait(context.Background()); err != nil {
		tb.Fatal(err)
	}
	if err := back.Unmap(); err != nil {
		tb.Fatal(err)
	}
}

const record = 3_350_016 // bytes of one expert in Q4_0, a multiple of 256

func BenchmarkWrite(b *testing.B) {
	d := gputest.Open(b)
	buf := newBuffer(b, d, 8*record, anyUse)
	data := make([]byte, record)
	b.SetBytes(record)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := d.Write(buf, uint64(i%8)*record, data); err != nil {
			b.Fatal(err)
		}
	}
	sync(b, d)
}

// BenchmarkStaging uploads through a ring of mapped buffers, each filled by a goroutine of its own.
func BenchmarkStaging(b *testing.B) {
	for _, ring := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprint("ring", ring), func(b *testing.B) {
			d := gputest.Open(b)
			dst := newBuffer(b, d, 8*record, anyUse)
			data := make([]byte, record)
			work := make(chan int)
			done := make(chan error)
			for w := range ring {
				st, err := d.NewBuffer(gpu.Staging, "stage", record, gpu.UsageMapWrite|gpu.UsageCopySrc)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(st.Release)
				var c gpu.Commands
				c.Copy(st, 0, dst, uint64(w)*record, record)
				go func() {
					for range work {
						done <- upload(d, st, &c, data)
					}
				}()
			}
			b.SetBytes(record)
			b.ResetTimer()
			go func() {
				defer close(work)
				for range b.N {
					work <- 1
				}
			}()
			for range b.N {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			sync(b, d)
		})
	}
}

func upload(d *gpu.Device, st *gpu.Buffer, c *gpu.Commands, data []byte) error {
	view, err := st.Map(context.Background())
	if err != nil {
		return err
	}
	copy(view, data)
	if err := st.Unmap(); err != nil {
		return err
	}
	return d.Submit(c)
}

// BenchmarkPipelines compiles 16 kernels one by one and at once. Sources are new each time, so no cache of the driver helps.
func BenchmarkPipelines(b *testing.B) {
	d := gputest.Open(b)
	n := int(randomSeed(b).Int32())
	for _, parallel := range []bool{false, true} {
		b.Run(fmt.Sprint("parallel=", parallel), func(b *testing.B) {
			for b.Loop() {
				var specs []gpu.PipelineSpec
				for range 16 {
					n++
					specs = append(specs, gpu.PipelineSpec{Label: "k", WGSL: unrolled(n), Bindings: []gpu.BindingType{gpu.Storage}})
				}
				compileAll(b, d, specs, parallel)
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*16), "ms/pipeline")
		})
	}
}

func compileAll(b *testing.B, d *gpu.Device, specs []gpu.PipelineSpec, parallel bool) {
	if parallel {
		ps, err := d.NewPipelines(specs)
		if err != nil {
			b.Fatal(err)
		}
		for _, p := range ps {
			p.Release()
		}
		return
	}
	for _, s := range specs {
		p, err := d.NewPipeline(s.Label, s.WGSL, s.Bindings)
		if err != nil {
			b.Fatal(err)
		}
		p.Release()
	}
}

// unrolled is a kernel of some length.
func unrolled(n int) string {
	s := "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n@compute @workgroup_size(64)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {\n var a = x[id.x];\n"
	for i := range 200 {
		s += fmt.Sprintf(" a = fma(a, %d.5, x[id.x + %du]);\n", n+i, i)
	}
	return s + " x[id.x] = a;\n}\n"
}
