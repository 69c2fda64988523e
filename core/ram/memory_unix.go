//go:build linux || darwin || freebsd

package ram

import "golang.org/x/sys/unix"

// reserve maps n bytes beside Go's heap, where they would let garbage grow to their size
// before it is collected. Pages are taken as they are first written.
func reserve(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// free unmaps what reserve gave.
func free(memory []byte) error { return unix.Munmap(memory) }
