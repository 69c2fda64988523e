package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/store"
)

// TestPageCache: Fill reads every byte once and brings it to memory; Drop takes it out again where the file system allows it.
func TestPageCache(t *testing.T) {
	for _, path := range goldenFiles(t) {
		o := open(t, path, 0, everything)
		if err := o.Prepare(store.Reading{Readers: 3}); err != nil {
			t.Fatal(err)
		}
		c, last := o.PageCache(), uint64(0)
		if c.Size() != o.file.Size() {
			t.Errorf("%s: have size %d, want %d", path, c.Size(), o.file.Size())
		}
		err := c.Fill(context.Background(), func(done, total uint64) {
			if done <= last || total != uint64(o.file.Size()) {
				t.Errorf("%s: have %d after %d, of %d", path, done, last, total)
			}
			last = done
		})
		if err != nil || last != uint64(o.file.Size()) {
			t.Errorf("%s: have %d bytes filled, %v", path, last, err)
		}
		n, err := c.Cached()
		if err != nil {
			if !strings.Contains(err.Error(), "can't tell") {
				t.Error(err)
			}
			continue // another system
		}
		if n != c.Size() {
			t.Errorf("%s: have %d bytes cached, want all %d", path, n, c.Size())
		}
		if err := c.Drop(); err != nil {
			t.Error(err)
		}
		if n, err := c.Cached(); err != nil || n < 0 || n > c.Size() {
			t.Errorf("%s: have %d bytes left, %v", path, n, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := c.Fill(ctx, func(uint64, uint64) {}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: have %v, want it canceled", path, err)
		}
	}
}

// TestPageCacheSame: a file that has taken the place of another is told from it, also where it says the same.
func TestPageCacheSame(t *testing.T) {
	data, err := os.ReadFile(goldenFiles(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	caches := [3]store.PageCache{}
	for i := range caches {
		if i != 1 {
			_ = os.Remove(path)
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		o := open(t, path, 0, everything)
		if err := o.Prepare(store.Reading{Readers: 1}); err != nil {
			t.Fatal(err)
		}
		caches[i] = o.PageCache()
	}
	if err := caches[0].Same(caches[1]); err != nil {
		t.Errorf("the same file: have %v", err)
	}
	if err := caches[0].Same(caches[2]); err == nil || !strings.Contains(err.Error(), path+": another file has taken its place") {
		t.Errorf("another file: have %v", err)
	}
}
