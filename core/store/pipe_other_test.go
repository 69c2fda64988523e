//go:build !unix

package store_test

import "errors"

// pipe makes a named pipe where there are such.
func pipe(string) error { return errors.ErrUnsupported }
