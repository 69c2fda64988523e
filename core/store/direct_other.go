//go:build !linux && !darwin

package store

import (
	"fmt"
	"os"
	"runtime"
)

// openDirect fails: nothing is written for this system.
func openDirect(opener) (*os.File, error) {
	return nil, fmt.Errorf("store: %w: not on %s", ErrNoDirect, runtime.GOOS)
}

func refused(err error) error { return err }

// readNothingAhead does nothing here.
func readNothingAhead(*os.File) {}
