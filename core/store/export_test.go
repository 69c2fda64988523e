package store

// WithFault gives options with which fault is asked before each write of data.
func WithFault(o IngestOptions, fault func(file string, off int64) error) IngestOptions {
	o.fault = fault
	return o
}
