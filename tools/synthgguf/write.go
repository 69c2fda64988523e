package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sync/errgroup"

	"github.com/sluicehost/sluice/tools/synthgguf/synth"
)

// write makes the file.
func write(ctx context.Context, progress io.Writer, m *synth.Model, path string, force bool) error {
	chunks, size := layout(m)
	if err := replaceable(path, force); err != nil {
		return err
	}
	if err := enough(filepath.Dir(path), size, freeSpace); err != nil {
		return err
	}
	start := time.Now()
	r := &reporter{out: progress, size: size, start: start, next: start.Add(time.Second)}
	if err := replace(path, force, func(f *os.File) error { return stream(ctx, f, chunks, r) }); err != nil {
		return err
	}
	took := time.Since(start)
	_, err := fmt.Fprintf(progress, "synthgguf: %s: %s, %d tensors, in %.1f s: %s/s handed to the system, %s/s until it was on the disk\n", path,
		humanize.Bytes(size), len(m.Tensors), took.Seconds(), rate(size, r.written), rate(size, took))
	return err
}

// replace makes a file. It is written under another name and renamed when it is whole and on the disk; an error or an
// interrupt leaves what was there.
func replace(path string, force bool, fill func(*os.File) error) (err error) {
	if err := replaceable(path, force); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := fill(f); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// replaceable refuses what a new file must not take the place of: a rename would do so with a device, too.
func replaceable(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no plain file: want another path", path)
	case !force:
		return fmt.Errorf("%s is there already: remove it, or give --force", path)
	}
	return nil
}

// enough says whether a folder has room, where that is known.
func enough(dir string, size uint64, free func(string) (uint64, bool)) error {
	if have, known := free(dir); known && have < size {
		return fmt.Errorf("%s: have %s free, want %s: free some, or give fewer --layers", dir, humanize.Bytes(have), humanize.Bytes(size))
	}
	return nil
}

func rate(bytes uint64, took time.Duration) string {
	return humanize.Bytes(uint64(float64(bytes) / max(took.Seconds(), 1e-3)))
}

// chunkBytes is how much is made and written at once, about.
const chunkBytes = 8 << 20

// piece is a run of a chunk: rows of a tensor, or bytes as they are (the header, and padding).
type piece struct {
	tensor *synth.Tensor
	row    uint64
	size   uint64
	bytes  []byte
}

// chunk is a run of the file.
type chunk []piece

func (c chunk) size() (n uint64) {
	for _, p := range c {
		n += p.size
	}
	return n
}

// layout cuts the file into chunks.
func layout(m *synth.Model) (chunks []chunk, size uint64) {
	var now chunk
	add := func(p piece) {
		if p.size == 0 {
			return
		}
		if len(now) > 0 && now.size()+p.size > chunkBytes {
			chunks = append(chunks, now)
			now = nil
		}
		now = append(now, p)
		size += p.size
	}
	header := m.Header()
	add(piece{bytes: header, size: uint64(len(header))})
	for i := range m.Tensors {
		t := &m.Tensors[i]
		step := max(1, chunkBytes/t.RowBytes())
		for row := uint64(0); row < t.Rows(); row += step {
			add(piece{tensor: t, row: row, size: min(step, t.Rows()-row) * t.RowBytes()})
		}
		padding := synth.Padded(t.Size()) - t.Size()
		add(piece{bytes: make([]byte, padding), size: padding})
	}
	return append(chunks, now), size
}

// fill makes the chunk's bytes over dst.
func (c chunk) fill(dst []byte) {
	for _, p := range c {
		if p.tensor != nil {
			p.tensor.Fill(dst[:p.size], p.row)
		} else {
			copy(dst, p.bytes)
		}
		dst = dst[p.size:]
	}
}

// stream makes chunks on all cores and writes them in order, from one goroutine.
func stream(ctx context.Context, w io.Writer, chunks []chunk, r *reporter) error {
	workers := runtime.GOMAXPROCS(0)
	ready := make([]chan []byte, len(chunks))
	for i := range ready {
		ready[i] = make(chan []byte, 1)
	}
	buffers := make(chan []byte, workers+2) // what is made or waits to be written; bounds the memory
	for range cap(buffers) {
		buffers <- nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { // hands chunks out in order, so that the one that is written next is always under way
		makers, ctx := errgroup.WithContext(ctx)
		makers.SetLimit(workers)
		for i, c := range chunks {
			select {
			case b := <-buffers:
				makers.Go(func() error {
					if n := int(c.size()); cap(b) < n {
						b = make([]byte, n)
					} else {
						b = b[:n]
					}
					c.fill(b)
					ready[i] <- b
					return nil
				})
			case <-ctx.Done():
				return errors.Join(ctx.Err(), makers.Wait())
			}
		}
		return makers.Wait()
	})
	g.Go(func() error {
		for _, c := range ready {
			select {
			case b := <-c:
				if _, err := w.Write(b); err != nil {
					return err
				}
				r.wrote(len(b))
				buffers <- b
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return g.Wait()
}

// reporter prints how far the writing is, once a second.
type reporter struct {
	out         io.Writer
	size, done  uint64
	start, next time.Time
	written     time.Duration // until the last byte was handed over
}

func (r *reporter) wrote(n int) {
	r.done += uint64(n)
	now := time.Now()
	r.written = now.Sub(r.start)
	if now.Before(r.next) {
		return
	}
	r.next = now.Add(time.Second)
	left := time.Duration(float64(r.written) * float64(r.size-r.done) / float64(r.done))
	fmt.Fprintf(r.out, "synthgguf: %s of %s, %s/s, %.0f s left\n", humanize.Bytes(r.done), humanize.Bytes(r.size), rate(r.done, r.written), left.Seconds())
}
