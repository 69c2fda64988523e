package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/routing"
	"github.com/sluicehost/sluice/core/stream"
)

// traceFlag asks for a record of the routing.
type traceFlag struct {
	Trace string `placeholder:"FILE" help:"Write which experts each token picked in each layer to this file (docs/trace-format.md), for host plan --trace. A run that is killed leaves what it has written."`
}

// recorder writes a routing trace; nil writes none.
type recorder struct {
	file   *os.File
	writer *routing.Writer // from begin on
}

// open makes the file before the work is done.
func (f traceFlag) open() (*recorder, error) {
	if f.Trace == "" {
		return nil, nil
	}
	file, err := os.Create(f.Trace)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	return &recorder{file: file}, nil
}

// routed is what the engine calls.
func (r *recorder) routed() engine.Routed {
	if r == nil {
		return nil
	}
	return func(layer, pos int, picks []int) { r.writer.Add(layer, pos, picks) }
}

// begin writes the header, once the model is there.
func (r *recorder) begin(l *loaded) (err error) {
	if r == nil {
		return nil
	}
	if r.writer, err = routing.NewWriter(r.file, traceHeader(l.path, l.sum, l.model.Planned)); err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	l.trace = r.writer
	return nil
}

// close ends the file and tells the first error.
func (r *recorder) close() error {
	if r == nil {
		return nil
	}
	if err := errors.Join(r.writer.Err(), r.file.Close()); err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	return nil
}

// traceHeader describes a model to readers of its trace.
func traceHeader(path, sum string, m *engine.Planned) *routing.Header {
	model := m.Plan.Model
	h := &routing.Header{Model: filepath.Base(path), Architecture: model.Architecture, Sum: sum, Experts: int(model.Experts), TopK: int(model.TopK)}
	for _, r := range m.Records {
		h.Layers = append(h.Layers, routing.Layer{Layer: int(r.Layer), RecordBytes: int64(r.Stride), Group: groupOf(m.Groups(), int(r.Layer))})
	}
	return h
}

// groupOf is the number of the group that has a layer.
func groupOf(groups []stream.Group, layer int) int {
	for i, g := range groups {
		for _, l := range g.Layers {
			if l == layer {
				return i
			}
		}
	}
	panic(fmt.Sprintf("BUG: layer %d is in no group", layer))
}

// headerSum is the SHA-256 of a model's headers, those of all parts one after the other: by it a trace knows its model.
func headerSum(f *gguf.File) (string, error) {
	h := sha256.New()
	for _, p := range f.Parts {
		if _, err := io.Copy(h, io.NewSectionReader(f, p.Offset, p.HeaderSize)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
