package gpu_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

// own opens a device of the test's own, where the account must be nobody else's.
func own(t *testing.T) *gpu.Device {
	t.Helper()
	name := gputest.Open(t).Info().Name
	d, err := gpu.Open(t.Context(), gpu.Options{Adapter: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestMemory(t *testing.T) {
	d := own(t)
	mk := func(k gpu.Kind, size uint64) *gpu.Buffer {
		b, err := d.NewBuffer(k, "b", size, anyUse)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a, b, c := mk(gpu.Dense, 1000), mk(gpu.Dense, 4096), mk(gpu.KV, 1)
	check := func(when string, want gpu.Memory) {
		t.Helper()
		m := d.Memory()
		if m.Total != want.Total || m.PeakTotal != want.PeakTotal || m.Live[gpu.Dense] != want.Live[gpu.Dense] || m.Live[gpu.KV] != want.Live[gpu.KV] ||
			m.Requested != want.Requested || m.Created != want.Created || m.Freed != want.Freed {
			t.Errorf("%s: have %+v, want %+v", when, m, want)
		}
	}
	check("three", gpu.Memory{Live: map[gpu.Kind]uint64{gpu.Dense: 5120, gpu.KV: 1024}, Total: 6144, PeakTotal: 6144, Requested: 5100, Created: 3})
	b.Release()
	b.Release()
	check("one released", gpu.Memory{Live: map[gpu.Kind]uint64{gpu.Dense: 1024, gpu.KV: 1024}, Total: 2048, PeakTotal: 6144, Requested: 1004, Created: 3, Freed: 1})
	a.Release()
	c.Release()
	check("all released", gpu.Memory{PeakTotal: 6144, Created: 3, Freed: 3})
	if p := d.Memory().Peak[gpu.Dense]; p != 5120 {
		t.Errorf("have a peak of %d, want 5120", p)
	}
}

func TestReserved(t *testing.T) {
	for _, tt := range []struct{ n, want uint64 }{
		{1, 1024}, {1024, 1024}, {1025, 2048}, {100_000, 131_072}, {1_100_000, 2 << 20}, {3_350_016, 4 << 20},
		{32<<20 - 1, 32 << 20}, {32 << 20, 32 << 20}, {35 << 20, 35 << 20}, {35<<20 + 1, 35<<20 + 256}, {2 << 30, 2 << 30},
	} {
		if have := gpu.Reserved(tt.n); have != tt.want {
			t.Errorf("%d: have %d, want %d", tt.n, have, tt.want)
		}
	}
}

func TestBudget(t *testing.T) {
	d := own(t)
	d.SetBudget(1 << 20)
	b, err := d.NewBuffer(gpu.Pool, "first", 1<<19, anyUse)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.NewBuffer(gpu.Pool, "second", 1<<19+4, anyUse)
	if !errors.Is(err, gpu.ErrBudget) || !strings.Contains(err.Error(), "second") || !strings.Contains(err.Error(), "1.0 MiB") {
		t.Errorf("have %v, want ErrBudget with the name and the numbers", err)
	}
	if _, err = d.NewBuffer(gpu.Pool, "exact", 1<<19, anyUse); err != nil {
		t.Errorf("have %v for what fits exactly, want none", err)
	}
	b.Release()
	d.SetBudget(0)
	if _, err := d.NewBuffer(gpu.Pool, "free", 2<<20, anyUse); err != nil {
		t.Error(err)
	}
}

func TestAllocationFailure(t *testing.T) {
	d := own(t)
	boom := errors.New("boom")
	d.SetAllocationHook(func(k gpu.Kind, label string, size uint64) error {
		if k == gpu.KV {
			return boom
		}
		return nil
	})
	if _, err := d.NewBuffer(gpu.KV, "kv.0", 64, anyUse); !errors.Is(err, boom) || !strings.Contains(err.Error(), "kv.0") {
		t.Errorf("have %v, want boom with the name", err)
	}
	if _, err := d.NewBuffer(gpu.Dense, "w", 64, anyUse); err != nil {
		t.Error(err)
	}
	if m := d.Memory(); m.Total != 1024 || m.Created != 1 {
		t.Errorf("have %+v, want one buffer", m)
	}
}

// TestOutOfMemory asks for more than any driver gives: the error comes back, and the device still works. It takes all memory
// of the machine: an H200's driver goes on in system memory when the GPU's own is full, and the CPU driver promises what is
// not there.
func TestOutOfMemory(t *testing.T) {
	if os.Getenv("GPU_TEST_OUT_OF_MEMORY") != "1" {
		t.Skip("takes all memory of the machine: run with GPU_TEST_OUT_OF_MEMORY=1 where that is fine")
	}
	d := own(t)
	var all []*gpu.Buffer
	for range 1000 {
		b, err := d.NewBuffer(gpu.Pool, "big", d.Limits().MaxBufferSize/2, anyUse)
		if err != nil {
			if !errors.Is(err, gpu.ErrOutOfMemory) {
				t.Errorf("have %v, want ErrOutOfMemory", err)
			}
			break
		}
		all = append(all, b)
	}
	t.Logf("%d buffers of %d bytes", len(all), d.Limits().MaxBufferSize/2)
	for _, b := range all {
		b.Release()
	}
	b := newBuffer(t, d, 256, anyUse)
	if got := readWords(t, d, b); got[0] != 0 {
		t.Errorf("have %d, want 0", got[0])
	}
}

func TestBufferRefused(t *testing.T) {
	d := gputest.Open(t)
	before := d.Memory().Created
	for _, tt := range []struct {
		name, label string
		size        uint64
		use         gpu.Usage
		want        string
	}{
		{"empty", "w", 0, anyUse, "size 0"},
		{"oversized", "w", d.Limits().MaxBufferSize + 4, anyUse, "split it"},
		{"absurd", "w", ^uint64(0), anyUse, "split it"},
		{"no usage", "w", 4, 0, "no usage"},
		{"two maps", "w", 4, gpu.UsageMapRead | gpu.UsageMapWrite, "one of map-read and map-write"},
		{"NUL", "w\x00", 4, anyUse, "NUL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := d.NewBuffer(gpu.Dense, tt.label, tt.size, tt.use)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "w") {
				t.Errorf("have %v, want an error with %q", err, tt.want)
			}
		})
	}
	if now := d.Memory().Created; now != before {
		t.Errorf("have %d buffers booked, want none", now-before)
	}
}

// TestWriteRead writes and reads random pieces, also across the sizes at which Write and Read split.
func TestWriteRead(t *testing.T) {
	d := gputest.Open(t)
	rng := randomSeed(t)
	const size = 40 << 20
	b := newBuffer(t, d, size, anyUse)
	want := make([]byte, size)
	write := func(off, n int) {
		t.Helper()
		fill(rng, want[off:off+n])
		if err := d.Write(b, uint64(off), want[off:off+n]); err != nil {
			t.Fatal(err)
		}
	}
	write(0, size)
	write(4, 35<<20)
	for range 20 {
		off := rng.IntN(size/4-1000) * 4
		write(off, rng.IntN(1000)*4)
	}
	for _, at := range [][2]int{{0, size}, {1, 1}, {3, 6}, {size - 1, 1}, {5, 17 << 20}, {size, 0}} {
		got := make([]byte, at[1])
		if err := d.Read(t.Context(), b, uint64(at[0]), got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want[at[0]:at[0]+at[1]]) {
			t.Errorf("%d bytes at %d differ", at[1], at[0])
		}
	}
	if err := d.Clear(b, 8, 16); err != nil {
		t.Fatal(err)
	}
	clear(want[8:24])
	got := make([]byte, 64)
	if err := d.Read(t.Context(), b, 0, got); err != nil || !bytes.Equal(got, want[:64]) {
		t.Errorf("after Clear: have %v (%v), want %v", got, err, want[:64])
	}
}

func fill(rng *rand.Rand, b []byte) {
	for i := 0; i+8 <= len(b); i += 8 {
		v := rng.Uint64()
		for j := range 8 {
			b[i+j] = byte(v >> (8 * j))
		}
	}
}

func TestTransferRefused(t *testing.T) {
	d := gputest.Open(t)
	b := newBuffer(t, d, 64, anyUse)
	plain := newBuffer(t, d, 64, gpu.UsageStorage)
	gone := newBuffer(t, d, 64, anyUse)
	gone.Release()
	for name, err := range map[string]error{
		"write past the end":  d.Write(b, 64, make([]byte, 4)),
		"write far past it":   d.Write(b, ^uint64(3), make([]byte, 8)),
		"write odd offset":    d.Write(b, 2, make([]byte, 4)),
		"write odd size":      d.Write(b, 0, make([]byte, 5)),
		"write without usage": d.Write(plain, 0, make([]byte, 4)),
		"write released":      d.Write(gone, 0, make([]byte, 4)),
		"read past the end":   d.Read(t.Context(), b, 60, make([]byte, 5)),
		"read without usage":  d.Read(t.Context(), plain, 0, make([]byte, 4)),
		"read released":       d.Read(t.Context(), gone, 0, make([]byte, 4)),
		"clear past the end":  d.Clear(b, 0, 68),
		"clear odd size":      d.Clear(b, 0, 2),
	} {
		if err == nil || !strings.Contains(err.Error(), "buffer") {
			t.Errorf("%s: have %v, want an error that names the buffer", name, err)
		}
	}
	if err := d.Write(b, 64, nil); err != nil {
		t.Errorf("writing nothing at the end: %v", err)
	}
}
