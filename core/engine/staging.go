package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/core/stream"
)

// staging is a ring of buffers that the CPU maps: records are read straight into them, and one copy
// each brings them to their slots. Queue writes would copy once more, on one thread.
type staging struct {
	free    chan *transfer // mapped
	all     []*transfer
	ctx     context.Context
	cancel  context.CancelFunc
	mapping sync.WaitGroup
	begun   atomic.Int32 // transfers that have not ended
	waiting atomic.Int32 // readers that wait for a buffer
	took    atomic.Int64 // nanoseconds in waiting for buffers, unmapping and submitting, of all readers together
}

// transfer is one of the buffers, and the record that is read into it: the pool's Transfer.
type transfer struct {
	experts *experts
	buffer  *gpu.Buffer
	used    chan struct{} // has a value when the buffer is to be mapped
	mapped  []byte
	err     error // of mapping it

	key    stream.Key
	bank   int
	slot   int
	pieces int
	data   []byte                   // of mapped, the record's stride
	sums   [store.MostPieces]uint32 // of pieces that are read
}

// stagingBuffers is the length of the ring for a number of readers: each may have begun a record that is waited for and
// one that is read ahead.
func stagingBuffers(readers int) int { return 2 * readers }

func (x *experts) makeStaging(n int, size uint64) (*staging, error) {
	s := &staging{free: make(chan *transfer, n)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for i := range n {
		b, err := x.model.device.NewBuffer(gpu.Staging, fmt.Sprintf("staging %d", i), size, gpu.UsageMapWrite|gpu.UsageCopySrc)
		if err != nil {
			return s, err
		}
		t := &transfer{experts: x, buffer: b, used: make(chan struct{}, 1)}
		s.all = append(s.all, t)
		s.mapping.Go(func() { t.remap(s) })
		t.used <- struct{}{}
	}
	return s, nil
}

// remap maps the buffer whenever it was used, and then it is free: beforehand, so that no read begins with waiting for the GPU's
// owner, which may be encoding.
func (t *transfer) remap(s *staging) {
	for {
		select {
		case <-t.used:
		case <-s.ctx.Done():
			return
		}
		t.mapped, t.err = t.buffer.Map(s.ctx)
		s.free <- t
	}
}

// spent counts time since start as spent on uploading.
func (s *staging) spent(start time.Time) { s.took.Add(int64(time.Since(start))) }

// scarce reports whether records that have arrived should not keep their buffers until a step submits something.
func (s *staging) scarce(arrived int) bool { return 2*arrived >= len(s.all) || s.waiting.Load() > 0 }

// take returns a free buffer. Where there is none, those of records that have arrived may become so by a submit.
func (x *experts) take(ctx context.Context) (*transfer, error) {
	s := x.staging
	select {
	case t := <-s.free:
		return t, nil
	default:
	}
	s.waiting.Add(1) // before the look at what has arrived: what comes later sees it
	defer s.waiting.Add(-1)
	if err := x.flush(); err != nil {
		return nil, err
	}
	select {
	case t := <-s.free:
		return t, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *staging) release() {
	s.cancel()
	s.mapping.Wait()
	for _, t := range s.all {
		t.buffer.Release()
	}
}

// Begin implements stream.Loader: it waits for a buffer that is mapped.
func (x *experts) Begin(ctx context.Context, key stream.Key, bank, slot int) (stream.Transfer, int, error) {
	defer x.staging.spent(time.Now())
	t, err := x.take(ctx)
	if err != nil {
		return nil, 0, err
	}
	if err := t.err; err != nil {
		t.used <- struct{}{}
		return nil, 0, err
	}
	x.staging.begun.Add(1)
	t.key, t.bank, t.slot, t.data = key, bank, slot, t.mapped[:x.stride[bank]]
	t.pieces = x.model.source.Pieces(key.Layer, key.Expert)
	return t, t.pieces, nil
}

// Read implements stream.Transfer.
func (t *transfer) Read(ctx context.Context, piece int) (err error) {
	t.sums[piece], err = t.experts.model.source.ReadPiece(ctx, t.key.Layer, t.key.Expert, piece, t.pieces, t.data)
	return err
}

// End implements stream.Transfer: it has the record copied to its slot.
func (t *transfer) End(err error) error {
	x := t.experts
	defer x.staging.spent(time.Now())
	rest := x.staging.begun.Add(-1)
	t.data = nil
	if err == nil {
		err = x.model.source.Check(t.key.Layer, t.key.Expert, t.sums[:t.pieces])
	}
	if err != nil {
		x.staging.free <- t // as it is
		return err
	}
	if err := t.buffer.Unmap(); err != nil {
		t.used <- struct{}{}
		return err
	}
	return x.deliver(t, int(rest))
}
