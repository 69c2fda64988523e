package store_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/program"
)

// A folder with other files is left alone.
func TestOtherFiles(t *testing.T) {
	o := small(t)
	dir := t.TempDir()
	mine := filepath.Join(dir, "letter.txt")
	if err := os.WriteFile(mine, []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := newIngest(t, o).Run(context.Background(), dir, store.IngestOptions{Force: true})
	if err == nil || !strings.Contains(err.Error(), "letter.txt") || !strings.Contains(err.Error(), dir) {
		t.Errorf("have error %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("have %v, %v, want the letter alone", entries, err)
	}
	if err := store.Remove(dir); err == nil || !strings.Contains(err.Error(), "not a store") {
		t.Errorf("have error %v", err)
	}
}

// Nor is one that only looks like a store by its names written to.
func TestNamesakes(t *testing.T) {
	o := small(t)
	for name, text := range map[string]string{"dense.bin": "gold", "headers.bin.tmp": "gold", "experts.bin": "", "lock": "mine",
		"manifest.json": `{"name": "a web page"}`, "ingest.journal": "dear diary"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mine := filepath.Join(dir, name)
			if err := os.WriteFile(mine, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, force := range []bool{false, true} {
				_, err := newIngest(t, o).Run(context.Background(), dir, store.IngestOptions{Force: force})
				if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(name, ".tmp")) {
					t.Errorf("have error %v", err)
				}
			}
			if data, err := os.ReadFile(mine); err != nil || string(data) != text {
				t.Errorf("have %q, %v", data, err)
			}
		})
	}
}

// What is no folder is refused before it is opened: a pipe would wait for a writer.
func TestNoFolder(t *testing.T) {
	o := small(t)
	root := t.TempDir()
	file, fifo := filepath.Join(root, "file"), filepath.Join(root, "pipe")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	paths := []string{file}
	if err := pipe(fifo); err == nil {
		paths = append(paths, fifo)
	}
	for _, path := range paths {
		_, opened := store.Open(path)
		_, made := newIngest(t, o).Run(context.Background(), path, store.IngestOptions{})
		_, verified := store.Verify(context.Background(), path, nil)
		for _, err := range []error{opened, made, verified, store.Remove(path)} {
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("have error %v, want the path", err)
			}
		}
	}
	if list, err := store.List(root); err != nil || len(list) != 0 {
		t.Errorf("have %v, %v, want no stores", list, err)
	}
}

// Links in the folder lead no write and no removal outside of it.
func TestLinks(t *testing.T) {
	o := small(t)
	for _, name := range append([]string{"lock", "ingest.journal", "manifest.json.tmp", "headers.bin.tmp"}, storeFiles...) {
		t.Run(name, func(t *testing.T) {
			dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "precious")
			if err := errors.Join(os.WriteFile(outside, []byte("gold"), 0o600), os.Symlink(outside, filepath.Join(dir, name))); err != nil {
				t.Skip(err)
			}
			// Whether it refuses or replaces the link is all the same.
			_, err := newIngest(t, o).Run(context.Background(), dir, store.IngestOptions{})
			if err != nil && !strings.Contains(err.Error(), name) {
				t.Errorf("have error %v", err)
			}
			_, _ = newIngest(t, o).Run(context.Background(), dir, store.IngestOptions{Force: true})
			_ = store.Remove(dir)
			if data, err := os.ReadFile(outside); err != nil || string(data) != "gold" {
				t.Errorf("outside: have %q, %v", data, err)
			}
		})
	}
}

// Remove deletes a store whole, in whatever state, and nothing beside it.
func TestRemove(t *testing.T) {
	o := small(t)
	for name, prepare := range map[string]func(dir string){
		"finished": func(dir string) { ingest(t, o, dir, store.IngestOptions{}) },
		"begun": func(dir string) {
			boom := errors.New("boom")
			opt := store.WithFault(store.IngestOptions{}, func(string, int64) error { return boom })
			if _, err := newIngest(t, o).Run(context.Background(), dir, opt); !errors.Is(err, boom) {
				t.Error(err)
			}
		},
		"damaged": func(dir string) {
			ingest(t, o, dir, store.IngestOptions{})
			change(t, dir, "manifest.json", func(b []byte) []byte { return b[:100] })
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s")
			prepare(dir)
			if err := store.Remove(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("have %v, want the folder gone", err)
			}
			prepare(dir)
			mine := filepath.Join(dir, "letter.txt")
			if err := os.WriteFile(mine, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := store.Remove(dir); err == nil || !strings.Contains(err.Error(), "letter.txt") {
				t.Errorf("have error %v", err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("have %v, %v, want the letter alone", entries, err)
			}
		})
	}
	if err := store.Remove(filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("have no error for a folder that is not there")
	}
}

// A store is removed whole by whatever path leads to it, a link to it with it.
func TestRemoveLink(t *testing.T) {
	o := small(t)
	for name, path := range map[string]string{"link": "link", "link of a link": "again", "slash": "link" + string(filepath.Separator), "in a linked folder": "up/s", "dot": "."} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "s")
			ingest(t, o, dir, store.IngestOptions{})
			link := func(to, name string) error { return os.Symlink(to, filepath.Join(root, name)) }
			if err := errors.Join(link("s", "link"), link("link", "again"), link(".", "up")); err != nil {
				t.Skip(err)
			}
			path := filepath.Clean(root) + string(filepath.Separator) + path
			if name == "dot" {
				t.Chdir(dir)
				path = "."
			}
			if err := store.Remove(path); err != nil {
				t.Fatal(err)
			}
			for _, gone := range []string{dir, filepath.Clean(path)} {
				if _, err := os.Lstat(gone); !os.IsNotExist(err) && name != "dot" {
					t.Errorf("%s: have %v, want it gone", gone, err)
				}
			}
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("have %v, want the folder gone", err)
			}
		})
	}
}

func TestList(t *testing.T) {
	root := t.TempDir()
	o, big := small(t), large(t)
	ingest(t, o, filepath.Join(root, "b-whole"), store.IngestOptions{})
	ingest(t, o, filepath.Join(root, "c-damaged"), store.IngestOptions{})
	if err := os.Remove(filepath.Join(root, "c-damaged", "experts.bin")); err != nil {
		t.Fatal(err)
	}
	boom, n := errors.New("boom"), 0
	half := store.WithFault(store.IngestOptions{}, func(file string, _ int64) error {
		if n++; n == 4 {
			return boom
		}
		return nil
	})
	if _, err := newIngest(t, big).Run(context.Background(), filepath.Join(root, "a-half"), half); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(root, "other"), 0o700), os.WriteFile(filepath.Join(root, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	list, err := store.List(root)
	if err != nil || len(list) != 3 {
		t.Fatalf("have %+v, %v, want three stores", list, err)
	}
	a, b, c := list[0], list[1], list[2]
	if a.State != store.Unfinished || a.Done < 0.3 || a.Done > 0.9 || a.Manifest.Architecture != "test" || a.Changed.IsZero() {
		t.Errorf("have %+v", a)
	}
	if b.State != store.Complete || b.Size < newIngest(t, o).Size() || b.Manifest.Title() != "model" || b.Dir != filepath.Join(root, "b-whole") {
		t.Errorf("have %+v", b)
	}
	if c.State != store.Damaged || !strings.Contains(c.Fault, "experts.bin") {
		t.Errorf("have %+v", c)
	}
	if list, err := store.List(filepath.Join(root, "nowhere")); err != nil || len(list) != 0 {
		t.Errorf("have %v, %v for a folder that is not there", list, err)
	}
}

// The name of a store's folder is one name of harmless letters, whatever the GGUF
// is called.
func TestName(t *testing.T) {
	data, err := os.ReadFile(small(t).file.Parts[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"/a/LFM2.5-24B_Q4_0.gguf":   "LFM2.5-24B_Q4_0-",
		"https://host/x/y%2f..%2fz": "y-2f..-2fz-",
		"../..":                     "store-",
		`c:\models\..\x y`:          "x-y-",
		"m\x00\n.gguf":              "m---",
		"":                          "store-",
		strings.Repeat("long", 99):  strings.Repeat("long", 20) + "-",
		"x/q-00001-of-00001.gguf":   "q-00001-of-00001-",
		"-rf.gguf":                  "rf-",
	} {
		f, err := gguf.Read(bytes.NewReader(data), int64(len(data)), name)
		if err != nil {
			t.Fatal(err)
		}
		in, err := store.NewIngest(f, smallPlan())
		if err != nil {
			t.Fatal(err)
		}
		rest, ok := strings.CutPrefix(in.Name(), want)
		if !ok || len(rest) != 12 || !filepath.IsLocal(in.Name()) {
			t.Errorf("%q: have %q, want %q and 12 digits", name, in.Name(), want)
		}
	}
}

// A split model is called by what its parts have in common.
func TestSplitTitle(t *testing.T) {
	m := &store.Manifest{Parts: []store.Part{{Name: "m-Q4_K-00001-of-00003.gguf"}, {}, {}}}
	if have := m.Title(); have != "m-Q4_K" {
		t.Errorf("have %q", have)
	}
}

// A disk that is too small is refused before anything is written; one that fills up
// on the way ends the ingest, and with room it goes on.
func TestDiskFull(t *testing.T) {
	o := large(t)
	in := newIngest(t, o)
	disk := smallDisk(t, in.Size()+8<<20)
	filler := filepath.Join(disk, "filler")
	fill := func(n int64) error { return os.WriteFile(filler, make([]byte, n), 0o600) }
	dir := filepath.Join(disk, "s")
	if err := fill(in.Size() / 2); err != nil {
		t.Fatal(err)
	}
	_, err := in.Run(context.Background(), dir, store.IngestOptions{})
	if err == nil || !strings.Contains(err.Error(), "free on this disk, want") {
		t.Errorf("have error %v, want the free space told", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	opt := store.WithFault(store.IngestOptions{}, func(string, int64) error {
		err := fill(in.Size() / 2)
		if errors.Is(err, syscall.ENOSPC) {
			err = nil
		}
		return err
	})
	_, err = in.Run(context.Background(), dir, opt)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "make room, then ingest again") || !strings.Contains(err.Error(), dir) {
		t.Errorf("have error %v, want the disk full", err)
	}
	if _, err := store.Open(dir); !errors.Is(err, store.ErrUnfinished) {
		t.Errorf("have error %v, want the store unfinished", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	done := ingest(t, o, dir, store.IngestOptions{})
	if done.Resumed == 0 {
		t.Error("have nothing kept")
	}
	clean := t.TempDir()
	ingest(t, o, clean, store.IngestOptions{})
	sameFiles(t, contents(t, dir), contents(t, clean))
}

// What is there is not given up for a store that has no room.
func TestForceWithoutRoom(t *testing.T) {
	o := small(t)
	disk := smallDisk(t, 4<<20)
	dir := filepath.Join(disk, "s")
	ingest(t, o, dir, store.IngestOptions{})
	_, err := newIngest(t, large(t)).Run(context.Background(), dir, store.IngestOptions{Force: true})
	if err == nil || !strings.Contains(err.Error(), "free on this disk, want") {
		t.Errorf("have error %v, want the free space told", err)
	}
	if err := readAll(o, dir); err != nil {
		t.Errorf("the store that was there: %v", err)
	}
	ingest(t, o, dir, store.IngestOptions{Force: true})
}

// A plan that does not fit its file makes no ingest.
func TestIngestBadPlan(t *testing.T) {
	o := small(t)
	for name, change := range map[string]func(p *program.Plan){
		"tensor":    func(p *program.Plan) { p.Weights[0].Tensors = []string{"nope"} },
		"embedding": func(p *program.Plan) { p.Embed.Tensor = "nope" },
		"experts":   func(p *program.Plan) { p.Model.Experts = 3 },
		"twice":     func(p *program.Plan) { p.Records = append(p.Records, p.Records[0]) },
	} {
		p := smallPlan()
		change(p)
		if _, err := store.NewIngest(o.file, p); err == nil {
			t.Errorf("%s: have no error", name)
		}
	}
}
