package gguf_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/sdk/ggml"
)

// splitModel is tensors() with metadata, an own alignment included, cut into
// parts of so many tensors; all in all there are 5.
func splitModel(counts ...int) []*gguftest.Model {
	m := tensors(64)
	m.Set("general.architecture", "abc")
	return m.Split(counts...)
}

func writeParts(t *testing.T, parts []*gguftest.Model) []string {
	t.Helper()
	paths, err := gguftest.WriteParts(t.TempDir(), "m-Q4_K", parts)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func open(t *testing.T, path string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return f
}

func TestOpenSplit(t *testing.T) {
	for name, counts := range map[string][]int{
		"two": {2, 3}, "three": {2, 1, 2}, "first-empty": {0, 3, 2}, "last-empty": {3, 2, 0}, "one": {5},
	} {
		t.Run(name, func(t *testing.T) {
			parts := splitModel(counts...)
			paths := writeParts(t, parts)
			var space []byte
			for _, path := range paths {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				space = append(space, b...)
			}
			for _, path := range paths {
				checkWhole(t, open(t, path), parts, space)
			}
		})
	}
}

// checkWhole checks an opened split model against its parts and their bytes.
func checkWhole(t *testing.T, f *gguf.File, parts []*gguftest.Model, space []byte) {
	t.Helper()
	if v, _ := f.Metadata.Value("general.architecture"); v != "abc" {
		t.Errorf("have architecture %v, want the first part's", v)
	}
	if f.Size() != int64(len(space)) || len(f.Parts) != len(parts) {
		t.Errorf("have %d bytes in %d parts, want %d in %d", f.Size(), len(f.Parts), len(space), len(parts))
	}
	at := int64(0)
	for i, p := range f.Parts {
		if p.Offset != at || p.HeaderSize <= 0 || p.HeaderSize > p.Size {
			t.Errorf("part %d: have %+v, want offset %d", i, p, at)
		}
		at += p.Size
	}
	n := 0
	for _, part := range parts {
		for _, want := range part.Tensors {
			have, ok := f.Tensor(want.Name)
			if !ok || !reflect.DeepEqual(have, f.Tensors[n]) || have.Type != want.Type {
				t.Fatalf("have tensor %+v, want %s in place %d", have, want.Name, n)
			}
			if data := space[have.Offset : have.Offset+have.Size]; !bytes.Equal(data, want.Data) {
				t.Errorf("tensor %s: have other data", want.Name)
			}
			n++
		}
	}
	if n != len(f.Tensors) {
		t.Errorf("have %d tensors, want %d", len(f.Tensors), n)
	}
	checkSpace(t, f, space)
}

// checkSpace reads across the borders of the parts.
func checkSpace(t *testing.T, f *gguf.File, space []byte) {
	t.Helper()
	all := make([]byte, len(space)+1)
	if n, err := f.ReadAt(all, 0); n != len(space) || err != io.EOF || !bytes.Equal(all[:n], space) {
		t.Errorf("have %d bytes, %v, want %d, EOF and the same bytes", n, err, len(space))
	}
	for _, p := range f.Parts[1:] {
		b := make([]byte, 20)
		if n, err := f.ReadAt(b, p.Offset-7); n != 20 || err != nil || !bytes.Equal(b, space[p.Offset-7:p.Offset+13]) {
			t.Errorf("at %d: have %d, %v", p.Offset-7, n, err)
		}
	}
}

// set returns a change of one key of part i.
func set(i int, key string, value any) func([]*gguftest.Model) {
	return func(p []*gguftest.Model) { p[i].Set(key, value) }
}

func drop(i int, key string) func([]*gguftest.Model) {
	return func(p []*gguftest.Model) { p[i].Drop(key) }
}

func TestRefuseSplit(t *testing.T) {
	tests := map[string]struct {
		change func([]*gguftest.Model)
		want   []string
	}{
		"count-other":          {set(1, "split.count", uint16(4)), []string{"00002-of-00003.gguf", "split.count", "have 4", "want 3"}},
		"count-none":           {drop(2, "split.count"), []string{"00003-of-00003.gguf", "split.count", "have none", "want 3"}},
		"count-none-in-first":  {drop(0, "split.count"), []string{"00001-of-00003.gguf", "split.count", "have none", "rename"}},
		"count-of-more":        {func(p []*gguftest.Model) { setAll(p, "split.count", uint16(2)) }, []string{"split.count", "have 2", "want 3"}},
		"count-string":         {set(0, "split.count", "3"), []string{"split.count", "have a string", "want an integer"}},
		"no-other":             {set(1, "split.no", uint16(2)), []string{"00002-of-00003.gguf", "split.no", "have 2", "want 1"}},
		"no-from-one":          {set(0, "split.no", uint16(1)), []string{"00001-of-00003.gguf", "split.no", "have 1", "want 0"}},
		"no-none":              {drop(1, "split.no"), []string{"00002-of-00003.gguf", "split.no", "have none"}},
		"no-negative":          {set(1, "split.no", int32(-1)), []string{"split.no", "have -1", "at least 0"}},
		"tensors-more":         {func(p []*gguftest.Model) { setAll(p, "split.tensors.count", int32(6)) }, []string{"00001-of-00003.gguf", "split.tensors.count", "have 6", "want 5"}},
		"tensors-other":        {set(2, "split.tensors.count", int32(4)), []string{"00003-of-00003.gguf", "split.tensors.count", "have 4", "want 5"}},
		"tensors-none":         {drop(0, "split.tensors.count"), []string{"00001-of-00003.gguf", "split.tensors.count", "have none", "want 5"}},
		"tensors-float":        {set(0, "split.tensors.count", float32(5)), []string{"split.tensors.count", "have a float32"}},
		"tensor-in-two-parts":  {func(p []*gguftest.Model) { p[2].RenameTensor("four", "norm") }, []string{"00003-of-00003.gguf", "tensor norm", "00001-of-00003.gguf", "each name once"}},
		"part-is-bad":          {func(p []*gguftest.Model) { p[1].Tensor("q4").Type = 99 }, []string{"00002-of-00003.gguf", "tensor q4", "type id 99"}},
		"offsets-are-per-part": {func(p []*gguftest.Model) { p[2].Tensors[0].Shift = 32 }, []string{"00003-of-00003.gguf", "tensor exps", "have offset 32, want 0"}},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			parts := splitModel(2, 1, 2)
			c.change(parts)
			_, err := gguf.Open(writeParts(t, parts)[0])
			wantError(t, err, c.want...)
		})
	}
}

func setAll(parts []*gguftest.Model, key string, value any) {
	for _, p := range parts {
		p.Set(key, value)
	}
}

func wantError(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("have no error, want %q", want)
	}
	for _, w := range append(want, "gguf: ") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("have %q, want %q in it", err, w)
		}
	}
}

// The parts after the first need no more than split.no and split.count.
func TestOpenSplitLenient(t *testing.T) {
	parts := splitModel(2, 1, 2)
	drop(1, "split.tensors.count")(parts)
	drop(2, "split.tensors.count")(parts)
	set(1, "split.no", uint64(1))(parts) // of any width
	set(2, "split.count", int8(3))(parts)
	if f := open(t, writeParts(t, parts)[2]); len(f.Tensors) != 5 {
		t.Errorf("have %d tensors, want 5", len(f.Tensors))
	}
}

func TestOpenSplitMissing(t *testing.T) {
	paths := writeParts(t, splitModel(2, 1, 2))
	for _, i := range []int{0, 2} {
		if err := os.Remove(paths[i]); err != nil {
			t.Fatal(err)
		}
	}
	_, err := gguf.Open(paths[1])
	wantError(t, err, paths[1], "have 1 of 3 parts", "missing: m-Q4_K-00001-of-00003.gguf, m-Q4_K-00003-of-00003.gguf:", "download")

	many := splitModel(slices.Concat([]int{5}, make([]int, 29))...)
	paths = writeParts(t, many)
	for _, path := range paths[1:] {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	_, err = gguf.Open(paths[0])
	wantError(t, err, "have 1 of 30 parts", "m-Q4_K-00009-of-00030.gguf, and 21 more")
}

func TestOpenNames(t *testing.T) {
	part := func() *gguftest.Model { return splitModel(0, 5)[1] }
	merged := func() *gguftest.Model { // gguf-split leaves these keys in a merged file
		m := tensors(0)
		m.Metadata = gguftest.Pairs("split.no", uint16(0), "split.count", uint16(0), "split.tensors.count", int32(5))
		return m
	}
	tests := map[string]struct {
		file string
		m    *gguftest.Model
		want []string // nil: opens
	}{
		"plain":             {"m.gguf", tensors(0), nil},
		"any-name":          {"m", tensors(0), nil},
		"merged":            {"m.gguf", merged(), nil},
		"one-of-one":        {"m-00001-of-00001.gguf", tensors(0), nil},
		"percent":           {"100%s-%d.gguf", tensors(0), nil},
		"part-renamed":      {"part2.gguf", part(), []string{"part2.gguf", "split.count", "have 2", "NAME-00001-of-00002.gguf"}},
		"part-of-other":     {"m-00002-of-00003.gguf", part(), []string{"split.count", "have 2", "want 3"}},
		"part-without-keys": {"m-00002-of-00003.gguf", tensors(0), []string{"split.count", "have none", "want 3", "rename"}},
		"part-zero":         {"m-00000-of-00002.gguf", part(), []string{"part 0 of 2", "from 1 to 2"}},
		"part-past-end":     {"m-00003-of-00002.gguf", part(), []string{"part 3 of 2", "from 1 to 2"}},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			if err := c.m.Write(path); err != nil {
				t.Fatal(err)
			}
			if c.want == nil {
				open(t, path)
				return
			}
			_, err := gguf.Open(path)
			wantError(t, err, c.want...)
		})
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := gguf.Open(filepath.Join(dir, "absent.gguf"))
	wantError(t, err, "absent.gguf", "no such file")
	_, err = gguf.Open(dir)
	wantError(t, err, dir, "have a folder", "want a GGUF file")
	m := &gguftest.Model{Tensors: []gguftest.Tensor{gguftest.Zeros("100%d", ggml.F32, 1), gguftest.Zeros("100%d", ggml.F32, 1)}}
	path := filepath.Join(dir, "50%s.gguf")
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	_, err = gguf.Open(path)
	wantError(t, err, path, "tensor 100%d: have it twice")
}

// Read takes a part as a file of its own.
func TestReadPart(t *testing.T) {
	f := mustRead(t, splitModel(2, 3)[1].Encode())
	if len(f.Tensors) != 3 || len(f.Parts) != 1 {
		t.Errorf("have %d tensors in %d parts, want 3 in 1", len(f.Tensors), len(f.Parts))
	}
}

// A file that is written to after Open is known to be another.
func TestChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	m := &gguftest.Model{Metadata: gguftest.Pairs("general.architecture", "toy")}
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Changed(); err != nil {
		t.Errorf("nothing was written: have %v", err)
	}
	for name, change := range map[string]func() error{
		"written to": func() error { return os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)) },
		"cut short":  func() error { return os.Truncate(path, 10) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := f.Changed(); err == nil || !strings.Contains(err.Error(), path+": have ") {
			t.Errorf("%s: have %v", name, err)
		}
	}
}
