package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/tools/synthgguf/synth"
)

func tiny(t testing.TB, arch string, seed uint64) *synth.Model {
	t.Helper()
	m, err := synth.New(synth.Options{Arch: arch, Shape: "tiny", Type: "q4_0", Seed: seed, Locality: synth.DefaultLocality, Dwell: synth.DefaultDwell})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func sum(t *testing.T, m *synth.Model, cores int) [32]byte {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	chunks, size := layout(m)
	h := sha256.New()
	n := &counter{w: h}
	if err := stream(t.Context(), n, chunks, &reporter{out: io.Discard, size: size, next: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if n.n != size {
		t.Errorf("have %d bytes, want the layout's %d", n.n, size)
	}
	return [32]byte(h.Sum(nil))
}

type counter struct {
	w io.Writer
	n uint64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += uint64(len(p))
	return c.w.Write(p)
}

// The same seed gives the same bytes, on however many cores; another seed gives others.
func TestDeterministic(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	first := sum(t, tiny(t, "qwen35moe", seed), 1)
	if again := sum(t, tiny(t, "qwen35moe", seed), 5); again != first {
		t.Error("the bytes depend on the number of cores")
	}
	if other := sum(t, tiny(t, "qwen35moe", seed+1), 2); other == first {
		t.Error("two seeds give the same bytes")
	}
}

// What is in the file is what the model says, where the reader looks for it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "made.gguf")
	m := tiny(t, "gemma4", 7)
	var progress bytes.Buffer
	if err := write(t.Context(), &progress, m, path, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(progress.String(), "/s") {
		t.Errorf("have progress %q, want a rate", progress.String())
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range m.Tensors {
		want := &m.Tensors[i]
		tensor, ok := f.Tensor(want.Name)
		if !ok {
			t.Fatalf("no tensor %s", want.Name)
		}
		made, read := make([]byte, want.Size()), make([]byte, tensor.Size)
		want.Fill(made, 0)
		if _, err := f.ReadAt(read, tensor.Offset); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(made, read) {
			t.Errorf("tensor %s differs in the file", want.Name)
		}
	}
	if err := write(t.Context(), io.Discard, m, path, false); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("over a file: have error %v, want one that names --force", err)
	}
	if err := write(t.Context(), io.Discard, m, path, true); err != nil {
		t.Error(err)
	}
	alone(t, dir, "made.gguf")
}

// alone checks that a folder has these files and no others.
func alone(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	if strings.Join(have, " ") != strings.Join(names, " ") {
		t.Errorf("have files %q, want %q", have, names)
	}
}

func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	m, err := synth.New(synth.Options{Arch: "lfm2moe", Shape: "24b-a2b", Type: "q4_0", Layers: 6})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := write(ctx, io.Discard, m, filepath.Join(dir, "made.gguf"), false); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("have error %v, want the context's", err)
	}
	alone(t, dir)
}

func TestWriteErrors(t *testing.T) {
	free := func(string) (uint64, bool) { return 10, true }
	if err := enough("here", 11, free); err == nil || !strings.Contains(err.Error(), "here: have 10 B free, want 11 B") {
		t.Errorf("have error %v, want one with both sizes", err)
	}
	if err := enough("here", 10, free); err != nil {
		t.Error(err)
	}
	if err := enough("here", 1<<62, func(string) (uint64, bool) { return 0, false }); err != nil {
		t.Errorf("unknown space: have error %v", err)
	}
	if err := write(t.Context(), io.Discard, tiny(t, "lfm2moe", 1), filepath.Join(t.TempDir(), "no", "made.gguf"), false); err == nil {
		t.Error("a folder that is not there: have no error")
	}
	m := tiny(t, "lfm2moe", 1)
	chunks, size := layout(m)
	full := errors.New("disk full")
	err := stream(t.Context(), failing{full}, chunks, &reporter{out: io.Discard, size: size})
	if !errors.Is(err, full) {
		t.Errorf("have error %v, want the writer's", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestFreeSpace(t *testing.T) {
	if free, known := freeSpace(t.TempDir()); known && free == 0 {
		t.Error("have no space at all")
	}
	if _, known := freeSpace(filepath.Join(t.TempDir(), "no")); known {
		t.Error("a folder that is not there has space")
	}
}

func BenchmarkStream(b *testing.B) {
	m := tiny(b, "lfm2moe", 1)
	chunks, size := layout(m)
	b.SetBytes(int64(size))
	for b.Loop() {
		if err := stream(b.Context(), io.Discard, chunks, &reporter{out: io.Discard, size: size, next: time.Now().Add(time.Hour)}); err != nil {
			b.Fatal(err)
		}
	}
}

// Neither a folder nor a link, which may be one to a device, gives way to a new file, and what fails half-way costs nothing of the
// file that is there.
func TestForceSpares(t *testing.T) {
	dir := t.TempDir()
	folder, link, old := filepath.Join(dir, "folder"), filepath.Join(dir, "link"), filepath.Join(dir, "old")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Symlink(os.DevNull, link), os.WriteFile(old, []byte("old"), 0o600)); err != nil {
		t.Skip(err)
	}
	m := tiny(t, "lfm2moe", 1)
	for _, path := range []string{folder, link} {
		for name, err := range map[string]error{
			"write":  write(t.Context(), io.Discard, m, path, true),
			"record": record(t.Context(), io.Discard, m, 1, 3, nil, path, true),
		} {
			if err == nil || !strings.Contains(err.Error(), "is no plain file") {
				t.Errorf("%s to %s: have error %v", name, path, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := errors.Join(write(ctx, io.Discard, m, old, true), record(ctx, io.Discard, m, 1, 3, nil, old, true)); !errors.Is(err, context.Canceled) {
		t.Errorf("have error %v, want the context's", err)
	}
	if have, err := os.ReadFile(old); string(have) != "old" {
		t.Errorf("have %d bytes after an interrupt, error %v, want the file as it was", len(have), err)
	}
	alone(t, dir, "folder", "link", "old")
}
