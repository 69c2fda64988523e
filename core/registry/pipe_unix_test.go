//go:build unix

package registry

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Reading a pipe would wait for ever, reading a device might not end.
func TestLoadNoPlainFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero"} {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path+": have") {
			t.Errorf("%s: have %v, want it refused by what it is", path, err)
		}
	}
}
