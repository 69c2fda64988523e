//go:build unix

package store_test

import "syscall"

// pipe makes a named pipe.
func pipe(path string) error { return syscall.Mkfifo(path, 0o600) }
