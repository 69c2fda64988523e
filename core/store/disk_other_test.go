//go:build !linux

package store_test

import "testing"

// smallDisk is a file system of its own of so many bytes.
func smallDisk(t *testing.T, size int64) string {
	t.Helper()
	t.Skip("can't make a small file system here")
	return ""
}
