package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/sdk/program"
)

// Packed is the Source that reads a packed store. A record is one read of bytes
// that need no packing; resident weights are read and packed as from the GGUF,
// whose bytes they are. Everything is checked as it is read.
type Packed struct {
	*GGUF
	store  *Store
	layers map[int]*layerAt
	files  *files       // of records
	taken  atomic.Int64 // bytes read of records
	piece  *buffers
}

var _ Source = (*Packed)(nil)

// Source makes a source of the store, whose Close it takes over. It fails where
// weights and records are not those of the plan that the store was made by: then
// the store lacks something.
func (s *Store) Source(p *program.Plan, weights []*program.Placed, records []*program.PlacedRecord) (*Packed, error) {
	g, err := NewGGUF(s.File, p, weights, records)
	if err != nil {
		return nil, err
	}
	if err := s.serves(p, records); err != nil {
		return nil, fmt.Errorf("store: %s: made with another version of the plugin: %w: ingest again with --force", s.path, err)
	}
	src := &Packed{GGUF: g, store: s, layers: map[int]*layerAt{}, piece: newBuffers(packedPiece)}
	for i := range s.layout.layers {
		l := &s.layout.layers[i]
		src.layers[l.Layer.Layer] = l
	}
	return src, nil
}

// serves fails where the store lacks what a plan names.
func (s *Store) serves(p *program.Plan, records []*program.PlacedRecord) error {
	have := map[string]bool{}
	for _, name := range s.Manifest.Dense {
		have[name] = true
	}
	for _, name := range denseTensors(s.File, p) {
		if !have[name] {
			return fmt.Errorf("tensor %s is not in it", name)
		}
	}
	layers := map[int]*Layer{}
	for i := range s.Manifest.Records {
		layers[s.Manifest.Records[i].Layer] = &s.Manifest.Records[i]
	}
	for i, r := range records {
		want := layerOf(p.GetRecords()[i], r, int(p.GetModel().GetExperts()))
		l, ok := layers[want.Layer]
		if !ok {
			return fmt.Errorf("layer %d has no records in it", want.Layer)
		}
		if err := l.same(&want); err != nil {
			return err
		}
	}
	return nil
}

// packedPiece is the most that one read for a record asks for while it is checked:
// what stays in a CPU's cache.
const packedPiece = 256 << 10

// ReadRecord implements Source.
func (s *Packed) ReadRecord(ctx context.Context, layer, expert int, dst []byte) error {
	return ReadWhole(ctx, s, layer, expert, dst)
}

// Pieces implements Source.
func (s *Packed) Pieces(layer, expert int) int {
	l, ok := s.layers[layer]
	if !ok || expert < 0 || expert >= l.Experts {
		return 1
	}
	return piecesOf(uint64(l.Stride))
}

// ReadPiece implements Source. Until a record was found right once its pieces go through memory of ours, where their
// checksums are computed, for dst may be slow to read; from then on each is one read to dst.
func (s *Packed) ReadPiece(ctx context.Context, layer, expert, piece, of int, dst []byte) (sum uint32, err error) {
	l, ok := s.layers[layer]
	switch {
	case !ok:
		return 0, fmt.Errorf("store: %s: layer %d: have no expert records of it", s.store.path, layer)
	case expert < 0 || expert >= l.Experts:
		return 0, fmt.Errorf("store: %s: layer %d: have expert %d, want 0 to %d", s.store.path, layer, expert, l.Experts-1)
	case int64(len(dst)) != l.Stride:
		return 0, fmt.Errorf("store: %s: layer %d: have room for %d bytes, want the stride of %d", s.store.path, layer, len(dst), l.Stride)
	case piece < 0 || piece >= of:
		return 0, fmt.Errorf("store: layer %d expert %d: have piece %d of %d, want one of them", layer, expert, piece, of)
	}
	if err = ctx.Err(); err != nil {
		return 0, fmt.Errorf("store: layer %d expert %d: %w", layer, expert, err)
	}
	from, to := l.piece(piece, of)
	at := l.at + int64(expert)*l.slot + from
	if s.store.seen[l.first+expert].Load() {
		err = s.plainPiece(at, dst[from:to])
	} else {
		sum, err = s.summedPiece(ctx, at, dst[from:to])
	}
	if err != nil {
		return 0, fmt.Errorf("store: layer %d expert %d: %w", layer, expert, err)
	}
	return sum, nil
}

// Check implements Source.
func (s *Packed) Check(layer, expert int, sums []uint32) error {
	l := s.layers[layer]
	i := l.first + expert
	if s.store.seen[i].Load() {
		return nil
	}
	all := uint32(0)
	for piece, sum := range sums {
		from, to := l.piece(piece, len(sums))
		all = combine(all, sum, to-from)
	}
	if err := s.store.checkRecord(i, extend(all, zeros[:l.slot-l.Stride])); err != nil {
		return fmt.Errorf("store: layer %d expert %d: %w", layer, expert, err)
	}
	return nil
}

// piece is where one of so many pieces of a record lies in it: whole blocks, but for the last.
func (l *layerAt) piece(n, of int) (from, to int64) {
	from, to = l.Stride*int64(n)/int64(of)&^(align-1), l.Stride
	if n < of-1 {
		to = l.Stride * int64(n+1) / int64(of) &^ (align - 1)
	}
	return from, to
}

// plainPiece reads bytes at of the file of records.
func (s *Packed) plainPiece(at int64, dst []byte) error {
	if len(dst) == 0 {
		return nil
	}
	if s.files != nil && s.files.direct {
		buf := s.piece.get()
		defer s.piece.put(buf)
		data, err := s.take(buf, len(dst), at)
		copy(dst, data)
		return err
	}
	_, err := s.take(dst, len(dst), at)
	return err
}

// summedPiece is plainPiece that computes the checksum of what it reads.
func (s *Packed) summedPiece(ctx context.Context, at int64, dst []byte) (sum uint32, err error) {
	buf := s.piece.get()
	defer s.piece.put(buf)
	for done := 0; done < len(dst); {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		part, err := s.take(buf, min(s.files.room(buf), len(dst)-done), at+int64(done))
		if err != nil {
			return 0, err
		}
		sum = extend(sum, part)
		done += copy(dst[done:], part)
	}
	return sum, nil
}

// take reads n bytes at off of the file of records, and returns where in buf they are.
func (s *Packed) take(buf []byte, n int, off int64) (data []byte, err error) {
	if s.files != nil {
		data, err = s.files.view(buf, n, off)
	} else {
		var got int
		got, err = s.store.experts.ReadAt(buf[:n], off)
		data = buf[:got]
		if got < n {
			err = gguf.ShortRead(s.store.expertsPath, off+int64(got), s.store.layout.experts, err)
		}
	}
	s.taken.Add(int64(len(data)))
	if len(data) < n {
		return nil, fmt.Errorf("have %d of %d bytes: %w", len(data), n, err)
	}
	return data, nil
}

// Prepare makes the source read records as r says, see GGUF.Prepare.
func (s *Packed) Prepare(r Reading) error {
	f := &files{}
	if err := f.open(r, s.store.expertsPath, s.store.layout.experts, s.store.reopen); err != nil {
		return errors.Join(err, f.close())
	}
	old := s.files
	s.files, s.piece = f, newBuffers(packedPiece)
	if r.Direct { // whole records, since nothing is read ahead
		largest := int64(0)
		for _, l := range s.layers {
			largest = max(largest, l.slot)
		}
		s.piece = newBuffers(int(largest) + slack)
	}
	return old.close()
}

// PageCache is what the system keeps of the file of records, see GGUF.PageCache.
func (s *Packed) PageCache() PageCache { return PageCache{s.files} }

// Unchecked takes all checksums for right: for measuring what records cost that were read before.
func (s *Packed) Unchecked() {
	for i := range s.store.seen {
		s.store.seen[i].Store(true)
	}
}

// check compares a checksum with the store's, and remembers that it was right.
func (s *Store) check(i int, have uint32) error {
	if want := s.sums[i]; have != want {
		return fmt.Errorf("have checksum %08x, want %08x: the store is damaged: ingest again with --force", have, want)
	}
	s.seen[i].Store(true)
	return nil
}

// checkRecord is check for a record's checksum; its error names the file.
func (s *Store) checkRecord(i int, have uint32) error {
	if err := s.check(i, have); err != nil {
		return fmt.Errorf("%s: %w", s.expertsPath, err)
	}
	return nil
}

// BytesRead implements Source.
func (s *Packed) BytesRead() int64 { return s.store.dense.taken.Load() + s.taken.Load() }

// Close closes the store.
func (s *Packed) Close() error { return errors.Join(s.files.close(), s.store.Close()) }
