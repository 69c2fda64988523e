package store

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// lockWhole locks a file for this process alone; errLocked where another has it.
// The byte that is locked lies far behind the file's end, so that others can read
// who holds it.
func lockWhole(f *os.File) error {
	at := windows.Overlapped{OffsetHigh: math.MaxInt32}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errLocked
	}
	return err
}

// freeSpace is how many bytes may still be written to a folder's disk; false
// where that is unknown.
func freeSpace(path string) (int64, bool) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil || free > math.MaxInt64 {
		return 0, false
	}
	return int64(free), true
}

// diskFull says whether an error is that of a full disk.
func diskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
