//go:build !linux && !darwin && !freebsd

package ram

// reserve makes n bytes.
func reserve(n int) ([]byte, error) { return make([]byte, n), nil }

// free leaves memory to the garbage collector.
func free([]byte) error { return nil }
