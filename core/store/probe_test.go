package store_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/store"
)

// A probe reads as many bytes as records have, from any file, however it is split.
func TestProbe(t *testing.T) {
	for _, path := range goldenFiles(t) {
		o := open(t, path, 0, everything)
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		p := store.NewProbe(f, o.records, int(o.plan.Model.Experts))
		for _, r := range readings {
			if err := p.Prepare(r); r.Direct {
				direct(t, err)
			} else if err != nil {
				t.Fatal(err)
			}
			for _, rec := range o.records {
				for e := range int(o.plan.Model.Experts) {
					if err := p.ReadRecord(context.Background(), int(rec.Layer), e, make([]byte, rec.Stride)); err != nil {
						t.Errorf("%s: layer %d expert %d: %v", path, rec.Layer, e, err)
					}
				}
			}
			if left, err := p.PageCache().Uncache(); err != nil && !strings.Contains(err.Error(), "can't drop files") || left < 0 || left > f.Size() {
				t.Errorf("have %d bytes left, %v", left, err)
			}
		}
		if err := p.ReadRecord(context.Background(), int(o.records[0].Layer), 0, nil); err == nil {
			t.Error("no memory: have no error")
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
