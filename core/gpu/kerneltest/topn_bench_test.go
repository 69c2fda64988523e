package kerneltest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// BenchmarkTopN is both dispatches over one row, from submit to readback.
func BenchmarkTopN(b *testing.B) {
	d := gputest.Open(b)
	l := d.Limits()
	for _, vocab := range []uint32{65536, 262144} {
		for _, n := range []uint32{1, 40, 64} {
			b.Run(fmt.Sprintf("V=%d/N=%d", vocab, n), func(b *testing.B) {
				top, err := kernels.NewTopN(&program.Limits{Cpu: l.CPU, LoopLimit: uint32(l.LoopLimit)}, vocab, n)
				if err != nil {
					b.Fatal(err)
				}
				r := rand.New(rand.NewPCG(1, 1))
				mask := kerneltest.U32(make([]uint32, (vocab+31)/32)...)
				first, merge := topNCases(b, top, kerneltest.F32(normal(r, int(vocab))), mask, 1)
				var c gpu.Commands
				defer kerneltest.Record(b, first, &c)()
				defer kerneltest.Record(b, merge, &c)()
				for b.Loop() {
					if err := d.Submit(&c); err != nil {
						b.Fatal(err)
					}
					if err := d.Sync(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
