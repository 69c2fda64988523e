package store

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openDirect opens a file for reads past the page cache; offset, length and memory of each
// must be multiples of align.
func openDirect(open opener) (*os.File, error) {
	f, err := open(unix.O_DIRECT)
	return f, refused(err)
}

// refused is ErrNoDirect where that is what an error means.
func refused(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("store: %w: %w", ErrNoDirect, err)
	}
	return err
}

// readNothingAhead tells the system that a file's reads have no order. It is advice: where it is not taken reads are slower.
func readNothingAhead(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) }
