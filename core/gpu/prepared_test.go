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
	submit := func() error { return d.SubmitPrepared(nil, []*gpu.Prepared{&next}) }
	err = d.Prepare(&next, &list)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint32(3) {
		if err := d.Write(a, 0, words(i, i+7)); err != nil {
			t.Fatal(err)
		}
		if err := submit(); err != nil {
			t.Fatal(err)
		}
		if err := submit(); err == nil || !strings.Contains(err.Error(), "submitted or discarded before") {
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
		if err := submit(); err == nil || !strings.Contains(err.Error(), "is mapped") {
			t.Errorf("a mapped buffer: have error %v", err)
		}
		if err := back.Unmap(); err != nil {
			t.Fatal(err)
		}
	}
	b.Release()
	if err := submit(); err == nil {
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

// Lists before and behind prepared ones run in order with them, as one submit; what fails submits nothing.
func TestSubmitPrepared(t *testing.T) {
	d := gputest.Open(t)
	a, b := newBuffer(t, d, 8, anyUse), newBuffer(t, d, 8, anyUse)
	p, g := newKernel(t, d, double, doubleTypes, a, b)
	q, h := newKernel(t, d, double, doubleTypes, b, a)
	back, err := d.NewReadback("back", 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(back.Release)
	var there, again, before, behind gpu.Commands
	there.Dispatch(p, g, 1, 1, 1)
	again.Dispatch(q, h, 1, 1, 1)
	before.Clear(a, 0, 4)
	back.Copy(&behind, 0, a, 0, 8)
	var first, second gpu.Prepared
	for range 2 {
		if err := d.Write(a, 0, words(5, 7)); err != nil {
			t.Fatal(err)
		}
		for list, p := range map[*gpu.Commands]*gpu.Prepared{&there: &first, &again: &second} {
			if err := d.Prepare(p, list); err != nil {
				t.Fatal(err)
			}
		}
		var wrong gpu.Commands
		wrong.Clear(a, 1, 4)
		for what, err := range map[string]error{
			"the same twice":  d.SubmitPrepared(nil, []*gpu.Prepared{&first, &first}),
			"a wrong list":    d.SubmitPrepared(nil, []*gpu.Prepared{&first, &second}, &wrong),
			"one unprepared":  d.SubmitPrepared([]*gpu.Commands{&before}, []*gpu.Prepared{&first, new(gpu.Prepared)}),
			"the lists alone": d.SubmitPrepared([]*gpu.Commands{&wrong}, nil),
		} {
			if err == nil {
				t.Errorf("%s: have no error", what)
			}
		}
		if err := d.SubmitPrepared([]*gpu.Commands{&before}, []*gpu.Prepared{&first, &second}, &behind); err != nil {
			t.Fatal(err)
		}
		data, err := back.Wait(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if want := words(3, 31); string(data) != string(want) { // twice doubled, and 1 added each time
			t.Errorf("have %v, want %v", data, want)
		}
		if err := back.Unmap(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is released can't be prepared: the library would stop the process.
func TestPrepareReleased(t *testing.T) {
	d := gputest.Open(t)
	var next gpu.Prepared
	for _, what := range []string{"group", "pipeline", "buffer", "timer"} {
		a, b := newBuffer(t, d, 8, anyUse), newBuffer(t, d, 8, anyUse)
		p, g := newKernel(t, d, double, doubleTypes, a, b)
		var list gpu.Commands
		switch what {
		case "group":
			list.Dispatch(p, g, 1, 1, 1)
			g.Release()
		case "pipeline":
			list.Dispatch(p, g, 1, 1, 1)
			p.Release()
		case "buffer":
			list.Copy(a, 0, b, 0, 8)
			b.Release()
		case "timer":
			if !d.Limits().Timestamps {
				continue
			}
			timer, err := d.NewTimer(t.Context(), "timer", 1)
			if err != nil {
				t.Fatal(err)
			}
			list.Timestamp(timer, 0)
			timer.Release()
		}
		if err := d.Prepare(&next, &list); err == nil || !strings.Contains(err.Error(), "released") {
			t.Errorf("a released %s: have error %v", what, err)
		}
		next.Discard()
	}
}
