package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// large is a model of several batches of dense tensors and of records, in two layers.
func large(t testing.TB) *opened {
	r := random(t)
	path := write(t, noise(r, "embd", ggml.F16, 512, 19000), noise(r, "norm", ggml.F32, 64), noise(r, "freqs", ggml.F32, 8),
		noise(r, "up", ggml.Q4_0, 512, 2000, 24), noise(r, "proj", ggml.Q4_0, 64, 9), noise(r, "down", ggml.Q8_0, 1024, 700, 24),
		noise(r, "up2", ggml.F16, 64, 2, 24))
	return open(t, path, 0, func(*gguf.File) *program.Plan {
		p := smallPlan()
		p.Model.Experts, p.Model.Hidden = 24, 512
		p.Records = append(p.Records, &program.Record{Layer: 7, Parts: []*program.Weight{{Name: "u", Tensors: []string{"up2"}}}})
		return p
	})
}

// contents are a store's files but for its lock, which is empty.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

// sameFiles compares two stores byte by byte.
func sameFiles(t testing.TB, have, want map[string]string) {
	t.Helper()
	for name := range want {
		if have[name] != want[name] {
			t.Errorf("%s: have other bytes", name)
		}
	}
	if len(have) != len(want) || len(want) != 6 {
		t.Errorf("have %d files, want %d", len(have), len(want))
	}
}

func newIngest(t testing.TB, o *opened) *store.Ingest {
	t.Helper()
	in, err := store.NewIngest(o.file, o.plan)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// An ingest that fails, or is cancelled, at whatever batch goes on to the same
// store, without writing again what is on disk for good.
func TestResume(t *testing.T) {
	o := large(t)
	clean := filepath.Join(t.TempDir(), "clean")
	writes := 0
	ingest(t, o, clean, store.WithFault(store.IngestOptions{}, func(string, int64) error { writes++; return nil }))
	if writes < 5 {
		t.Fatalf("have %d batches, want several of each kind", writes)
	}
	p := source(t, o, clean)
	checkSame(t, o, p, o)
	want := contents(t, clean)
	boom := errors.New("boom")
	for at := range writes + 1 {
		for _, how := range []string{"error", "cancel"} {
			t.Run(fmt.Sprint(how, at), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "s")
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				n := 0
				opt := store.WithFault(store.IngestOptions{}, func(file string, off int64) error {
					if n++; n <= at {
						return nil
					}
					if how == "cancel" {
						cancel()
						return nil
					}
					return boom
				})
				_, err := newIngest(t, o).Run(ctx, dir, opt)
				if n > at && err == nil || err != nil && !errors.Is(err, boom) && !errors.Is(err, context.Canceled) {
					t.Fatalf("have error %v after %d writes", err, n)
				}
				if err != nil {
					if _, err := store.Open(dir); !errors.Is(err, store.ErrUnfinished) {
						t.Errorf("have error %v, want the store unfinished", err)
					}
				}
				kept, n2 := n-1, 0
				done := ingest(t, o, dir, store.WithFault(store.IngestOptions{}, func(string, int64) error { n2++; return nil }))
				if err != nil && how == "error" && (n2 != writes-kept || done.Resumed == 0 && at > 0) {
					t.Errorf("have %d of %d batches written again, want %d; %d bytes kept", n2, writes, writes-kept, done.Resumed)
				}
				sameFiles(t, contents(t, dir), want)
			})
		}
	}
}

// Ingesting what is there already does nothing; with force it is made anew.
func TestAgain(t *testing.T) {
	o := small(t)
	dir := filepath.Join(t.TempDir(), "a", "b")
	if done := ingest(t, o, dir, store.IngestOptions{}); done.Already || done.Dir != dir || done.Size < 10000 {
		t.Errorf("have %+v", done)
	}
	want := contents(t, dir)
	count := 0
	opt := store.WithFault(store.IngestOptions{}, func(string, int64) error { count++; return nil })
	if done := ingest(t, o, dir, opt); !done.Already || count > 0 {
		t.Errorf("have %+v, %d writes", done, count)
	}
	opt.Force = true
	if done := ingest(t, o, dir, opt); done.Already || count == 0 {
		t.Errorf("have %+v, %d writes", done, count)
	}
	sameFiles(t, contents(t, dir), want)
}

// Left over from a kill right after the manifest, or while a file was not yet
// named: nothing stays.
func TestLeftOvers(t *testing.T) {
	o := small(t)
	dir := t.TempDir()
	ingest(t, o, dir, store.IngestOptions{})
	want := contents(t, dir)
	for _, name := range []string{"ingest.journal", "manifest.json.tmp", "checksums.bin.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("rest"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ingest(t, o, dir, store.IngestOptions{})
	sameFiles(t, contents(t, dir), want)
}

// A begun or finished store of another GGUF, or of one that has changed, is left
// alone unless forced.
func TestAnotherSource(t *testing.T) {
	boom := errors.New("boom")
	fails := func(o store.IngestOptions) store.IngestOptions {
		return store.WithFault(o, func(file string, _ int64) error {
			if file == "experts.bin" {
				return boom
			}
			return nil
		})
	}
	at := func(v ...string) store.IngestOptions { return store.IngestOptions{Validators: v} }
	first := small(t)
	for name, c := range map[string]struct {
		begun  bool // else finished
		before store.IngestOptions
		change func(m *gguftest.Model)
		after  store.IngestOptions
		want   string // empty: goes on
	}{
		"begun, same":              {true, at(`etag "a"`), nil, at(`etag "a"`), ""},
		"begun, validator unknown": {true, at(`etag "a"`), nil, at(""), ""},
		"begun, other kind":        {true, at(`etag "a"`), nil, at("mtime 5"), ""},
		"begun, etag":              {true, at(`etag "a"`), nil, at(`etag "b"`), "has changed since the ingest was begun"},
		"begun, header":            {true, at(), func(m *gguftest.Model) { m.Set("general.architecture", "tost") }, at(), "have another header"},
		"begun, size":              {true, at(), func(m *gguftest.Model) { m.Tensors = append(m.Tensors, gguftest.Zeros("more", ggml.F32, 64)) }, at(), "bytes, want"},
		"finished, header":         {false, at(), func(m *gguftest.Model) { m.Set("general.architecture", "tost") }, at(), "a store of another GGUF"},
		"finished, size":           {false, at(), func(m *gguftest.Model) { m.Tensors = append(m.Tensors, gguftest.Zeros("more", ggml.F32, 64)) }, at(), "a store of another GGUF"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			opt := c.before
			if c.begun {
				opt = fails(opt)
			}
			if _, err := newIngest(t, first).Run(context.Background(), dir, opt); c.begun != errors.Is(err, boom) {
				t.Fatal(err)
			}
			before := contents(t, dir)
			o := first
			if c.change != nil {
				path := gguftest.Edit(t, first.file.Parts[0].Name, c.change)
				o = open(t, path, 0, func(*gguf.File) *program.Plan { return smallPlan() })
			}
			_, err := newIngest(t, o).Run(context.Background(), dir, c.after)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--force") || !strings.Contains(err.Error(), dir) {
				t.Errorf("have error %v, want %q", err, c.want)
			}
			if !reflect.DeepEqual(contents(t, dir), before) {
				t.Error("the store has changed")
			}
			c.after.Force = true
			ingest(t, o, dir, c.after)
			checkSame(t, o, source(t, o, dir), o)
		})
	}
}

// What a plugin's other version would lay out otherwise is not served, nor gone on with.
func TestAnotherPlan(t *testing.T) {
	o := small(t)
	dir := t.TempDir()
	ingest(t, o, dir, store.IngestOptions{})
	for name, change := range map[string]func(p *program.Plan){
		"more dense": func(p *program.Plan) {
			p.Weights = append(p.Weights, &program.Weight{Name: "up", Tensors: []string{"up"}})
		},
		"part order": func(p *program.Plan) {
			parts := p.Records[0].Parts
			p.Records[0].Parts = []*program.Weight{parts[1], parts[0]}
		},
		"other layer": func(p *program.Plan) { p.Records[0].Layer = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			other := open(t, o.file.Parts[0].Name, 0, func(*gguf.File) *program.Plan { p := smallPlan(); change(p); return p })
			s, err := store.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			const want = "another version of the plugin"
			if _, err := s.Source(other.plan, other.weights, other.records); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("source: have error %v", err)
			}
			if _, err := newIngest(t, other).Run(context.Background(), dir, store.IngestOptions{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("ingest: have error %v", err)
			}
		})
	}
}

// A source that changes while it is read makes no store.
func TestChanged(t *testing.T) {
	o := small(t)
	dir := t.TempDir()
	moved := errors.New("moved")
	_, err := newIngest(t, o).Run(context.Background(), dir, store.IngestOptions{Unchanged: func() error { return moved }})
	if !errors.Is(err, moved) {
		t.Errorf("have error %v", err)
	}
	if _, err := store.Open(dir); !errors.Is(err, store.ErrUnfinished) {
		t.Errorf("have error %v, want the store unfinished", err)
	}
}

// A source that ends early is an error that names a tensor that is read there and the file.
func TestSourceEnds(t *testing.T) {
	o := small(t)
	in := newIngest(t, o)
	x, _ := o.file.Tensor("down")
	if err := os.Truncate(o.file.Parts[0].Name, x.Offset+x.Size/2); err != nil {
		t.Fatal(err)
	}
	_, err := in.Run(context.Background(), t.TempDir(), store.IngestOptions{})
	if err == nil || !strings.HasPrefix(err.Error(), "store: tensor ") || !strings.Contains(err.Error(), o.file.Parts[0].Name) {
		t.Errorf("have error %v, want a tensor and the file", err)
	}
}

// Two ingests at once: the second is told who is at work, and the first goes on.
func TestTwoAtOnce(t *testing.T) {
	o := small(t)
	dir := t.TempDir()
	var second, removed error
	opt := store.WithFault(store.IngestOptions{}, func(string, int64) error {
		if second == nil {
			_, second = newIngest(t, o).Run(context.Background(), dir, store.IngestOptions{Force: true})
			removed = store.Remove(dir)
		}
		return nil
	})
	ingest(t, o, dir, opt)
	host, _ := os.Hostname()
	for _, err := range []error{second, removed} {
		if want := fmt.Sprintf("process %d on %s", os.Getpid(), host); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("have error %v, want %q in it", err, want)
		}
	}
	checkSame(t, o, source(t, o, dir), o)
}

// Progress goes up to the whole.
func TestProgress(t *testing.T) {
	var last, whole uint64
	ingest(t, large(t), t.TempDir(), store.IngestOptions{Progress: func(done, total uint64) {
		if done <= last || done > total {
			t.Errorf("have %d after %d of %d", done, last, total)
		}
		last, whole = done, total
	}})
	if last != whole || whole == 0 {
		t.Errorf("have %d of %d in the end", last, whole)
	}
}
