package store

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// uncache asks the system to forget a file's pages. Those that are yet to be written stay.
func uncache(f *os.File) error {
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// cached is how many bytes of a file are in the page cache; of one that the user may not write the system says all.
func cached(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, err
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Munmap(data) }()
	page := os.Getpagesize()
	seen := make([]byte, (len(data)+page-1)/page)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), uintptr(unsafe.Pointer(&seen[0]))); errno != 0 {
		return 0, errno
	}
	n := int64(0)
	for _, s := range seen {
		n += int64(s & 1)
	}
	return min(n*int64(page), info.Size()), nil
}
