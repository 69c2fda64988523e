package store

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openDirect opens a file for reads that leave nothing in the page cache.
func openDirect(open opener) (*os.File, error) {
	f, err := open(0)
	if err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_NOCACHE, 1); err != nil {
		f.Close()
		return nil, fmt.Errorf("store: %w: %w", ErrNoDirect, err)
	}
	return f, nil
}

// refused is the error itself: there is nothing that a read could refuse.
func refused(err error) error { return err }

// readNothingAhead tells the system that a file's reads have no order. It is advice: where it is not taken reads are slower.
func readNothingAhead(f *os.File) { _, _ = unix.FcntlInt(f.Fd(), unix.F_RDAHEAD, 0) }
