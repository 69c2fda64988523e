package store

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// MostPieces bounds the pieces of a record.
const MostPieces = 16

const (
	// recordPiece is the most that one read for a record asks for by way of the page cache:
	// what stays in a CPU's cache until it is packed.
	recordPiece = 256 << 10
	// sharedPiece is about what one reader takes of a record that several read at once: a layer seldom lacks as many
	// experts as there are readers, and waits for the last of them.
	sharedPiece = 384 << 10
	// bandPiece is the most that one read for a band asks for.
	bandPiece = 8 << 20
	// directPiece is the same as recordPiece for direct reads, before which nothing is
	// read ahead: all of most tensors' slices.
	directPiece = 4 << 20
)

// piecesOf is in how many pieces a record of so many bytes is read.
func piecesOf(stride uint64) int { return int(min(max(stride/sharedPiece, 1), MostPieces)) }

// reader takes tensors' bytes from a file's address space, and counts them.
type reader struct {
	data  io.ReaderAt
	files *files // where not nil, view reads them instead
	read  atomic.Int64
}

// ReadRecord implements Source.
func (s *GGUF) ReadRecord(ctx context.Context, layer, expert int, dst []byte) error {
	return ReadWhole(ctx, s, layer, expert, dst)
}

// Pieces implements Source.
func (s *GGUF) Pieces(layer, _ int) int {
	if rec, ok := s.records[layer]; ok {
		return piecesOf(rec.stride)
	}
	return 1
}

// ReadPiece implements Source. A GGUF has no checksums: sums are 0.
func (s *GGUF) ReadPiece(ctx context.Context, layer, expert, piece, of int, dst []byte) (sum uint32, err error) {
	rec, ok := s.records[layer]
	switch {
	case !ok:
		return 0, fmt.Errorf("store: %s: layer %d: have no expert records of it", s.name(), layer)
	case expert < 0 || expert >= rec.experts:
		return 0, fmt.Errorf("store: %s: layer %d: have expert %d, want 0 to %d", s.name(), layer, expert, rec.experts-1)
	case uint64(len(dst)) != rec.stride:
		return 0, fmt.Errorf("store: %s: layer %d: have room for %d bytes, want the stride of %d", s.name(), layer, len(dst), rec.stride)
	case piece < 0 || piece >= of:
		return 0, fmt.Errorf("store: layer %d expert %d: have piece %d of %d, want one of them", layer, expert, piece, of)
	}
	scratch := s.scratch.get()
	defer s.scratch.put(scratch)
	if err := s.experts.readRecord(ctx, rec, expert, piece, of, dst, scratch); err != nil {
		return 0, fmt.Errorf("store: layer %d expert %d: %w", layer, expert, err)
	}
	return 0, nil
}

// Check implements Source.
func (s *GGUF) Check(int, int, []uint32) error { return nil }

// readRecord packs a piece of an expert's record into dst; what dst has behind the record becomes zero with the last.
func (s *reader) readRecord(ctx context.Context, rec *record, expert, piece, of int, dst, scratch []byte) error {
	for i := range rec.bands {
		b := &rec.bands[i]
		from, to := rec.share(i, piece, of), rec.share(i, piece+1, of)
		if from == to {
			continue
		}
		if err := s.readExpert(ctx, b, expert, from, to, dst[b.base:b.base+b.bytes], scratch); err != nil {
			return err
		}
	}
	if piece == of-1 {
		clear(dst[rec.end:])
	}
	return nil
}

// share is how many chunks of a band belong to the first n of so many pieces, which are about as long in the file.
func (r *record) share(band, n, of int) uint64 {
	var before, all uint64
	for i := range r.bands {
		size := r.bands[i].chunks * uint64(chunkBytes(r.bands[i].form.Type()))
		if i < band {
			before += size
		}
		all += size
	}
	b := &r.bands[band]
	end := all * uint64(n) / uint64(of)
	chunks := (max(end, before) - before) / uint64(chunkBytes(b.form.Type()))
	if chunks >= b.chunks {
		return b.chunks
	}
	return chunks &^ (pieceChunks - 1)
}

// readExpert packs chunks [from, to) of one expert's runs of a band into dst, the band's form.
func (s *reader) readExpert(ctx context.Context, m *matrix, expert int, from, to uint64, dst, scratch []byte) error {
	typ := m.form.Type()
	size, values := chunkBytes(typ), chunkValues(typ)
	at := uint64(0) // chunks before the run, and of it
	for _, r := range m.runs {
		first := at
		at = max(at, min(from, first+r.chunks))
		off := r.off + int64(expert)*r.next + int64(at-first)*int64(size)
		for left := min(to, first+r.chunks) - min(at, to); left > 0; {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(left, uint64(s.files.room(scratch)/size))
			length := int(n) * size
			if copied(typ) {
				if err := s.readTo(dst[int(at)*size:][:length], off, r.tensor, scratch); err != nil {
					return err
				}
			} else {
				raw, err := s.view(scratch, length, off, r.tensor)
				if err != nil {
					return err
				}
				if err := m.form.PackRows(dst, raw, m.chunks, values, at, n); err != nil {
					return fmt.Errorf("tensor %s: %w", r.tensor, err)
				}
			}
			at, left, off = at+n, left-n, off+int64(length)
		}
		at = first + r.chunks
	}
	if copied(typ) && to == m.chunks {
		clear(dst[int(to)*size:])
	}
	return nil
}

// ReadBand implements Source.
func (s *GGUF) ReadBand(ctx context.Context, weight, band int, emit func(off uint64, data []byte) error) error {
	if weight < 0 || weight >= len(s.weights) {
		return fmt.Errorf("store: %s: have weight %d, want one of the plan's %d", s.name(), weight, len(s.weights))
	}
	w := &s.weights[weight]
	var err error
	switch {
	case w.vector != nil && band == 0:
		err = s.readVector(ctx, w, emit)
	case band < 0 || band >= len(w.bands):
		err = fmt.Errorf("have band %d, want one of its %d", band, max(len(w.bands), 1))
	default:
		err = s.readMatrix(ctx, &w.bands[band], emit)
	}
	if err != nil {
		return fmt.Errorf("store: weight %.80q: %w", w.name, err)
	}
	return nil
}

// pieceChunks is a number of units of which every plane's share is a multiple of
// 16 bytes, since a plane has at least a byte a unit or two a superblock.
const pieceChunks = 64

// readMatrix reads a band piece by piece.
func (s *GGUF) readMatrix(ctx context.Context, m *matrix, emit func(off uint64, data []byte) error) error {
	raw, packed := s.raw.get(), s.packed.get()
	defer s.raw.put(raw)
	defer s.packed.put(packed)
	most := uint64(len(raw)/chunkBytes(m.form.Type())) &^ (pieceChunks - 1)
	c := cursor{runs: m.runs}
	for at := uint64(0); at < m.chunks; {
		n := min(most, m.chunks-at)
		if err := s.piece(ctx, m, &c, at, n, raw, packed, emit); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// piece reads n chunks, from chunk at of the band on, packs them as a form of
// their own, and emits each of its planes to its place in the band.
func (s *GGUF) piece(ctx context.Context, m *matrix, c *cursor, at, n uint64, raw, packed []byte, emit func(off uint64, data []byte) error) error {
	typ := m.form.Type()
	raw = raw[:int(n)*chunkBytes(typ)]
	if err := s.fill(ctx, c, raw); err != nil {
		return err
	}
	offsets, total, err := m.form.Planes(n, chunkValues(typ))
	if err != nil {
		return err
	}
	packed = packed[:total]
	if err := m.form.Pack(packed, raw, n, chunkValues(typ)); err != nil {
		return err
	}
	spans, err := m.form.Spans(m.chunks, chunkValues(typ), at, n)
	if err != nil {
		return err
	}
	for i, span := range spans {
		padded := roundUp(span.Len, ggml.PlaneAlign)
		if err := emit(span.Offset, packed[offsets[i]:offsets[i]+padded]); err != nil {
			return err
		}
	}
	return nil
}

// cursor walks over runs.
type cursor struct {
	runs []run
	done uint64 // chunks taken of runs[0]
}

// fill reads the next len(dst) bytes of the cursor's runs.
func (s *reader) fill(ctx context.Context, c *cursor, dst []byte) error {
	for len(dst) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := c.runs[0]
		size := chunkBytes(r.typ)
		n := min(r.chunks-c.done, uint64(len(dst)/size))
		part := dst[:int(n)*size]
		if err := s.readAt(part, r.off+int64(c.done)*int64(size), r.tensor); err != nil {
			return err
		}
		dst = dst[len(part):]
		if c.done += n; c.done == r.chunks {
			c.runs, c.done = c.runs[1:], 0
		}
	}
	return nil
}

// readAt reads all of dst at off of the address space, for a tensor.
func (s *reader) readAt(dst []byte, off int64, tensor string) error {
	n, err := s.data.ReadAt(dst, off)
	return s.took(n, len(dst), tensor, err)
}

// took counts the bytes of a read, which fails where it has too few: the reader's error names the file and the place.
func (s *reader) took(n, want int, tensor string, err error) error {
	s.read.Add(int64(n))
	if n < want {
		return fmt.Errorf("tensor %s: have %d of %d bytes: %w", tensor, n, want, err)
	}
	return nil
}

// view reads n bytes at off for a tensor and returns where in buf they are; n is at most
// the files' room.
func (s *reader) view(buf []byte, n int, off int64, tensor string) ([]byte, error) {
	if s.files == nil {
		return buf[:n], s.readAt(buf[:n], off, tensor)
	}
	data, err := s.files.view(buf, n, off)
	return data, s.took(len(data), n, tensor, err)
}

// readTo reads all of dst, which may be mapped memory, at off: directly by way of scratch,
// else with nothing between.
func (s *reader) readTo(dst []byte, off int64, tensor string, scratch []byte) error {
	if s.files == nil || !s.files.direct {
		_, err := s.view(dst, len(dst), off, tensor)
		return err
	}
	data, err := s.view(scratch, len(dst), off, tensor)
	copy(dst, data)
	return err
}

// name is the file's, for errors that no read makes.
func (s *GGUF) name() string { return s.file.Parts[0].Name }
