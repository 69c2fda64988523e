//go:build unix

package main

import "golang.org/x/sys/unix"

// freeSpace is the number of bytes that may be written to a folder's file system, where that is known.
func freeSpace(dir string) (uint64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true
}
