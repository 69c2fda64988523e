package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sync/errgroup"
)

// batches is how many batches are under way: two being read, one packed, one
// written.
const batches = 4

// writing is an ingest at work. Batches go through three goroutines, which read,
// pack and write; a fourth one makes checkpoints.
type writing struct {
	*Ingest
	d              *folder
	o              IngestOptions
	dense, experts *os.File
	journal        *journal

	mu   sync.Mutex
	sums []uint32 // of all that is written
}

// write takes the store from the first len(sums) checksums to its end.
func (in *Ingest) write(ctx context.Context, d *folder, sums []uint32, o IngestOptions) (err error) {
	w := &writing{Ingest: in, d: d, o: o, sums: sums}
	defer func() { err = w.full(err) }()
	if err := w.open(o.Validators); err != nil {
		return err
	}
	defer w.close()
	if err := w.all(ctx); err != nil {
		return err
	}
	if o.Unchanged != nil {
		if err := o.Unchanged(); err != nil {
			return err
		}
	}
	return in.finish(d, w.sums)
}

// open opens the files and puts down what is known from the start.
func (w *writing) open(validators []string) (err error) {
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if err := w.d.replace(headersFile, w.headers); err != nil {
		return err
	}
	if w.dense, err = w.d.write(denseFile); err != nil {
		return err
	}
	if w.experts, err = w.d.write(expertsFile); err != nil {
		return err
	}
	if err := w.d.sync(); err != nil {
		return err
	}
	w.journal, err = w.d.newJournal(&journalHead{Version: Version, Validators: validators, Manifest: w.manifest}, w.sums)
	return err
}

func (w *writing) close() {
	for _, f := range []*os.File{w.dense, w.experts} {
		if f != nil {
			_ = f.Close() // what counts was synced
		}
	}
	if w.journal != nil {
		w.journal.close()
	}
}

// all writes all data and syncs it. When it fails, a last checkpoint keeps what
// was written.
func (w *writing) all(ctx context.Context) error {
	g, inner := errgroup.WithContext(ctx)
	read, packed, free := make(chan *batch, 1), make(chan *batch), make(chan *batch, batches)
	for range batches {
		free <- &batch{}
	}
	g.Go(func() error { defer close(read); return w.readAll(inner, g, free, read) })
	g.Go(func() error { defer close(packed); return w.packAll(inner, read, packed) })
	written := make(chan struct{})
	g.Go(func() error { defer close(written); return w.writeAll(inner, packed, free) })
	g.Go(func() error { return w.checkpoints(inner, written) })
	if err := g.Wait(); err != nil {
		return err
	}
	if n := len(w.sums); n != w.layout.sums {
		panic(fmt.Sprintf("BUG: store: have %d checksums of %d", n, w.layout.sums))
	}
	for _, x := range []struct {
		f    *os.File
		size int64
	}{{w.dense, w.layout.dense}, {w.experts, w.layout.experts}} {
		if err := errors.Join(x.f.Truncate(x.size), x.f.Sync()); err != nil {
			return err
		}
	}
	return nil
}

// readAll starts the reading of batches in order.
func (w *writing) readAll(ctx context.Context, g *errgroup.Group, free <-chan *batch, read chan<- *batch) error {
	for first := len(w.written()); ; {
		b, ok := receive(ctx, free)
		if !ok {
			return ctx.Err()
		}
		if !w.next(b, first) {
			return nil
		}
		first += b.n
		g.Go(func() error {
			err := w.load(ctx, b)
			b.ready <- err
			return err
		})
		if !send(ctx, read, b) {
			return ctx.Err()
		}
	}
}

func (w *writing) packAll(ctx context.Context, read <-chan *batch, packed chan<- *batch) error {
	for {
		b, ok := receive(ctx, read)
		if !ok {
			return ctx.Err()
		}
		if err := <-b.ready; err != nil {
			return err
		}
		if err := w.pack(ctx, b); err != nil {
			return err
		}
		if !send(ctx, packed, b) {
			return ctx.Err()
		}
	}
}

func (w *writing) writeAll(ctx context.Context, packed <-chan *batch, free chan<- *batch) error {
	dense, experts := w.layout.end(len(w.written()))
	done := dense + experts
	for {
		b, ok := receive(ctx, packed)
		if !ok {
			return ctx.Err()
		}
		if err := w.put(b); err != nil {
			return err
		}
		w.mu.Lock()
		w.sums = append(w.sums, b.sums...)
		w.mu.Unlock()
		if done += int64(len(b.out)); w.o.Progress != nil {
			w.o.Progress(uint64(done), uint64(w.layout.dense+w.layout.experts))
		}
		free <- b // as many as it has room for
	}
}

// put writes a batch to its place.
func (w *writing) put(b *batch) error {
	name, off := b.place()
	if w.o.fault != nil {
		if err := w.o.fault(name, off); err != nil {
			return w.d.fault(name, err)
		}
	}
	f := w.dense
	if name == expertsFile {
		f = w.experts
	}
	if _, err := f.WriteAt(b.out, off); err != nil {
		return w.d.fault(name, err)
	}
	return nil
}

// written are the checksums of what is written.
func (w *writing) written() []uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sums
}

// The time between checkpoints is checkpointEvery, or so much more that they take
// a twentieth of the time at most.
const (
	checkpointEvery = 100 * time.Millisecond
	checkpointShare = 20
)

// checkpoints makes them until all is written, and a last one when it is, or when
// there is no more to come.
func (w *writing) checkpoints(ctx context.Context, written <-chan struct{}) error {
	kept := len(w.written())
	for wait := checkpointEvery; ; {
		last := false
		select {
		case <-time.After(wait):
		case <-written: // which ends with the context, too
			last = true
		}
		start := time.Now()
		var err error
		if kept, err = w.checkpoint(kept); err != nil || last {
			return err
		}
		wait = max(checkpointEvery, checkpointShare*time.Since(start))
	}
}

// checkpoint puts what is written on disk for good and says so in the journal,
// which has the first kept checksums. It returns how many it has then.
func (w *writing) checkpoint(kept int) (int, error) {
	sums := w.written()
	if len(sums) == kept {
		return kept, nil
	}
	if kept < w.layout.blocks {
		if err := w.dense.Sync(); err != nil {
			return kept, w.d.fault(denseFile, err)
		}
	}
	if len(sums) > w.layout.blocks {
		if err := w.experts.Sync(); err != nil {
			return kept, w.d.fault(expertsFile, err)
		}
	}
	return len(sums), w.journal.add(sums[kept:])
}

// full says what to do where a disk is full.
func (w *writing) full(err error) error {
	if err == nil || !diskFull(err) {
		return err
	}
	dense, experts := w.layout.end(len(w.written()))
	left := w.layout.bytes() - dense - experts
	return fmt.Errorf("%w: %s are to come: make room, then ingest again: it goes on from here", err, humanize.BytesN(uint64(left), 3))
}

// receive is the next of c; false where c is closed or the context has ended.
func receive[T any](ctx context.Context, c <-chan T) (v T, ok bool) {
	select {
	case v, ok = <-c:
		return v, ok
	case <-ctx.Done():
		return v, false
	}
}

// send gives v to c unless the context ends first.
func send[T any](ctx context.Context, c chan<- T, v T) bool {
	select {
	case c <- v:
		return true
	case <-ctx.Done():
		return false
	}
}
