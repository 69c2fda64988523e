package store

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

const (
	// batchBytes is about how much of the source and of the store is in memory for
	// each batch; a single record may be larger.
	batchBytes = 16 << 20
	// pieceBytes is the most that one read of the source asks for: large enough
	// for an HTTP request to pay, small enough for several at once.
	pieceBytes = 4 << 20
	// pieceReaders read pieces of one batch at once.
	pieceReaders = 4
)

// batch is a run of blocks or of one layer's records on their way into the store.
type batch struct {
	first, n int        // checksums
	layer    *layerAt   // of records; nil for blocks
	expert   int        // the first
	raw      span       // the source's bytes of records
	out      []byte     // as the store has them
	sums     []uint32   // of out
	ready    chan error // gives one value when the source's bytes are there
}

// span is bytes of the GGUF's address space: stretches, each from its offset on.
type span []stretch

type stretch struct {
	off    int64
	data   []byte
	tensor string
}

// ReadAt implements io.ReaderAt over the stretches, for a reader of records.
func (s span) ReadAt(p []byte, off int64) (int, error) {
	for _, x := range s {
		if off >= x.off && off-x.off < int64(len(x.data)) {
			if n := copy(p, x.data[off-x.off:]); n == len(p) {
				return n, nil
			}
		}
	}
	return 0, fmt.Errorf("BUG: store: have no %d bytes at %d in the batch: %w", len(p), off, io.ErrUnexpectedEOF)
}

// next makes b the batch from checksum first on; false where there is none.
func (in *Ingest) next(b *batch, first int) bool {
	l := in.layout
	*b = batch{first: first, raw: b.raw[:0], out: b.out, sums: b.sums, ready: make(chan error, 1)}
	switch {
	case first >= l.sums:
		return false
	case first < l.blocks:
		b.n = min(batchBytes/blockBytes, l.blocks-first)
		b.grow(min(int64(b.n)*blockBytes, l.dense-int64(first)*blockBytes))
		return true
	}
	for i := range l.layers {
		if x := &l.layers[i]; first < x.first+x.Experts {
			b.layer, b.expert = x, first-x.first
			b.n = max(1, min(int(batchBytes/x.slot), x.Experts-b.expert))
			b.grow(int64(b.n) * x.slot)
			return true
		}
	}
	panic("BUG: store: checksums of no layer")
}

func (b *batch) grow(n int64) {
	b.out = slices.Grow(b.out[:0], int(n))[:n]
	b.sums = slices.Grow(b.sums[:0], b.n)[:b.n]
}

// place is the file that the batch belongs in, and where.
func (b *batch) place() (file string, off int64) {
	if b.layer == nil {
		return denseFile, int64(b.first) * blockBytes
	}
	return expertsFile, b.layer.at + int64(b.expert)*b.layer.slot
}

// load reads what the batch is made of: blocks to where they belong, records into
// memory first.
func (in *Ingest) load(ctx context.Context, b *batch) error {
	want := span(nil)
	if b.layer == nil {
		want = in.blocks(b)
	} else {
		b.raw = in.records(b)
		want = b.raw
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(pieceReaders)
	for len(want) > 0 {
		n := want.neighbours()
		if n > 1 {
			near := want[:n]
			g.Go(func() error { return in.readNear(ctx, near) })
			want = want[n:]
			continue
		}
		x := want[0]
		for off := 0; off < len(x.data); off += pieceBytes {
			part := x.data[off:min(off+pieceBytes, len(x.data))]
			g.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return in.source.readAt(part, x.off+int64(off), x.tensor)
			})
		}
		want = want[1:]
	}
	return g.Wait()
}

// neighbours is how many stretches from the first on lie so close that one read for
// all of them is better than one for each: the little tensors between the large ones.
func (s span) neighbours() int {
	const gap = 64 << 10
	for n := 1; n < len(s); n++ {
		last, x := s[n-1], s[n]
		between := x.off - last.off - int64(len(last.data))
		if between < 0 || between > gap || x.off+int64(len(x.data))-s[0].off > pieceBytes {
			return n
		}
	}
	return len(s)
}

// readNear reads neighbours by one read.
func (in *Ingest) readNear(ctx context.Context, near span) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	first, last := near[0], near[len(near)-1]
	all := make([]byte, last.off+int64(len(last.data))-first.off)
	if err := in.source.readAt(all, first.off, first.tensor); err != nil {
		return err
	}
	for _, x := range near {
		copy(x.data, all[x.off-first.off:])
	}
	return nil
}

// blocks are the stretches of dense tensors in a batch, each to be read to its
// place in out; what lies between them is zero.
func (in *Ingest) blocks(b *batch) (out span) {
	clear(b.out)
	_, from := b.place()
	to := from + int64(len(b.out))
	for _, t := range in.layout.tensors {
		start, end := max(t.at, from), min(t.at+t.Size, to)
		if start < end {
			out = append(out, stretch{t.Offset + start - t.at, b.out[start-from : end-from], t.Name})
		}
	}
	return out
}

// records are the stretches that a batch of experts is made of: of each tensor
// their neighbouring slices.
func (in *Ingest) records(b *batch) span {
	out, old := b.raw[:0], b.raw[:cap(b.raw)]
	for _, band := range in.source.records[b.layer.Layer.Layer].bands {
		for _, r := range band.runs {
			n := int64(b.n-1)*r.next + int64(r.chunks)*int64(chunkBytes(r.typ))
			var data []byte
			if i := len(out); i < len(old) {
				data = old[i].data
			}
			data = slices.Grow(data[:0], int(n))[:n]
			out = append(out, stretch{r.off + int64(b.expert)*r.next, data, r.tensor})
		}
	}
	return out
}

// pack makes records of what was read, on all CPUs, and computes the checksums.
func (in *Ingest) pack(ctx context.Context, b *batch) error {
	if b.layer == nil {
		for i := range b.sums {
			b.sums[i] = checksum(b.out[i*blockBytes : min((i+1)*blockBytes, len(b.out))])
		}
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	memory := &reader{data: b.raw}
	for i := range b.n {
		g.Go(func() error {
			slot := b.out[int64(i)*b.layer.slot:][:b.layer.slot]
			rec := in.source.records[b.layer.Layer.Layer]
			scratch := in.source.small.get()
			defer in.source.small.put(scratch)
			if err := memory.readRecord(ctx, rec, b.expert+i, 0, 1, slot, scratch); err != nil {
				return fmt.Errorf("layer %d expert %d: %w", b.layer.Layer.Layer, b.expert+i, err)
			}
			b.sums[i] = checksum(slot)
			return nil
		})
	}
	return g.Wait()
}
