package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/store"
)

// readAll opens a store and reads everything in it, to the first error.
func readAll(o *opened, dir string) error {
	s, err := store.Open(dir)
	if err != nil {
		return err
	}
	p, err := s.Source(o.plan, o.weights, o.records)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	defer p.Close()
	ctx := context.Background()
	for i, w := range o.weights {
		for k := range w.Bands {
			if err := p.ReadBand(ctx, i, k, ignore); err != nil {
				return err
			}
		}
	}
	for _, r := range o.records {
		for e := range int(o.plan.Model.Experts) {
			if err := inPieces(p, r, e, 1+e%5, make([]byte, r.Stride)); err != nil {
				return err
			}
		}
	}
	x, _ := o.file.Tensor(o.plan.Embed.Tensor)
	for id := range int32(x.Dims[1]) {
		if err := p.EmbedRows([]int32{id}, make([]float32, x.Dims[0])); err != nil {
			return err
		}
	}
	for i := range o.plan.Ropes {
		if _, err := p.RopeDivisor(i); err != nil {
			return err
		}
	}
	return nil
}

// copyOf is a copy of a store.
func copyOf(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// change rewrites a file of a store.
func change(t testing.TB, dir, name string, edit func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, edit(data), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var storeFiles = []string{"manifest.json", "headers.bin", "dense.bin", "experts.bin", "checksums.bin"}

// A bit that flipped, anywhere in any file, is found: by Verify always, and by
// reading unless it lies in padding, and then it has changed nothing.
func TestFlippedBits(t *testing.T) {
	o := small(t)
	r := rand.New(rand.NewPCG(random(t).Uint64(), 0))
	whole := t.TempDir()
	ingest(t, o, whole, store.IngestOptions{})
	for _, name := range storeFiles {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, whole)
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			unread := 0
			const flips = 60
			for range flips {
				at, bit := r.Int64N(info.Size()), byte(1)<<r.IntN(8)
				flip := func(b []byte) []byte { b[at] ^= bit; return b }
				change(t, dir, name, flip)
				faults, err := store.Verify(context.Background(), dir, nil)
				if err != nil || len(faults) != 1 || !strings.Contains(faults[0], filepath.Join(dir, name)) {
					t.Errorf("byte %d bit %02x: have faults %q, %v, want one in %s", at, bit, faults, err, name)
				}
				switch err := readAll(o, dir); {
				case err == nil && (name == "experts.bin" || name == "dense.bin"):
					unread++
				case err == nil || !strings.Contains(err.Error(), filepath.Join(dir, name)) || !strings.HasPrefix(err.Error(), "store: "):
					t.Errorf("byte %d bit %02x: have error %v, want the file's name", at, bit, err)
				}
				change(t, dir, name, flip)
			}
			if unread > flips*9/10 {
				t.Errorf("%d of %d were not noticed by reading", unread, flips)
			}
			if err := readAll(o, dir); err != nil {
				t.Error(err)
			}
		})
	}
}

// A fault in a record is told by layer and expert, one in a dense tensor by its name.
func TestFlippedWhere(t *testing.T) {
	o := small(t)
	whole := t.TempDir()
	ingest(t, o, whole, store.IngestOptions{})
	for e := range 4 {
		dir := copyOf(t, whole)
		change(t, dir, "experts.bin", func(b []byte) []byte { b[len(b)/4*e+5] ^= 1; return b })
		want := fmt.Sprintf("layer 3 expert %d: %s", e, filepath.Join(dir, "experts.bin"))
		if err := readAll(o, dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("have error %v, want %s", err, want)
		}
		faults, err := store.Verify(context.Background(), dir, nil)
		if err != nil || len(faults) != 1 || !strings.Contains(faults[0], want) {
			t.Errorf("have faults %q, %v, want %s", faults, err, want)
		}
	}
	dir := copyOf(t, whole)
	change(t, dir, "experts.bin", func(b []byte) []byte { return make([]byte, len(b)) })
	change(t, dir, "dense.bin", func(b []byte) []byte { return make([]byte, len(b)) })
	faults, err := store.Verify(context.Background(), dir, nil)
	if err != nil || len(faults) != 5 || !strings.Contains(faults[0], "tensors embd to proj") {
		t.Errorf("have faults %q, %v, want the one block and the four records", faults, err)
	}
}

// A file that is missing, too short, too long, empty, a folder or a link is named.
func TestMissingFiles(t *testing.T) {
	o := small(t)
	whole := t.TempDir()
	ingest(t, o, whole, store.IngestOptions{})
	for _, name := range storeFiles {
		for how, edit := range map[string]func(path string) error{
			"missing": os.Remove,
			"short":   func(path string) error { info, _ := os.Stat(path); return os.Truncate(path, info.Size()-1) },
			"empty":   func(path string) error { return os.Truncate(path, 0) },
			"long":    func(path string) error { info, _ := os.Stat(path); return os.Truncate(path, info.Size()+1) },
			"folder":  func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
			"link": func(path string) error {
				return errors.Join(os.Rename(path, path+".there"), os.Symlink(path+".there", path))
			},
			"pipe": func(path string) error { return errors.Join(os.Remove(path), pipe(path)) },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				dir := copyOf(t, whole)
				if err := edit(filepath.Join(dir, name)); errors.Is(err, errors.ErrUnsupported) {
					t.Skip(err)
				} else if err != nil {
					t.Fatal(err)
				}
				err := readAll(o, dir)
				if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), name) {
					t.Errorf("have error %v, want the file's name", err)
				}
				if how == "missing" && name != "manifest.json" && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("have error %v, want it to say that there is no file", err)
				}
				if name != "manifest.json" && !strings.Contains(err.Error(), "--force") {
					t.Errorf("have error %v, want it to say what to do", err)
				}
				faults, err := store.Verify(context.Background(), dir, nil)
				if name == "manifest.json" && how == "missing" {
					if err == nil {
						t.Error("verify: have no error without a manifest")
					}
				} else if err != nil || len(faults) != 1 || !strings.Contains(faults[0], name) {
					t.Errorf("verify: have faults %q, %v", faults, err)
				}
			})
		}
	}
}

// Sizes in a manifest make no allocation, though files with holes are as long as it says.
func TestHoles(t *testing.T) {
	o := small(t)
	const stride, header = 1 << 40, 256 << 20
	for name, c := range map[string]struct {
		file string
		size int64
		edit func(m *store.Manifest)
		want string
	}{
		"record": {"experts.bin", stride, func(m *store.Manifest) { m.Records[0].Experts, m.Records[0].Stride = 1, stride }, "context deadline"},
		"headers": {"headers.bin", 1000 * header, func(m *store.Manifest) {
			m.Parts = slices.Repeat([]store.Part{{Name: "x", Size: 1 << 40, Header: header, SHA256: m.Table}}, 1000)
		}, "headers of more than"},
		"checksums": {"checksums.bin", 1 << 33, func(m *store.Manifest) {
			for i := range 1 << 11 {
				m.Records = append(m.Records, store.Layer{Layer: 10 + i, Experts: 1 << 20, Stride: 1})
			}
		}, "have more records than"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ingest(t, o, dir, store.IngestOptions{})
			if err := os.Truncate(filepath.Join(dir, c.file), c.size); err != nil {
				t.Skip(err)
			}
			if name == "record" { // the other checksums are right
				change(t, dir, "checksums.bin", func(b []byte) []byte { return b[:len(b)-3*4] })
			}
			var sums []byte
			if name != "checksums" {
				var err error
				if sums, err = os.ReadFile(filepath.Join(dir, "checksums.bin")); err != nil {
					t.Fatal(err)
				}
			}
			change(t, dir, "manifest.json", func(b []byte) []byte {
				return store.Resealed(b, func(m *store.Manifest) { c.edit(m); m.Checksums = fmt.Sprintf("%x", sha256.Sum256(sums)) })
			})
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			faults, err := store.Verify(ctx, dir, nil)
			if have := fmt.Sprint(faults, err); !strings.Contains(have, c.want) {
				t.Errorf("have %.500s, want %s", have, c.want)
			}
		})
	}
}

// A store of another version of the format says so, and how to get a new one.
func TestOtherVersion(t *testing.T) {
	o := small(t)
	dir := t.TempDir()
	ingest(t, o, dir, store.IngestOptions{})
	change(t, dir, "manifest.json", func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"sluice_store":1`), []byte(`"sluice_store":27`), 1)
	})
	check := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "have format version 27, want 1") || !strings.Contains(err.Error(), "--force") {
			t.Errorf("have error %v", err)
		}
	}
	check(readAll(o, dir))
	_, err := newIngest(t, o).Run(context.Background(), dir, store.IngestOptions{})
	check(err)
	if !store.IsStore(dir) {
		t.Error("want it known as a store all the same")
	}
	ingest(t, o, dir, store.IngestOptions{Force: true})
	if err := readAll(o, dir); err != nil {
		t.Error(err)
	}
}

// A damaged store is not taken for a finished one when it is ingested again.
func TestIngestOverDamage(t *testing.T) {
	o := small(t)
	whole := t.TempDir()
	ingest(t, o, whole, store.IngestOptions{})
	for _, name := range storeFiles {
		dir := copyOf(t, whole)
		if err := os.Truncate(filepath.Join(dir, name), 3); err != nil {
			t.Fatal(err)
		}
		if _, err := newIngest(t, o).Run(context.Background(), dir, store.IngestOptions{}); err == nil || !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s: have error %v", name, err)
		}
		ingest(t, o, dir, store.IngestOptions{Force: true})
		sameFiles(t, contents(t, dir), contents(t, whole))
	}
}

// Of an unfinished ingest whose files were cut since, the rest is made again.
func TestCutSince(t *testing.T) {
	o := large(t)
	clean := t.TempDir()
	ingest(t, o, clean, store.IngestOptions{})
	boom := errors.New("boom")
	for _, name := range []string{"dense.bin", "experts.bin", "headers.bin", "ingest.journal"} {
		dir := t.TempDir()
		n := 0
		opt := store.WithFault(store.IngestOptions{}, func(file string, _ int64) error {
			if n++; n == 4 {
				return boom
			}
			return nil
		})
		if _, err := newIngest(t, o).Run(context.Background(), dir, opt); !errors.Is(err, boom) {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, name), 100); err != nil {
			t.Fatal(err)
		}
		ingest(t, o, dir, store.IngestOptions{})
		sameFiles(t, contents(t, dir), contents(t, clean))
	}
}
