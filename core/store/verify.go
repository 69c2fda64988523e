package store

import (
	"context"
	"fmt"

	"github.com/sluicehost/sluice/core/gguf"
)

// maxFaults is the most that Verify tells of.
const maxFaults = 100

// verifyPiece is how much is read at once, a block at least.
const verifyPiece = 1 << 20

// Verify reads all of a store and returns what is wrong with it, one text for each
// fault, at most 100. Where the manifest, the header or the list of checksums is
// at fault, that is the only one, for nothing else can be told from then on. An
// error is a reason why it could not be verified. progress may be nil.
func Verify(ctx context.Context, dir string, progress func(done, total uint64)) (faults []string, err error) {
	d, err := openFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer d.close()
	if _, err := d.root.Lstat(manifestFile); err != nil {
		_, err = d.readManifest()
		return nil, fmt.Errorf("store: %w", err)
	}
	s, err := openStore(d)
	if err != nil {
		return []string{err.Error()}, nil
	}
	defer s.closeFiles()
	buf := make([]byte, verifyPiece)
	v := &verifying{total: uint64(s.layout.dense + s.layout.experts), progress: progress}
	for block := range s.layout.blocks {
		size := min(blockBytes, s.layout.dense-int64(block)*blockBytes)
		v.check(ctx, size, func() error { return s.dense.blocks(buf[:size], block) })
	}
	for i := range s.layout.layers {
		l := &s.layout.layers[i]
		for expert := range l.Experts {
			v.check(ctx, l.slot, func() error {
				if err := s.readSlot(ctx, l, expert, buf); err != nil {
					return fmt.Errorf("layer %d expert %d: %w", l.Layer.Layer, expert, err)
				}
				return nil
			})
		}
	}
	return v.faults, ctx.Err()
}

// readSlot reads and checks an expert's record with its padding, through buf.
func (s *Store) readSlot(ctx context.Context, l *layerAt, expert int, buf []byte) error {
	sum, from := uint32(0), l.at+int64(expert)*l.slot
	for at := int64(0); at < l.slot; at += int64(len(buf)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		buf = buf[:min(int64(len(buf)), l.slot-at)]
		if n, err := s.experts.ReadAt(buf, from+at); err != nil {
			return gguf.ShortRead(s.expertsPath, from+at+int64(n), s.layout.experts, err)
		}
		sum = extend(sum, buf)
	}
	return s.checkRecord(l.first+expert, sum)
}

// verifying is a store being verified.
type verifying struct {
	faults      []string
	done, total uint64
	progress    func(done, total uint64)
}

// check reads and checks a piece of n bytes.
func (v *verifying) check(ctx context.Context, n int64, read func() error) {
	if ctx.Err() != nil || len(v.faults) >= maxFaults {
		return
	}
	if err := read(); err != nil && ctx.Err() == nil {
		v.faults = append(v.faults, err.Error())
	}
	if v.done += uint64(n); v.progress != nil {
		v.progress(v.done, v.total)
	}
}
