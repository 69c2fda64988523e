//go:build unix

package gguf_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
)

// Opening a pipe would wait for its writer for ever.
func TestOpenPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.gguf")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("this file system has no pipes: %v", err)
	}
	_, err := gguf.Open(path)
	wantError(t, err, path, "have a special file")
}
