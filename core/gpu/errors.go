package gpu

import (
	"errors"
	"regexp"
	"strconv"
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
			strings.HasPrefix(line, "In wgpu"), strings.HasPrefix(line, "note: label ="):
			continue
		}
		parts = append(parts, line)
	}
	return strings.Join(parts, ": ")
}

// wgslPlace finds the place in naga's messages ("┌─ wgsl:3:13"; after validation the label stands for wgsl).
var wgslPlace = regexp.MustCompile(`┌─ [^\n]*:(\d+):(\d+)`)

// wgslError is a shader compiler's message with the line it is about; line is 0 where the message names none.
func wgslError(source, msg string) (line int, text, why string) {
	m := wgslPlace.FindStringSubmatch(msg)
	if m == nil {
		return 0, "", libraryText(msg)
	}
	line, err := strconv.Atoi(m[1])
	if lines := strings.Split(source, "\n"); err == nil && line >= 1 && line <= len(lines) {
		text = strings.TrimSpace(lines[line-1])
	}
	head, drawing, _ := strings.Cut(msg, "┌─")
	why = libraryText(head)
	if notes := wgslNotes(drawing); notes != "" {
		why += " (" + notes + ")"
	}
	return line, text, why
}

// wgslNotes collects the remarks under the source excerpt: what follows "^^^" and "=" marks, and causes below it.
func wgslNotes(drawing string) string {
	var notes []string
	for line := range strings.Lines(drawing) {
		line = strings.TrimSpace(line)
		if _, after, ok := strings.Cut(line, "^ "); ok {
			notes = append(notes, strings.TrimSpace(after))
		} else if after, ok := strings.CutPrefix(line, "= "); ok {
			notes = append(notes, strings.TrimSpace(strings.TrimPrefix(after, "note:")))
		}
	}
	return strings.Join(notes, "; ")
}
