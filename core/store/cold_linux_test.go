package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/ggml"
	"golang.org/x/sys/unix"
)

// evict takes a file out of the page cache.
func evict(b *testing.B, path string) {
	b.Helper()
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkColdRecord reads each record of two layers once from the disk, in an order
// that jumps about, by 1 and by 4 readers; MB/s of records. "again" reads what was
// checked before.
func BenchmarkColdRecord(b *testing.B) {
	o := benchModel(b, ggml.Q4_K)
	dir := b.TempDir()
	ingest(b, o, dir, store.IngestOptions{})
	const experts = 32
	total := 2 * experts * int64(o.records[0].Stride)
	all := func(b *testing.B, s store.Source, n int) {
		next := make(chan int, 2*experts)
		for i := range 2 * experts {
			next <- i * 37 % (2 * experts)
		}
		close(next)
		done := make(chan error)
		for range n {
			go func() {
				dst := make([]byte, o.records[0].Stride)
				var err error
				for i := range next {
					if e := s.ReadRecord(context.Background(), i/experts, i%experts, dst); e != nil {
						err = e
					}
				}
				done <- err
			}()
		}
		for range n {
			if err := <-done; err != nil {
				b.Error(err)
			}
		}
	}
	for _, n := range []int{1, 4} {
		for name, x := range map[string]struct {
			path  string
			again bool
		}{"gguf": {path: o.file.Parts[0].Name}, "store": {path: filepath.Join(dir, "experts.bin")}, "store again": {path: filepath.Join(dir, "experts.bin"), again: true}} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(total)
				for b.Loop() {
					b.StopTimer()
					var s store.Source = o
					if name != "gguf" {
						s = source(b, o, dir)
						if x.again {
							all(b, s, n)
						}
					}
					evict(b, x.path)
					b.StartTimer()
					all(b, s, n)
				}
			})
		}
	}
}
