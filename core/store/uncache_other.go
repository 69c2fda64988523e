//go:build !linux

package store

import (
	"fmt"
	"os"
	"runtime"
)

// uncache fails: nothing is written for this system.
func uncache(*os.File) (int64, error) {
	return 0, fmt.Errorf("store: can't drop files from the page cache on %s", runtime.GOOS)
}
