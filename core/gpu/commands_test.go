package gpu_test

import (
	"context"
	"fmt"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

const double = `
@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	if (id.x < arrayLength(&dst)) { dst[id.x] = 2u * src[id.x] + 1u; }
}`

var doubleTypes = []gpu.BindingType{gpu.ReadStorage, gpu.Storage}

func TestDispatch(t *testing.T) {
	d := gputest.Open(t)
	rng := randomSeed(t)
	a, b, c := newBuffer(t, d, 1000, anyUse), newBuffer(t, d, 1000, anyUse), newBuffer(t, d, 1000, anyUse)
	p, ab := newKernel(t, d, double, doubleTypes, a, b)
	bc, err := d.NewBindGroup(p, "bc", []gpu.Range{{Buffer: b}, {Buffer: c}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bc.Release)
	var first, second gpu.Commands
	first.Dispatch(p, ab, 4, 1, 1)
	first.Dispatch(p, bc, 4, 1, 1) // depends on the first
	second.Clear(b, 0, 8)
	second.Copy(c, 4, b, 4, 4)
	second.Dispatch(p, ab, 0, 1, 1) // runs nothing
	for round := range 3 {          // lists are reusable
		in := make([]uint32, 250)
		for i := range in {
			in[i] = rng.Uint32()
		}
		if err := d.Write(a, 0, words(in...)); err != nil {
			t.Fatal(err)
		}
		if err := d.Submit(&first, &second); err != nil {
			t.Fatal(err)
		}
		gotB, gotC := readWords(t, d, b), readWords(t, d, c)
		for i, v := range in {
			wantB, wantC := 2*v+1, 4*v+3
			if i == 0 {
				wantB = 0
			} else if i == 1 {
				wantB = wantC
			}
			if gotB[i] != wantB || gotC[i] != wantC {
				t.Fatalf("round %d, element %d: have %d and %d, want %d and %d", round, i, gotB[i], gotC[i], wantB, wantC)
			}
		}
	}
	if err := d.Submit(); err != nil {
		t.Errorf("an empty submit: %v", err)
	}
	if err := d.Submit(&gpu.Commands{}); err != nil {
		t.Errorf("an empty list: %v", err)
	}
}

// TestIndirect lets one kernel write the grid of the next, and of one that must not run.
func TestIndirect(t *testing.T) {
	d := gputest.Open(t)
	args := newBuffer(t, d, 24, anyUse|gpu.UsageIndirect)
	out := newBuffer(t, d, 256, anyUse)
	set, setGroup := newKernel(t, d, `
@group(0) @binding(0) var<storage, read_write> args: array<u32>;
@compute @workgroup_size(1)
fn main() { args[0] = 3u; args[1] = 1u; args[2] = 1u; args[3] = 0u; }`, []gpu.BindingType{gpu.Storage}, args)
	add, addGroup := newKernel(t, d, `
@group(0) @binding(0) var<storage, read_write> x: array<atomic<u32>>;
@compute @workgroup_size(1)
fn main() { atomicAdd(&x[0], 1u); }`, []gpu.BindingType{gpu.Storage}, out)
	if err := d.Write(args, 0, words(9, 9, 9, 9, 9, 9)); err != nil {
		t.Fatal(err)
	}
	var c gpu.Commands
	c.Dispatch(set, setGroup, 1, 1, 1)
	c.DispatchIndirect(add, addGroup, args, 0)
	c.DispatchIndirect(add, addGroup, args, 12)
	if err := d.Submit(&c); err != nil {
		t.Fatal(err)
	}
	if got := readWords(t, d, out)[0]; got != 3 {
		t.Errorf("have %d, want 3", got)
	}
	c.Reset()
	c.DispatchIndirect(set, setGroup, args, 0)
	if err := d.Submit(&c); err == nil || !strings.Contains(err.Error(), "holds its grid") {
		t.Errorf("have %v, want a grid that its own kernel writes refused", err)
	}
}

func TestSubmitRefused(t *testing.T) {
	d := gputest.Open(t)
	a, b := newBuffer(t, d, 256, anyUse), newBuffer(t, d, 256, anyUse)
	p, g := newKernel(t, d, double, doubleTypes, a, b)
	p2, g2 := newKernel(t, d, double, doubleTypes, a, b)
	most := d.Limits().MaxGroups
	plain := newBuffer(t, d, 256, gpu.UsageStorage)
	other := own(t)
	foreign := newBuffer(t, other, 256, anyUse)
	for _, tt := range []struct {
		name   string
		record func(*gpu.Commands)
		want   string
	}{
		{"grid", func(c *gpu.Commands) { c.Dispatch(p, g, 1, most+1, 1) }, "fold it"},
		{"group of another kernel", func(c *gpu.Commands) { c.Dispatch(p, g2, 1, 1, 1) }, "is of kernel"},
		{"no group", func(c *gpu.Commands) { c.Dispatch(p2, nil, 1, 1, 1) }, "without"},
		{"copy past the end", func(c *gpu.Commands) { c.Copy(a, 0, b, 128, 132) }, "within the buffer's 256"},
		{"copy onto itself", func(c *gpu.Commands) { c.Copy(a, 0, a, 128, 64) }, "two buffers"},
		{"copy odd", func(c *gpu.Commands) { c.Copy(a, 0, b, 0, 3) }, "multiples of 4"},
		{"copy usage", func(c *gpu.Commands) { c.Copy(plain, 0, b, 0, 4) }, "want copy-src"},
		{"copy nothing there", func(c *gpu.Commands) { c.Copy(nil, 0, b, 0, 4) }, "no buffer"},
		{"indirect usage", func(c *gpu.Commands) { c.DispatchIndirect(p, g, a, 0) }, "want indirect"},
		{"foreign", func(c *gpu.Commands) { c.Copy(foreign, 0, b, 0, 4) }, "another device"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c gpu.Commands
			c.Dispatch(p, g, 1, 1, 1)
			tt.record(&c)
			c.Dispatch(p, g, 1, 1, 1)
			err := d.Submit(&c)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "command 1") {
				t.Errorf("have %v, want an error at command 1 with %q", err, tt.want)
			}
			c.Reset()
			c.Dispatch(p, g, 1, 1, 1)
			if err := d.Submit(&c); err != nil {
				t.Errorf("after Reset: %v", err)
			}
		})
	}
}

// TestSubmitReleased submits lists whose objects are gone.
func TestSubmitReleased(t *testing.T) {
	d := gputest.Open(t)
	for _, gone := range []string{"buffer", "group", "kernel"} {
		a, b := newBuffer(t, d, 256, anyUse), newBuffer(t, d, 256, anyUse)
		p, g := newKernel(t, d, double, doubleTypes, a, b)
		var c gpu.Commands
		c.Dispatch(p, g, 1, 1, 1)
		if err := d.Submit(&c); err != nil {
			t.Fatal(err)
		}
		map[string]func(){"buffer": b.Release, "group": g.Release, "kernel": p.Release}[gone]()
		if err := d.Submit(&c); err == nil || !strings.Contains(err.Error(), gone) || !strings.Contains(err.Error(), "released") {
			t.Errorf("have %v, want the released %s named", err, gone)
		}
	}
}

// TestLibraryError makes a mistake that only the library sees: a bound range smaller than the shader's struct. (It does not see
// a range smaller than a fixed-size array outside a struct: the driver's bounds checks are all there is then.)
func TestLibraryError(t *testing.T) {
	d := gputest.Open(t)
	b := newBuffer(t, d, 16, anyUse)
	p, g := newKernel(t, d, `
struct S { a: array<vec4<u32>, 64> }
@group(0) @binding(0) var<storage, read_write> x: S;
@compute @workgroup_size(1) fn main() { x.a[0] = vec4<u32>(1u); }`, []gpu.BindingType{gpu.Storage}, b)
	var c gpu.Commands
	c.Dispatch(p, g, 1, 1, 1)
	for range 3 {
		if err := d.Submit(&c); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("have %v, want one line of error", err)
		} else {
			t.Log(err)
		}
	}
	a2, b2 := newBuffer(t, d, 256, anyUse), newBuffer(t, d, 256, anyUse)
	p2, g2 := newKernel(t, d, double, doubleTypes, a2, b2)
	c.Reset()
	c.Dispatch(p2, g2, 1, 1, 1)
	if err := d.Submit(&c); err != nil {
		t.Errorf("after the error: %v", err)
	}
	if got := readWords(t, d, b2)[0]; got != 1 {
		t.Errorf("have %d, want 1", got)
	}
}

// TestConcurrent uses one device from 16 goroutines at once, each with its own objects and numbers.
func TestConcurrent(t *testing.T) {
	d := gputest.Open(t)
	var wg gosync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			if err := oneWorker(t.Context(), d, uint32(w)); err != nil {
				t.Errorf("worker %d: %v", w, err)
			}
		})
	}
	wg.Wait()
}

func oneWorker(ctx context.Context, d *gpu.Device, w uint32) error {
	p, err := d.NewPipeline(fmt.Sprint("k", w), tiny(int(w)), []gpu.BindingType{gpu.Storage})
	if err != nil {
		return err
	}
	defer p.Release()
	for round := range uint32(10) {
		if err := oneRound(ctx, d, p, w, round); err != nil {
			return err
		}
	}
	if _, err := d.NewPipeline(fmt.Sprint("bad", w), "fn", nil); err == nil || !strings.Contains(err.Error(), fmt.Sprint("bad", w)) {
		return fmt.Errorf("have %v, want an error with the own label", err)
	}
	return nil
}

func oneRound(ctx context.Context, d *gpu.Device, p *gpu.Pipeline, w, round uint32) error {
	b, err := d.NewBuffer(gpu.Scratch, "b", 256, anyUse)
	if err != nil {
		return err
	}
	defer b.Release()
	g, err := d.NewBindGroup(p, "g", []gpu.Range{{Buffer: b}})
	if err != nil {
		return err
	}
	defer g.Release()
	r, err := d.NewReadback("r", 256)
	if err != nil {
		return err
	}
	defer r.Release()
	if err := d.Write(b, 0, words(round)); err != nil {
		return err
	}
	var c gpu.Commands
	c.Dispatch(p, g, 1, 1, 1)
	r.Copy(&c, 0, b, 0, 256)
	if err := d.Submit(&c); err != nil {
		return err
	}
	view, err := r.Wait(ctx)
	if err != nil {
		return err
	}
	if got, want := uint32(view[0])|uint32(view[1])<<8, round*3+w; got != want {
		return fmt.Errorf("round %d: have %d, want %d", round, got, want)
	}
	return r.Unmap()
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	d := gputest.Open(t)
	buf := newBuffer(t, d, 4096, anyUse)
	p, g := newKernel(t, d, tiny(1), []gpu.BindingType{gpu.Storage}, buf)
	back := newReadback(t, d, 256)
	data := words(1, 2, 3, 4)
	var c gpu.Commands
	n := testing.AllocsPerRun(100, func() {
		c.Reset()
		for range 20 {
			c.Dispatch(p, g, 1, 1, 1)
		}
		back.Copy(&c, 0, buf, 0, 256)
		if err := d.Write(buf, 0, data); err != nil {
			t.Fatal(err)
		}
		roundTrip(t, d, back, &c)
	})
	if n != 0 {
		t.Errorf("have %v allocations per step, want 0", n)
	}
}

func TestTimer(t *testing.T) {
	d := gputest.Open(t)
	if !d.Limits().Timestamps {
		t.Skip("this GPU has no timestamp queries")
	}
	buf := newBuffer(t, d, 4096, anyUse)
	p, g := newKernel(t, d, tiny(1), []gpu.BindingType{gpu.Storage}, buf)
	tm, err := d.NewTimer(t.Context(), "timer", 3)
	if err != nil {
		t.Fatal(err)
	}
	defer tm.Release()
	var c gpu.Commands
	c.Timestamp(tm, 0)
	for range 5 {
		c.Dispatch(p, g, 1, 1, 1)
	}
	c.Timestamp(tm, 1)
	for range 200 {
		c.Dispatch(p, g, 8, 1, 1)
	}
	c.Timestamp(tm, 2)
	c.ResolveTimer(tm, 3)
	for range 3 {
		if err := d.Submit(&c); err != nil {
			t.Fatal(err)
		}
		var at [3]time.Duration
		if err := tm.Read(t.Context(), at[:]); err != nil {
			t.Fatal(err)
		}
		if at[0] != 0 || at[1] <= 0 || at[2] <= at[1] {
			t.Errorf("have stamps %v, want three that grow from 0", at)
		}
	}
	c.Timestamp(tm, 3)
	if c.Err() == nil {
		t.Error("have no error for stamp 3 of 3, want one")
	}
	for _, n := range []int{0, -1, 4} {
		var c gpu.Commands
		if c.ResolveTimer(tm, n); c.Err() == nil {
			t.Errorf("have no error for %d stamps of 3 read, want one", n)
		}
	}
	for _, n := range []int{0, -1, 8193} {
		if _, err := d.NewTimer(t.Context(), "bad", n); err == nil {
			t.Errorf("have no error for %d stamps, want one", n)
		}
	}
}
