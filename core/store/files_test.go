package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// direct skips a test where the disk of its folder has no direct reads.
func direct(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, store.ErrNoDirect) {
		t.Skipf("no direct reads: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var readings = []store.Reading{{Readers: 1}, {Readers: 3}, {Readers: 1, Direct: true}, {Readers: 3, Direct: true}}

// stack is a layer of experts of odd sizes at odd offsets: of every form there is one part, and after them a row for
// the embedding, so that the last record ends within the file's last block.
func stack(t testing.TB, experts uint64) string {
	r := random(t)
	tensors := []gguftest.Tensor{noise(r, "token_embd.weight", ggml.F32, 32, 1)}
	for i, typ := range allTypes() {
		cols := max(32, typ.BlockSize()) * (1 + r.Uint64N(3))
		tensors = append(tensors, noise(r, fmt.Sprintf("blk.0.p%d_exps.weight", i), typ, cols, 1+r.Uint64N(90), experts))
	}
	// More than a piece, so that pieces of one tensor meet within a block.
	tensors = append(tensors, noise(r, "blk.0.large_exps.weight", ggml.Q4_K, 2048, 4100, experts), noise(r, "blk.0.plain_exps.weight", ggml.F16, 2048, 1100, experts))
	return write(t, tensors...)
}

func part(f *gguf.File) *program.Plan {
	p := everything(f)
	p.Weights = nil
	return p
}

// However records are read, they are the same, also by more readers than there are handles.
func TestReadings(t *testing.T) {
	const experts = 3
	path := stack(t, experts)
	dir := filepath.Join(t.TempDir(), "s")
	ingest(t, open(t, path, 0, part), dir, store.IngestOptions{})
	plain := open(t, path, 0, part)
	var want [][]byte
	for e := range experts {
		checkRecord(t, plain, 0, e)
		want = append(want, readRecord(t, plain, plain.records[0], e))
	}
	for _, r := range readings {
		t.Run(fmt.Sprintf("%+v", r), func(t *testing.T) {
			o := open(t, path, 0, part)
			packed := source(t, o, dir)
			for name, s := range map[string]interface {
				store.Source
				Prepare(store.Reading) error
			}{"gguf": o.GGUF, "store": packed} {
				direct(t, s.Prepare(r))
				before := s.BytesRead()
				var all sync.WaitGroup
				for of := range 9 { // which a store checks the first time
					if e := of % experts; !bytes.Equal(readPieces(t, s, o.records[0], e, of+1), want[e]) {
						t.Errorf("%s: expert %d in %d pieces: have other bytes", name, e, of+1)
					}
				}
				for i := range 4 * experts {
					all.Go(func() {
						if e := i % experts; !bytes.Equal(readRecord(t, s, o.records[0], e), want[e]) {
							t.Errorf("%s: expert %d: have other bytes", name, e)
						}
					})
				}
				all.Wait()
				for of := range 9 {
					if e := of % experts; !bytes.Equal(readPieces(t, s, o.records[0], e, of+1), want[e]) {
						t.Errorf("%s: expert %d in %d pieces: have other bytes", name, e, of+1)
					}
				}
				if have, least := s.Pieces(0, 1), int(o.records[0].Stride>>20); have < min(least, 16) || s.Pieces(0, experts) < 1 || s.Pieces(9, 0) != 1 {
					t.Errorf("%s: have %d pieces, of an expert that is not there %d, of a layer %d", name, have, s.Pieces(0, experts), s.Pieces(9, 0))
				}
				if n := s.BytesRead() - before; n < 4*experts*int64(len(want[0]))*9/10 {
					t.Errorf("%s: have %d bytes counted, want about %d", name, n, 4*experts*len(want[0]))
				}
			}
		})
	}
}

// Split models have their parts' offsets, which are no multiples of anything.
func TestReadingsRealFiles(t *testing.T) {
	for _, path := range goldenFiles(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			plain, o := open(t, path, 0, everything), open(t, path, 0, everything)
			direct(t, o.Prepare(store.Reading{Readers: 2, Direct: true}))
			checkSame(t, o, o, plain)
			for _, r := range o.records {
				if !bytes.Equal(readPieces(t, o, r, 1, 5), readRecord(t, plain, r, 1)) {
					t.Errorf("layer %d: have other bytes in 5 pieces", r.Layer)
				}
			}
		})
	}
}

// readPieces reads a record in pieces at once.
func readPieces(t *testing.T, s store.Source, r *program.PlacedRecord, expert, of int) []byte {
	t.Helper()
	dst := bytes.Repeat([]byte{0xa5}, int(r.Stride))
	if err := inPieces(s, r, expert, of, dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

func inPieces(s store.Source, r *program.PlacedRecord, expert, of int, dst []byte) error {
	var all errgroup.Group
	sums := make([]uint32, of)
	for piece := range of {
		all.Go(func() (err error) {
			sums[piece], err = s.ReadPiece(context.Background(), int(r.Layer), expert, piece, of, dst)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return s.Check(int(r.Layer), expert, sums)
}

// Pieces that are none are refused.
func TestReadPieceRefused(t *testing.T) {
	path := stack(t, 1)
	dir := filepath.Join(t.TempDir(), "s")
	o := open(t, path, 0, part)
	ingest(t, o, dir, store.IngestOptions{})
	for name, s := range map[string]store.Source{"gguf": o, "store": source(t, o, dir)} {
		for _, x := range [][2]int{{-1, 1}, {1, 1}, {0, 0}, {0, -1}, {4, 4}} {
			_, err := s.ReadPiece(t.Context(), 0, 0, x[0], x[1], make([]byte, o.records[0].Stride))
			if want := fmt.Sprintf("have piece %d of %d", x[0], x[1]); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: have %v, want %q", name, err, want)
			}
		}
	}
}

// A file that is another one by now, cut short, or of a system without direct reads.
func TestReadingsRefused(t *testing.T) {
	path := stack(t, 1)
	dir := filepath.Join(t.TempDir(), "s")
	o := open(t, path, 0, part)
	ingest(t, o, dir, store.IngestOptions{})
	packed := source(t, o, dir)
	for _, n := range []int{0, -1, 1 << 20} {
		if err := o.Prepare(store.Reading{Readers: n}); err == nil || !strings.Contains(err.Error(), "readers: have") {
			t.Errorf("%d readers: have %v", n, err)
		}
	}
	for name, x := range map[string]struct {
		path    string
		prepare func(store.Reading) error
	}{"gguf": {path, o.Prepare}, "store": {filepath.Join(dir, "experts.bin"), packed.Prepare}} {
		data, err := os.ReadFile(x.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Rename(x.path, x.path+".old"), os.WriteFile(x.path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := x.prepare(store.Reading{Readers: 2}); err == nil || !strings.Contains(err.Error(), x.path+": another file has taken its place") {
			t.Errorf("%s: have %v", name, err)
		}
		if err := os.Rename(x.path+".old", x.path); err != nil {
			t.Fatal(err)
		}
		direct(t, x.prepare(store.Reading{Readers: 2, Direct: true}))
		if err := os.Truncate(x.path, 8192); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range map[string]store.Source{"gguf": o, "store": packed} {
		err := s.ReadRecord(t.Context(), 0, 0, make([]byte, o.records[0].Stride))
		if err == nil || !strings.Contains(err.Error(), "layer 0 expert 0") || !strings.Contains(err.Error(), map[string]string{"gguf": path, "store": filepath.Join(dir, "experts.bin")}[name]+": have no byte 8192, want the ") || !strings.Contains(err.Error(), "start again") {
			t.Errorf("%s cut short: have %v", name, err)
		}
	}
	if err := os.Rename(path, path+".gone"); err != nil {
		t.Fatal(err)
	}
	if err := o.Prepare(store.Reading{Readers: 1}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("have %v, want none there", err)
	}
}
