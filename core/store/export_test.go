package store

import (
	"errors"
	"os"
)

// WithFault gives options with which fault is asked before each write of data.
func WithFault(o IngestOptions, fault func(file string, off int64) error) IngestOptions {
	o.fault = fault
	return o
}

// Resealed is a manifest with a change that no checksum gives away.
func Resealed(data []byte, change func(*Manifest)) []byte {
	m, err := decodeManifest(data)
	if err != nil {
		panic(err)
	}
	change(m)
	return m.encode()
}

// OpenRandom opens a file as records' are.
func OpenRandom(r Reading, open func(flag int) (*os.File, error)) error {
	f := &files{}
	return errors.Join(f.open(r, "file", 1, open), f.close())
}
