package gpu

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMapUnderCollection forces collections between the start of a map and its callback, where the binding's own MapAsync
// loses its handle and crashes the process.
func TestMapUnderCollection(t *testing.T) {
	d := testDevice(t)
	b, err := d.NewBuffer(Scratch, "src", 256, UsageCopySrc|UsageCopyDst)
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.NewReadback("r", 256)
	if err != nil {
		t.Fatal(err)
	}
	var c Commands
	r.Copy(&c, 0, b, 0, 256)
	for i := range 300 {
		data := make([]byte, 256)
		data[7] = byte(i)
		if err := d.Write(b, 0, data); err != nil {
			t.Fatal(err)
		}
		if err := d.Submit(&c); err != nil {
			t.Fatal(err)
		}
		// The owner starts the map, collects, and only then goes on to poll.
		req := d.request(func(d *Device, r *request) error {
			err := runMap(d, r)
			runtime.GC()
			return err
		})
		req.buf = r.b
		if err := d.sendWait(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if r.b.view[7] != byte(i) {
			t.Fatalf("round %d: have %d, want %d", i, r.b.view[7], byte(i))
		}
		if err := r.Unmap(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWaitCancelled ends a wait early: the mapping goes on, the next Wait gets it, and meanwhile nothing can use the buffer.
func TestWaitCancelled(t *testing.T) {
	d := testDevice(t)
	slow := newSlow(t, d)
	r, err := d.NewReadback("r", 256)
	if err != nil {
		t.Fatal(err)
	}
	r.Copy(slow, 0, slow.refs[0].g.buffers[0], 0, 256)
	if err := d.Submit(slow); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waited := startWait(t, r, ctx)
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Fatalf("have %v, want the cancellation", err)
	}
	if err := d.Submit(slow); err == nil || !strings.Contains(err.Error(), "being mapped") {
		t.Errorf("have %v, want a submit refused while the buffer is being mapped", err)
	}
	view, err := r.Wait(t.Context())
	if err != nil || len(view) != 256 {
		t.Fatalf("have %d bytes, error %v, want 256", len(view), err)
	}
	if _, err := r.Wait(t.Context()); err == nil {
		t.Error("have no error for a second Wait, want one")
	}
	if err := r.Unmap(); err != nil {
		t.Error(err)
	}
	if err := d.Sync(t.Context()); err != nil {
		t.Error(err)
	}
}

// startWait starts a Wait and returns once the owner has it; its result comes through the channel.
func startWait(t *testing.T, r *Readback, ctx context.Context) <-chan error {
	t.Helper()
	waited := make(chan error, 1)
	go func() { _, err := r.Wait(ctx); waited <- err }()
	for pending := false; !pending; {
		if err := r.b.d.do(func() error { pending = r.b.state == statePending; return nil }); err != nil {
			t.Fatal(err)
		}
		if len(waited) > 0 {
			t.Fatalf("the wait is over already: %v", <-waited)
		}
	}
	return waited
}

// TestUnmapWaits gives up a wait with Unmap: it returns when the GPU is done, and the next wait is for the next submit. (With
// the library's own way of calling a mapping off, that one came too early.)
func TestUnmapWaits(t *testing.T) {
	d := testDevice(t)
	slow := newSlow(t, d)
	src := slow.refs[0].g.buffers[0]
	r, err := d.NewReadback("r", 256)
	if err != nil {
		t.Fatal(err)
	}
	r.Copy(slow, 0, src, 0, 256)
	var zero Commands
	zero.Clear(src, 0, 256)
	for round := range 3 {
		if err := d.Submit(slow); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waited := startWait(t, r, ctx)
		cancel()
		<-waited
		if err := r.Unmap(); err != nil {
			t.Fatal(err)
		}
		if err := d.Submit(&zero, slow); err != nil {
			t.Fatal(err)
		}
		view, err := r.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := bytes.Clone(view)
		if err := r.Unmap(); err != nil {
			t.Fatal(err)
		}
		want := make([]byte, 256)
		if err := d.Read(t.Context(), src, 0, want); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) || bytes.Equal(want, make([]byte, 256)) {
			t.Fatalf("round %d: have %x, want %x", round, got[:16], want[:16])
		}
	}
}

// TestReleaseWhileMapping releases a buffer under a wait, and cancels a Read.
func TestReleaseWhileMapping(t *testing.T) {
	d := testDevice(t)
	slow := newSlow(t, d)
	src := slow.refs[0].g.buffers[0]
	r, err := d.NewReadback("r", 256)
	if err != nil {
		t.Fatal(err)
	}
	r.Copy(slow, 0, src, 0, 256)
	if err := d.Submit(slow); err != nil {
		t.Fatal(err)
	}
	waited := startWait(t, r, context.Background())
	r.Release()
	if err := <-waited; err == nil || !strings.Contains(err.Error(), "released") {
		t.Errorf("have %v, want a released buffer", err)
	}
	if err := d.Submit(slow); err == nil || !strings.Contains(err.Error(), "released") {
		t.Errorf("have %v, want a released buffer refused", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	got := make([]byte, 256)
	if err := d.Read(ctx, src, 0, got); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("have %v, want the deadline", err)
	}
	if err := d.Read(t.Context(), src, 0, got); err != nil || bytes.Equal(got, make([]byte, 256)) {
		t.Errorf("have %x, error %v, want what the kernel wrote", got[:16], err)
	}
}

// TestReadAfterCancelled reads when the mapping of a cancelled Read has come to its end meanwhile.
func TestReadAfterCancelled(t *testing.T) {
	d := testDevice(t)
	slow := newSlow(t, d)
	src := slow.refs[0].g.buffers[0]
	if err := d.Submit(slow); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	got := make([]byte, 256)
	if err := d.Read(ctx, src, 0, got); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("have %v, want the deadline", err)
	}
	if err := d.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // the owner hears of the mapping's end a little later
	if err := d.Read(t.Context(), src, 0, got); err != nil || bytes.Equal(got, make([]byte, 256)) {
		t.Errorf("have %x, error %v, want what the kernel wrote", got[:16], err)
	}
}

func TestMapWrite(t *testing.T) {
	d := testDevice(t)
	st, err := d.NewBuffer(Staging, "stage", 1000, UsageMapWrite|UsageCopySrc)
	if err != nil {
		t.Fatal(err)
	}
	dst, err := d.NewBuffer(Pool, "slot", 1000, UsageCopyDst|UsageCopySrc)
	if err != nil {
		t.Fatal(err)
	}
	var c Commands
	c.Copy(st, 0, dst, 0, 1000)
	got := make([]byte, 1000)
	for round := range 3 {
		view, err := st.Map(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range view {
			view[i] = byte(i*7 + round)
		}
		if err := d.Submit(&c); err == nil || !strings.Contains(err.Error(), "stage is mapped") {
			t.Fatalf("have %v, want the submit of a mapped buffer refused", err)
		}
		if err := st.Unmap(); err != nil {
			t.Fatal(err)
		}
		if err := d.Submit(&c); err != nil {
			t.Fatal(err)
		}
		if err := d.Read(t.Context(), dst, 0, got); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if got[i] != byte(i*7+round) {
				t.Fatalf("round %d, byte %d: have %d, want %d", round, i, got[i], byte(i*7+round))
			}
		}
	}
	if _, err := dst.Map(t.Context()); err == nil {
		t.Error("have no error for mapping an unmappable buffer, want one")
	}
}
