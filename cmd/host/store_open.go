package main

import (
	"errors"
	"os"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/program"
)

// openModel is a model's header and weights, from a GGUF or from a store.
type openModel struct {
	*gguf.File
	path   string
	packed *store.Store // nil for a GGUF
}

// Validate fails, before anything is read, where no model is named.
func (m modelFlags) Validate() error {
	if m.Model == "" && m.Store == "" {
		return errors.New("missing flags: --model=FILE or --store=DIR")
	}
	return nil
}

// open opens what the flags name: a GGUF, or a store, which must be made from the GGUF if
// both are given.
func (m modelFlags) open() (*openModel, error) {
	if m.Store == "" {
		if info, err := os.Stat(m.Model); err != nil || !info.IsDir() {
			f, err := gguf.Open(m.Model)
			return &openModel{File: f, path: m.Model}, err
		}
		m = modelFlags{Store: m.Model}
	}
	dir := findStore(m.Store)
	s, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	if m.Model != "" {
		f, err := gguf.Open(m.Model)
		if err == nil {
			err = errors.Join(s.Made(f), f.Close())
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return &openModel{File: s.File, path: dir, packed: s}, nil
}

// source is where the engine reads the weights; its Close closes the model.
func (m *openModel) source(p *program.Plan, weights []*program.Placed, records []*program.PlacedRecord) (diskSource, error) {
	if m.packed != nil {
		return m.packed.Source(p, weights, records)
	}
	return store.NewGGUF(m.File, p, weights, records)
}

// bytes is the size of the model's files.
func (m *openModel) bytes() int64 {
	if m.packed != nil {
		return m.packed.Size()
	}
	return m.File.Size()
}

// Close closes the model where no source does.
func (m *openModel) Close() error {
	if m.packed != nil {
		return m.packed.Close()
	}
	return m.File.Close()
}
