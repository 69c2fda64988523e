package store

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// uncache asks the system to forget a file's pages, and returns how many bytes of it are in memory then.
func uncache(f *os.File) (left int64, err error) {
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return 0, err
	}
	return cached(f)
}

// cached is how many bytes of a file are in the page cache.
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
