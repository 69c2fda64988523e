//go:build !linux

package store

import (
	"fmt"
	"os"
	"runtime"
)

// uncache fails: nothing is written for this system.
func uncache(*os.File) error {
	return fmt.Errorf("store: can't drop files from the page cache on %s", runtime.GOOS)
}

// cached fails, too.
func cached(*os.File) (int64, error) {
	return 0, fmt.Errorf("store: can't tell what is in the page cache on %s", runtime.GOOS)
}
