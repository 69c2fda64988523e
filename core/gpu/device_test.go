package gpu

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"
)

// testDevice opens a device of the test's own, closed at its end. (gputest can't be used here: it imports this package.)
func testDevice(t testing.TB) *Device {
	t.Helper()
	d, err := Open(context.Background(), Options{Adapter: os.Getenv("GPU_ADAPTER")})
	if err != nil && os.Getenv("REQUIRE_GPU") == "1" {
		t.Fatalf("REQUIRE_GPU=1: %v", err)
	} else if err != nil {
		t.Skipf("no GPU: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestBindingLayout checks the layouts that shim.go assumes.
func TestBindingLayout(t *testing.T) {
	word := unsafe.Sizeof(uintptr(0))
	for name, have := range map[string]uintptr{
		"Instance": unsafe.Sizeof(wgpu.Instance{}), "Adapter": unsafe.Sizeof(wgpu.Adapter{}), "Device": unsafe.Sizeof(wgpu.Device{}),
		"ComputePipeline": unsafe.Sizeof(wgpu.ComputePipeline{}), "BindGroup": unsafe.Sizeof(wgpu.BindGroup{}), "QuerySet": unsafe.Sizeof(wgpu.QuerySet{}),
	} {
		if have != word {
			t.Errorf("wgpu.%s: have %d bytes, want %d: the binding changed, see shim.go", name, have, word)
		}
	}
	if have := unsafe.Sizeof(wgpu.Buffer{}); have != 2*word {
		t.Errorf("wgpu.Buffer: have %d bytes, want %d: the binding changed, see shim.go", have, 2*word)
	}
}

func TestOpen(t *testing.T) {
	d := testDevice(t)
	l := d.Limits()
	t.Logf("%s\n%+v", d.Info(), l)
	if d.Info().Name == "" || d.Info().Backend == "" {
		t.Errorf("have info %+v, want a name and a backend", d.Info())
	}
	if l.MaxBufferSize <= 256<<20 || l.MaxStorageBinding < 128<<20 || l.MaxStorageBuffersPerStage < 8 {
		t.Errorf("have limits %+v, want more than WebGPU's defaults", l)
	}
	if os.Getenv("XDG_RUNTIME_DIR") == "" {
		t.Error("XDG_RUNTIME_DIR is unset")
	}
	all, err := Adapters()
	if err != nil || len(all) == 0 {
		t.Fatalf("have adapters %v, error %v, want some", all, err)
	}
	for i := 1; i < len(all); i++ {
		if all[i].preference() < all[i-1].preference() {
			t.Errorf("have %s after %s", all[i], all[i-1])
		}
	}
}

func TestOpenByName(t *testing.T) {
	d := testDevice(t)
	same, err := Open(t.Context(), Options{Adapter: strings.ToUpper(d.Info().Name)})
	if err != nil {
		t.Fatal(err)
	}
	if same.Info() != d.Info() {
		t.Errorf("have %s, want %s", same.Info(), d.Info())
	}
	if err := same.Close(); err != nil {
		t.Error(err)
	}
	_, err = Open(t.Context(), Options{Adapter: "Voodoo2"})
	if !errors.Is(err, ErrNoAdapter) || !strings.Contains(err.Error(), d.Info().Name) {
		t.Errorf("have %v, want ErrNoAdapter with the names there are", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("have %v, want context.Canceled", err)
	}
}

func TestClosed(t *testing.T) {
	d := testDevice(t)
	b, err := d.NewBuffer(Dense, "b", 4096, UsageCopySrc|UsageCopyDst)
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.NewReadback("r", 4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	var c Commands
	c.Clear(b, 0, 4)
	_, wait := r.Wait(t.Context())
	_, make := d.NewBuffer(Dense, "late", 4, UsageCopyDst)
	_, kernel := d.NewPipeline("late", "@compute @workgroup_size(1) fn main() {}", nil)
	for what, err := range map[string]error{
		"Submit": d.Submit(&c), "Write": d.Write(b, 0, []byte{1, 2, 3, 4}), "Read": d.Read(t.Context(), b, 0, []byte{1, 2, 3, 4}), "Sync": d.Sync(t.Context()),
		"Wait": wait, "Unmap": r.Unmap(), "NewBuffer": make, "NewPipeline": kernel,
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: have %v, want ErrClosed", what, err)
		}
	}
	b.Release()
	r.Release()
	if m := d.Memory(); m.Total != 0 || m.Created != m.Freed {
		t.Errorf("have %+v, want nothing left", m)
	}
}

// TestLost plays the driver's part: the callback sets this flag.
func TestLost(t *testing.T) {
	d := testDevice(t)
	slow := newSlow(t, d)
	if err := d.Submit(slow); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() { waited <- d.Sync(context.Background()) }()
	time.Sleep(20 * time.Millisecond)
	if err := d.do(func() error { d.n.c.lost = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; !errors.Is(err, ErrLost) {
		t.Errorf("have %v, want ErrLost", err)
	}
	if err := d.Submit(slow); !errors.Is(err, ErrLost) {
		t.Errorf("have %v, want ErrLost", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Submit(slow); !errors.Is(err, ErrClosed) {
		t.Errorf("have %v, want ErrClosed", err)
	}
}

// newSlow records a kernel that keeps the GPU busy for some tenths of a second at least.
func newSlow(t testing.TB, d *Device) *Commands {
	t.Helper()
	p, err := d.NewPipeline("slow", `
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	var a = id.x;
	for (var i = 0u; i < 60000u; i++) { a = a * 1664525u + 1013904223u; }
	x[id.x & 63u] = a;
}`, []BindingType{Storage})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.NewBuffer(Scratch, "slow", 256, UsageStorage|UsageCopySrc|UsageCopyDst)
	if err != nil {
		t.Fatal(err)
	}
	g, err := d.NewBindGroup(p, "slow", []Range{{Buffer: b}})
	if err != nil {
		t.Fatal(err)
	}
	groups := uint32(16)
	if !d.Limits().CPU {
		groups = 60000
	}
	var c Commands
	for range 20 {
		c.Dispatch(p, g, groups, 1, 1)
	}
	return &c
}

// TestCloseWhileWaiting closes under a wait that can't be over yet.
func TestCloseWhileWaiting(t *testing.T) {
	d := testDevice(t)
	slow := newSlow(t, d)
	r, err := d.NewReadback("r", 256)
	if err != nil {
		t.Fatal(err)
	}
	r.Copy(slow, 0, slow.refs[0].g.buffers[0], 0, 256)
	start := time.Now()
	if err := d.Submit(slow); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error)
	go func() { waits <- d.Sync(context.Background()) }()
	go func() { _, err := r.Wait(context.Background()); waits <- err }()
	time.Sleep(20 * time.Millisecond)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-waits; !errors.Is(err, ErrClosed) {
			t.Errorf("have %v after %v, want ErrClosed", err, time.Since(start))
		}
	}
}

func TestSlowIsSlow(t *testing.T) {
	d := testDevice(t)
	slow := newSlow(t, d)
	for range 2 {
		start := time.Now()
		if err := d.Submit(slow); err != nil {
			t.Fatal(err)
		}
		if err := d.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 100*time.Millisecond {
			t.Errorf("have %v, want 100ms at least: the tests of waiting need it", took)
		} else {
			t.Log(took)
		}
	}
}
