package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/core/stream"
)

// staging is a ring of buffers that the CPU maps: records are read straight into them, and one copy
// each brings them to their slots. Queue writes would copy once more, on one thread.
type staging struct {
	free chan *transfer
	all  []*transfer
	took atomic.Int64 // nanoseconds in mapping, unmapping and submitting, of all readers together
}

// transfer is one of the buffers, and the record that is read into it: the pool's Transfer.
type transfer struct {
	experts  *experts
	buffer   *gpu.Buffer
	commands gpu.Commands

	key    stream.Key
	bank   int
	slot   int
	pieces int
	data   []byte                   // mapped, of the record's stride
	sums   [store.MostPieces]uint32 // of pieces that are read
}

// stagingBuffers is the length of the ring for a number of readers: each may have begun a record that is waited for and
// one that is read ahead.
func stagingBuffers(readers int) int { return 2 * readers }

func (x *experts) makeStaging(n int, size uint64) (*staging, error) {
	s := &staging{free: make(chan *transfer, n)}
	for i := range n {
		b, err := x.model.device.NewBuffer(gpu.Staging, fmt.Sprintf("staging %d", i), size, gpu.UsageMapWrite|gpu.UsageCopySrc)
		if err != nil {
			return s, err
		}
		t := &transfer{experts: x, buffer: b}
		s.all = append(s.all, t)
		s.free <- t
	}
	return s, nil
}

// spent counts time since start as spent on uploading.
func (s *staging) spent(start time.Time) { s.took.Add(int64(time.Since(start))) }

func (s *staging) release() {
	for _, t := range s.all {
		t.buffer.Release()
	}
}

// Begin implements stream.Loader: it maps a buffer, and waits for the copy that used it last.
func (x *experts) Begin(ctx context.Context, key stream.Key, bank, slot int) (stream.Transfer, int, error) {
	defer x.staging.spent(time.Now())
	var t *transfer
	select {
	case t = <-x.staging.free:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	data, err := t.buffer.Map(ctx)
	if err != nil {
		x.staging.free <- t
		return nil, 0, err
	}
	t.key, t.bank, t.slot, t.data = key, bank, slot, data[:x.stride[bank]]
	t.pieces = x.model.source.Pieces(key.Layer, key.Expert)
	return t, t.pieces, nil
}

// Read implements stream.Transfer.
func (t *transfer) Read(ctx context.Context, piece int) (err error) {
	t.sums[piece], err = t.experts.model.source.ReadPiece(ctx, t.key.Layer, t.key.Expert, piece, t.pieces, t.data)
	return err
}

// End implements stream.Transfer: it submits the copy of the record to its slot.
func (t *transfer) End(err error) error {
	x := t.experts
	defer x.staging.spent(time.Now())
	defer func() { x.staging.free <- t }()
	t.data = nil
	if err == nil {
		err = x.model.source.Check(t.key.Layer, t.key.Expert, t.sums[:t.pieces])
	}
	if unmapped := t.buffer.Unmap(); err == nil { // else the first error says more
		err = unmapped
	}
	if err != nil {
		return err
	}
	return x.deliver(t)
}
