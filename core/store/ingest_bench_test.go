package store_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// benchModel is dense tensors of 64 MiB and two layers of experts of about 6 MB in
// Q4, half a GiB or so in all.
func benchModel(b *testing.B, typ ggml.Type) *opened {
	const n = 32
	r := random(b)
	p := &program.Plan{Model: &program.Model{Experts: n}, Embed: &program.Embed{Tensor: "embd"}}
	tensors := []gguftest.Tensor{noise(r, "embd", ggml.F16, 2048, 16<<10), noise(r, "norm", ggml.F32, 2048)}
	for i := range uint32(2) {
		rec := &program.Record{Layer: i}
		for _, x := range []struct {
			name       string
			cols, rows uint64
		}{{"gate", 2048, 1792}, {"up", 2048, 1792}, {"down", 1792, 2048}} {
			name := fmt.Sprint(x.name, i)
			tensors = append(tensors, noise(r, name, typ, x.cols, x.rows, n))
			rec.Parts = append(rec.Parts, &program.Weight{Name: name, Tensors: []string{name}})
		}
		p.Records = append(p.Records, rec)
	}
	return open(b, write(b, tensors...), 0, func(*gguf.File) *program.Plan { return p })
}

// BenchmarkIngest makes a store of a file in the page cache, on disk for good; MB/s of
// the file's bytes. Beside it the same file is copied, in the same way.
func BenchmarkIngest(b *testing.B) {
	for _, typ := range []ggml.Type{ggml.Q4_0, ggml.Q4_K, ggml.Q8_0} {
		o := benchModel(b, typ)
		b.Run(typ.String(), func(b *testing.B) {
			b.SetBytes(o.file.Size())
			for i := 0; b.Loop(); i++ {
				dir := filepath.Join(b.TempDir(), fmt.Sprint(i))
				ingest(b, o, dir, store.IngestOptions{})
				b.StopTimer()
				os.RemoveAll(dir)
				b.StartTimer()
			}
		})
		b.Run(typ.String()+"/copy", func(b *testing.B) {
			b.SetBytes(o.file.Size())
			for b.Loop() {
				to, err := os.Create(filepath.Join(b.TempDir(), "copy"))
				if err == nil {
					_, err = io.CopyBuffer(struct{ io.Writer }{to}, io.NewSectionReader(o.file, 0, o.file.Size()), make([]byte, 1<<20))
				}
				if err == nil {
					err = to.Sync()
				}
				if err != nil {
					b.Fatal(err)
				}
				to.Close()
				b.StopTimer()
				os.Remove(to.Name())
				b.StartTimer()
			}
		})
	}
}

// BenchmarkVerify reads a store's files from the page cache and checks them.
func BenchmarkVerify(b *testing.B) {
	o := benchModel(b, ggml.Q4_0)
	dir := b.TempDir()
	b.SetBytes(ingest(b, o, dir, store.IngestOptions{}).Size)
	for b.Loop() {
		if faults, err := store.Verify(context.Background(), dir, nil); err != nil || len(faults) > 0 {
			b.Fatal(faults, err)
		}
	}
}
