package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/routing"
	"github.com/sluicehost/sluice/core/stream"
)

// traceFlag asks for a record of the routing.
type traceFlag struct {
	Trace string `placeholder:"FILE" help:"Write which experts each token picked in each layer, and which were guessed before, to this file (docs/trace-format.md), for host plan --trace. A file that is there is replaced once the first step is done; a run that is killed leaves what it has written."`
}

// recorder writes a routing trace; nil writes none.
type recorder struct {
	file   *outputFile
	header []byte          // held back while an earlier trace is there and no step is done
	writer *routing.Writer // once the model is loaded
}

// Write takes what the trace's writer writes: the header, and then each step.
func (r *recorder) Write(data []byte) (int, error) {
	if r.file.replaces && r.header == nil {
		r.header = bytes.Clone(data)
		return len(data), nil
	}
	if r.header == nil {
		return r.file.Write(data)
	}
	_, err := r.file.Write(append(r.header, data...)) // in one write, as every step
	r.header = nil
	return len(data), err
}

// load loads a model whose routing is recorded, if the flag says so. The file is opened before.
func (f traceFlag) load(a *app, m modelFlags, r registryFlags, e engineFlags, o engine.Options) (*loaded, error) {
	if f.Trace == "" {
		return a.load(m, r, e, o)
	}
	file, err := createOutput("--trace", f.Trace)
	if err != nil {
		return nil, err
	}
	x := &recorder{file: file}
	o.Routed = func(layer, pos int, picks, guesses []int) { x.writer.Add(layer, pos, picks, guesses) }
	l, err := a.load(m, r, e, o)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	l.routes = x
	if err := x.begin(l); err != nil {
		return nil, errors.Join(fmt.Errorf("--trace: %w", err), l.close())
	}
	return l, nil
}

// begin writes the header, to the file unless an earlier trace is there.
func (r *recorder) begin(l *loaded) (err error) {
	r.writer, err = routing.NewWriter(r, traceHeader(l.path, l.sum, l.model))
	return err
}

// decoding says whether the tokens to come are made (true) or a prompt's.
func (r *recorder) decoding(on bool) {
	if r != nil {
		r.writer.Decoding(on)
	}
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
func traceHeader(path, sum string, m *engine.Model) *routing.Header {
	model := m.Plan.Model
	h := &routing.Header{Model: filepath.Base(path), Architecture: model.Architecture, Sum: sum, Experts: int(model.Experts), TopK: int(model.TopK)}
	for _, r := range m.Records {
		h.Layers = append(h.Layers, routing.Layer{Layer: int(r.Layer), RecordBytes: int64(r.Stride), Group: groupOf(m.Groups(), int(r.Layer)),
			Guesses: m.Guesses(int(r.Layer))})
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
