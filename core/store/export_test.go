package store

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
