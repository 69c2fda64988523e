// Package store reads a model's weights, packed as the GPU takes them, from
// where they lie on disk. Its first source is the GGUF file itself: [GGUF] reads
// the tensors of a band or of one expert's record by positioned reads and
// repacks them (sdk/ggml) on the way. It decides neither where a weight goes
// (sdk/place does) nor when one is read (core/stream does), and it caches
// nothing: the RAM tier is the page cache.
//
// Start at [Source] and [NewGGUF]; [Header] makes of a file what plugins see.
package store

import "context"

// Source is a model's weights as a plan names them, laid out as sdk/place has
// placed them. Its methods may be called from several goroutines at once, except
// Close, which comes after all of them. All sources give the same bytes.
type Source interface {
	// ReadRecord writes the record of one expert of a model layer, as one slot of
	// a bank holds it, to dst, whose length must be the record's stride. Padding
	// becomes zero. dst is only written to, never read, so that it may be mapped
	// GPU memory; after an error its contents are undefined.
	ReadRecord(ctx context.Context, layer, expert int, dst []byte) error

	// Pieces is in how many pieces the record of one expert is best read at once, 1 to MostPieces. It may change
	// between two reads of a record; of an expert that is not there it is 1.
	Pieces(layer, expert int) int

	// ReadPiece is ReadRecord for one of a record's pieces, numbered from 0 to of-1: it writes what no other piece
	// writes, and all of them write the whole record. of is 1 or what Pieces gave; dst is the whole record's. The
	// record may be used once Check has been given the sums of all its pieces.
	ReadPiece(ctx context.Context, layer, expert, piece, of int, dst []byte) (sum uint32, err error)

	// Check fails where a record whose pieces were read is not as it should be. sums are those of its pieces, in
	// their order.
	Check(layer, expert int, sums []uint32) error

	// ReadBand gives a band of a resident weight (indices into the plan's weights
	// and the placed weight's bands) to emit in pieces of at most 8 MiB: data is
	// the band's bytes from off on, both off and the length multiples of 16. The
	// pieces cover each byte of the band once, padding included, in no particular
	// order. data is valid until emit returns; an error of emit's ends the read and
	// is returned. A VECTOR's one band is its values as little-endian f32.
	ReadBand(ctx context.Context, weight, band int, emit func(off uint64, data []byte) error) error

	// EmbedRows writes the rows ids of the plan's embedding tensor to dst, one
	// after the other, as ggml dequantizes them to f32; the embedding's scale is
	// not applied. len(dst) must be len(ids) times the row length. An id outside
	// the tensor is an error.
	EmbedRows(ids []int32, dst []float32) error

	// RopeDivisor returns the values, one a pair, by which the frequencies of the
	// plan's rope of that index are divided, or nil where it has no such tensor.
	RopeDivisor(rope int) ([]float64, error)

	// BytesRead is the number of bytes that all reads have taken from the disk or
	// the page cache so far.
	BytesRead() int64

	// Close ends the source.
	Close() error
}

// ReadWhole is a source's ReadRecord by its other methods: the record is one piece.
func ReadWhole(ctx context.Context, s Source, layer, expert int, dst []byte) error {
	sum, err := s.ReadPiece(ctx, layer, expert, 0, 1, dst)
	if err != nil {
		return err
	}
	return s.Check(layer, expert, []uint32{sum})
}
