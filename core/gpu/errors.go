package gpu

import (
	"errors"
	"strings"
)

// The errors callers branch on; each comes wrapped with numbers, names and what to do.
var (
	// ErrNoLoader: the Vulkan loader is not installed.
	ErrNoLoader = errors.New("no Vulkan loader")
	// ErrNoAdapter: the loader is there, but no driver offers a GPU (or none with the asked name).
	ErrNoAdapter = errors.New("no GPU found")
	// ErrClosed: the Device was closed.
	ErrClosed = errors.New("gpu: device is closed")
	// ErrLost: the driver took the device away (reset, unplugged, crashed). Nothing on it can be used again.
	ErrLost = errors.New("gpu: device is lost")
	// ErrBudget: a buffer would exceed what SetBudget allows.
	ErrBudget = errors.New("over the GPU budget")
	// ErrOutOfMemory: the driver has no memory left for a buffer.
	ErrOutOfMemory = errors.New("out of GPU memory")
)

// libraryText turns the library's multi-line message into one line: without the binding's prefix, headings and labels.
func libraryText(msg string) string {
	if i := strings.Index(msg, "(): "); i >= 0 && strings.HasPrefix(msg, "wgpu.") {
		msg = msg[i+len("(): "):]
	}
	var parts []string
	for line := range strings.Lines(msg) {
		line = strings.TrimSpace(line)
		switch {
		case line == "", line == "Validation Error", line == "Caused by:",
			strings.HasPrefix(line, "In wgpu"), strings.HasPrefix(line, "note: label ="), strings.HasPrefix(line, "note: encoder ="):
			continue
		}
		if name, ok := strings.CutPrefix(line, "note: compute pipeline = "); ok {
			line = "kernel " + strings.Trim(name, "`")
		}
		parts = append(parts, line)
	}
	return strings.Join(parts, ": ")
}
