package gpu_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

// Prepared commands run when they are submitted, once, also where a buffer of theirs was mapped while they were encoded.
func TestPrepare(t *testing.T) {
	d := gputest.Open(t)
	a, b := newBuffer(t, d, 8, anyUse), newBuffer(t, d, 8, anyUse)
	p, g := newKernel(t, d, double, doubleTypes, a, b)
	back, err := d.NewReadback("back", 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(back.Release)
	var list gpu.Commands
	list.Dispatch(p, g, 1, 1, 1)
	back.Copy(&list, 0, b, 0, 8)
	var next gpu.Prepared
	err = d.Prepare(&next, &list)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint32(3) {
		if err := d.Write(a, 0, words(i, i+7)); err != nil {
			t.Fatal(err)
		}
		if err := next.Submit(); err != nil {
			t.Fatal(err)
		}
		if err := next.Submit(); err == nil || !strings.Contains(err.Error(), "submitted or discarded before") {
			t.Errorf("submitted twice: have error %v", err)
		}
		data, err := back.Wait(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if want := words(2*i+1, 2*i+15); string(data) != string(want) {
			t.Errorf("have %v, want %v", data, want)
		}
		if err = d.Prepare(&next, &list); err != nil { // while back is mapped
			t.Fatal(err)
		}
		if err := next.Submit(); err == nil || !strings.Contains(err.Error(), "is mapped") {
			t.Errorf("a mapped buffer: have error %v", err)
		}
		if err := back.Unmap(); err != nil {
			t.Fatal(err)
		}
	}
	b.Release()
	if err := next.Submit(); err == nil {
		t.Error("a released buffer: have no error")
	}
	next.Discard()
	next.Discard()
}

// A mistake in recording is told, and the device works on.
func TestPrepareRefused(t *testing.T) {
	d := gputest.Open(t)
	var list gpu.Commands
	list.Dispatch(nil, nil, 1, 1, 1)
	if err := d.Prepare(new(gpu.Prepared), &list); err == nil {
		t.Error("have no error")
	}
	if err := d.Submit(&gpu.Commands{}); err != nil {
		t.Error(err)
	}
}
