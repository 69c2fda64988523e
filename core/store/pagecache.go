package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sluicehost/sluice/core/gguf"
)

// PageCache is what the system keeps in memory of the files that a source reads records from: for measurements, which
// must know where reads come from. It is good until the source's next Prepare or Close.
type PageCache struct{ files *files }

// Size is the size of the files in bytes.
func (c PageCache) Size() (n int64) {
	for _, x := range c.files.all {
		n += x.size
	}
	return n
}

// Cached is how many bytes of the files are in memory. It looks at each page: a fraction of a second for a large file. It
// fails on systems other than Linux.
func (c PageCache) Cached() (n int64, err error) { return c.files.cached() }

// Drop makes the system forget the files, but for what others use and what is yet to be written. It costs little where
// little is cached. It fails on systems other than Linux.
func (c PageCache) Drop() error { return c.files.drop() }

// Uncache is Drop for what is yet to be written, too, and returns how many bytes are left: it takes as long as Cached.
func (c PageCache) Uncache() (left int64, err error) { return c.files.uncache() }

// Same fails, naming the file, where the other's files are not these: then what is done here is done to other pages than it reads.
func (c PageCache) Same(other PageCache) error {
	if have, want := len(other.files.all), len(c.files.all); have != want {
		return fmt.Errorf("store: have %d files, want the %d from before: start again", have, want)
	}
	for i, x := range c.files.all {
		y := other.files.all[i]
		old, err := x.handles[0].Stat()
		info, err2 := y.handles[0].Stat()
		if err = errors.Join(err, err2); err == nil && !os.SameFile(old, info) {
			err = errors.New("another file has taken its place: start again")
		}
		if err != nil {
			return fmt.Errorf("store: %s: %w", y.name, err)
		}
	}
	return nil
}

// fillPiece is what one read of Fill asks for.
const fillPiece = 4 << 20

// Fill reads the files through, so that the system keeps of them what it has room for. progress is told bytes, never from
// two goroutines at once. The source must not read past the page cache.
func (c PageCache) Fill(ctx context.Context, progress func(done, total uint64)) error {
	if c.files.direct {
		panic("BUG: store: filling the page cache by reads past it")
	}
	g, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	done, total := uint64(0), uint64(c.Size())
	for _, x := range c.files.all {
		next := int64(0)
		for range x.handles {
			g.Go(func() error {
				buf := make([]byte, fillPiece)
				for {
					mu.Lock()
					off := next
					next += fillPiece
					mu.Unlock()
					if off >= x.size {
						return nil
					}
					if err := ctx.Err(); err != nil {
						return err
					}
					n, err := x.read(buf[:min(fillPiece, x.size-off)], off)
					if err != nil {
						return err
					}
					mu.Lock()
					done += uint64(n)
					progress(done, total)
					mu.Unlock()
				}
			})
		}
	}
	return g.Wait()
}

// read reads all of buf at off of the file.
func (x *randomFile) read(buf []byte, off int64) (int, error) {
	h := <-x.idle
	defer func() { x.idle <- h }()
	n, err := h.ReadAt(buf, off)
	if n == len(buf) {
		return n, nil
	}
	return n, fmt.Errorf("store: %w", gguf.ShortRead(x.name, off+int64(n), x.size, err))
}

// uncache drops the files from the page cache, what is yet to be written first, and returns how many bytes of them are left in it.
func (f *files) uncache() (left int64, err error) {
	for _, x := range f.all {
		_ = x.handles[0].Sync() // what it could not write is left in the cache, and counted
	}
	if err := f.drop(); err != nil {
		return 0, err
	}
	return f.cached()
}

func (f *files) drop() error {
	for _, x := range f.all {
		if err := uncache(x.handles[0]); err != nil {
			return fmt.Errorf("store: %s: dropping it from the page cache: %w", x.name, err)
		}
	}
	return nil
}

func (f *files) cached() (n int64, err error) {
	for _, x := range f.all {
		m, err := cached(x.handles[0])
		if err != nil {
			return 0, fmt.Errorf("store: %s: looking at the page cache: %w", x.name, err)
		}
		n += m
	}
	return n, nil
}
