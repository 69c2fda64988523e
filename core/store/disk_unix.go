//go:build linux || darwin || freebsd

package store

import (
	"errors"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockWhole locks a file for this process alone; errLocked where another has it.
func lockWhole(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		}
		return err
	}
}

// freeSpace is how many bytes may still be written to a folder's disk; false
// where that is unknown.
func freeSpace(path string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil || s.Bsize <= 0 {
		return 0, false
	}
	blocks := max(int64(s.Bavail), 0) // the types differ between systems
	return min(blocks, math.MaxInt64/int64(s.Bsize)) * int64(s.Bsize), true
}

// diskFull says whether an error is that of a full disk.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
