package store_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// experts of a benchmark's layer.
const benchCount = 16

// benchExperts is one layer of experts, gate and up of 1792 × 2048 and down
// of 2048 × 1792: one expert of lfm2-24b-a2b, 6 MB in Q4.
func benchExperts(b *testing.B, typ ggml.Type) *opened {
	const n = benchCount
	r := random(b)
	p := &program.Plan{Model: &program.Model{Experts: n}, Embed: &program.Embed{Tensor: "row"}, Records: []*program.Record{{Parts: []*program.Weight{
		{Name: "gate", Tensors: []string{"gate"}}, {Name: "up", Tensors: []string{"up"}}, {Name: "down", Tensors: []string{"down"}},
	}}}}
	return open(b, write(b, noise(r, "row", ggml.F32, 32, 1), noise(r, "gate", typ, 2048, 1792, n), noise(r, "up", typ, 2048, 1792, n),
		noise(r, "down", typ, 1792, 2048, n)), 0, func(*gguf.File) *program.Plan { return p })
}

var benchTypes = []ggml.Type{ggml.F16, ggml.Q4_0, ggml.Q8_0, ggml.Q4_K, ggml.Q5_K, ggml.Q6_K, ggml.MXFP4}

// readers runs read for b.N experts from several goroutines.
func readers(b *testing.B, n int, size int64, read func(expert int, dst []byte) error, stride uint64) {
	b.SetBytes(size)
	b.ReportAllocs()
	b.ResetTimer()
	var next atomic.Int64
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			dst := make([]byte, stride)
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				if err := read(int(i*7%benchCount), dst); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkReadRecord reads from the page cache and packs; MB/s of the file's bytes.
func BenchmarkReadRecord(b *testing.B) {
	for _, typ := range benchTypes {
		o := benchExperts(b, typ)
		var size int64
		for _, x := range o.file.Tensors[1:] {
			size += x.Size / benchCount
		}
		for _, n := range []int{1, 4} {
			b.Run(fmt.Sprintf("%v/%d", typ, n), func(b *testing.B) {
				readers(b, n, size, func(e int, dst []byte) error {
					return o.ReadRecord(context.Background(), 0, e, dst)
				}, o.records[0].Stride)
			})
			b.Run(fmt.Sprintf("%v/%d/pread", typ, n), func(b *testing.B) {
				readers(b, n, size, func(e int, dst []byte) error {
					for _, x := range o.file.Tensors[1:] {
						k := x.Size / benchCount
						if _, err := o.file.ReadAt(dst[:k], x.Offset+int64(e)*k); err != nil {
							return err
						}
						dst = dst[k:]
					}
					return nil
				}, uint64(size))
			})
		}
	}
}

// BenchmarkReadBand reads a whole dense weight of 64 MiB.
func BenchmarkReadBand(b *testing.B) {
	r := random(b)
	for _, typ := range benchTypes {
		rows := 64 << 20 / (typ.BlockBytes() * 2048 / typ.BlockSize())
		p := &program.Plan{Model: &program.Model{}, Embed: &program.Embed{Tensor: "w"}, Weights: []*program.Weight{{Name: "w", Tensors: []string{"w"}}}}
		o := open(b, write(b, noise(r, "w", typ, 2048, rows)), 0, func(*gguf.File) *program.Plan { return p })
		b.Run(typ.String(), func(b *testing.B) {
			b.SetBytes(o.file.Tensors[0].Size)
			b.ReportAllocs()
			for b.Loop() {
				if err := o.ReadBand(context.Background(), 0, 0, ignore); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEmbedRows reads one token's row, as a decode step does.
func BenchmarkEmbedRows(b *testing.B) {
	o := open(b, write(b, noise(random(b), "w", ggml.Q6_K, 2048, 1000)), 0, everything)
	row := make([]float32, 2048)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := o.EmbedRows([]int32{int32(i % 1000)}, row); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPackedRecord reads records of a store from the page cache; MB/s of the
// file's bytes, as above.
func BenchmarkPackedRecord(b *testing.B) {
	for _, typ := range []ggml.Type{ggml.Q4_0, ggml.Q8_0, ggml.Q6_K} {
		o := benchExperts(b, typ)
		dir := b.TempDir()
		ingest(b, o, dir, store.IngestOptions{})
		p := source(b, o, dir)
		var size int64
		for _, x := range o.file.Tensors[1:] {
			size += x.Size / benchCount
		}
		for _, n := range []int{1, 4} {
			b.Run(fmt.Sprintf("%v/%d", typ, n), func(b *testing.B) {
				readers(b, n, size, func(e int, dst []byte) error {
					return p.ReadRecord(context.Background(), 0, e, dst)
				}, o.records[0].Stride)
			})
		}
	}
}

// BenchmarkChecksum is the cost of checking what is in a CPU's cache.
func BenchmarkChecksum(b *testing.B) {
	buf := make([]byte, 256<<10)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		crc32.Checksum(buf, crc32.MakeTable(crc32.Castagnoli))
	}
}
