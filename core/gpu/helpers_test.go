package gpu_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
)

const anyUse = gpu.UsageStorage | gpu.UsageCopySrc | gpu.UsageCopyDst

func newBuffer(tb testing.TB, d *gpu.Device, size uint64, use gpu.Usage) *gpu.Buffer {
	tb.Helper()
	b, err := d.NewBuffer(gpu.Scratch, "buffer", size, use)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(b.Release)
	return b
}

func newReadback(tb testing.TB, d *gpu.Device, size uint64) *gpu.Readback {
	tb.Helper()
	r, err := d.NewReadback("readback", size)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.Release)
	return r
}

// newKernel compiles source and binds whole buffers to it.
func newKernel(tb testing.TB, d *gpu.Device, source string, types []gpu.BindingType, bufs ...*gpu.Buffer) (*gpu.Pipeline, *gpu.BindGroup) {
	tb.Helper()
	p, err := d.NewPipeline("kernel", source, types)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Release)
	var ranges []gpu.Range
	for _, b := range bufs {
		ranges = append(ranges, gpu.Range{Buffer: b})
	}
	g, err := d.NewBindGroup(p, "group", ranges)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(g.Release)
	return p, g
}

func sync(tb testing.TB, d *gpu.Device) {
	tb.Helper()
	if err := d.Sync(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

// randomSeed is a fresh source of inputs; the seed is printed when the test fails.
func randomSeed(tb testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	tb.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func words(v ...uint32) []byte {
	out := make([]byte, 4*len(v))
	for i, w := range v {
		binary.LittleEndian.PutUint32(out[4*i:], w)
	}
	return out
}

func readWords(tb testing.TB, d *gpu.Device, b *gpu.Buffer) []uint32 {
	tb.Helper()
	raw := make([]byte, b.Size())
	if err := d.Read(context.Background(), b, 0, raw); err != nil {
		tb.Fatal(err)
	}
	out := make([]uint32, len(raw)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return out
}
