package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluicehost/sluice/core/gpu"
)

// Keeper is a source that takes records which leave the GPU, to give them back faster than it would read them.
// Its methods may be called from several goroutines at once.
type Keeper interface {
	// Wants says that an expert's record leaves the GPU, and reports whether Keep should follow.
	Wants(layer, expert int) bool
	// Keep gives the record, which is valid during the call.
	Keep(layer, expert int, data []byte)
}

// keeping copies records that leave the GPU back to the source, beside the loads that take their slots: no load waits for
// it, and where all its buffers are in use a record is not kept.
type keeping struct {
	to      Keeper
	free    chan *gpu.Readback
	all     []*gpu.Readback
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// keepBuffers is the number of records on their way back for a number of readers: they take about as long as a read.
func keepBuffers(readers int) int { return readers }

func (m *Model) makeKeeping(readers int) (*keeping, error) {
	to, ok := m.source.(Keeper)
	if !ok {
		return nil, fmt.Errorf("engine: have a source that keeps nothing, want one that does")
	}
	k := &keeping{to: to, free: make(chan *gpu.Readback, keepBuffers(readers))}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	for i := range keepBuffers(readers) {
		r, err := m.device.NewReadback(fmt.Sprintf("kept record %d", i), m.largestRecord())
		if err != nil {
			return k, err
		}
		k.all = append(k.all, r)
		k.free <- r
	}
	return k, nil
}

// leave records the copy of what is in a slot, if it is wanted and there is a buffer, and returns what to do when that
// was submitted (nil for nothing).
func (k *keeping) leave(c *gpu.Commands, x *experts, bank, slot int) (submitted func()) {
	if k == nil {
		return nil
	}
	h := x.holds[bank][slot]
	if !h.any || !k.to.Wants(h.Layer, h.Expert) {
		return nil
	}
	var r *gpu.Readback
	select {
	case r = <-k.free:
	default:
		return nil
	}
	stride := x.stride[bank]
	r.Copy(c, 0, x.banks[bank], uint64(slot)*stride, stride)
	return func() {
		k.running.Go(func() {
			defer func() { k.free <- r }()
			data, err := r.Wait(k.ctx)
			if err != nil {
				return // the model closes, or the device is lost, as others will say
			}
			k.to.Keep(h.Layer, h.Expert, data[:stride])
			_ = r.Unmap() // a next copy to it would fail and say why
		})
	}
}

func (k *keeping) close() {
	if k == nil {
		return
	}
	k.cancel()
	k.running.Wait()
	for _, r := range k.all {
		r.Release()
	}
}
