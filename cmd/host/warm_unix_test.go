//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWarmPipe: a start does not wait for a pipe that lies where its hints should.
func TestWarmPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.json")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := readWarm(path)
		read <- err
	}()
	select {
	case err := <-read:
		if err == nil || !strings.Contains(err.Error(), "want a plain file") {
			t.Errorf("have %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits")
	}
}
