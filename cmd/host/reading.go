package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/ram"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/program"
)

// readingFlags say how expert records get from the disk to the GPU.
type readingFlags struct {
	Readers  int      `default:"0" placeholder:"N" help:"Expert records read at once (default: half of the CPUs, 4 to 8); bench disk says how many a disk gains from."`
	Direct   string   `enum:"auto,on,off" default:"${direct=auto}" help:"Read experts past the system's page cache: on, off, or auto (default), which is on where the file is more than twice as large as the memory that is available."`
	RAMCache hostSize `name:"ram-cache" default:"0" placeholder:"SIZE" help:"Bytes of host memory that keep expert records between disk and GPU, as in 8GB; 0 (default) is none."`
}

// maxReaders is the most --readers: no disk gains from more, and each takes room on the GPU.
const maxReaders = 64

// check refuses numbers that mean nothing.
func (r readingFlags) check() error {
	if r.Readers < 0 || r.Readers > maxReaders {
		return fmt.Errorf("--readers: have %d, want 1 to %d, or 0 for the default", r.Readers, maxReaders)
	}
	return nil
}

// hostSize is bytes of host memory.
type hostSize uint64

// UnmarshalText reads 0 or a size such as 512MB, 4GB or 1.5GiB.
func (s *hostSize) UnmarshalText(text []byte) error {
	n, err := parseSize(string(text))
	if err != nil || n > maxBudget {
		return fmt.Errorf("have %q, want a size such as 512MB, 4GB or 1.5GiB, or 0", text)
	}
	*s = hostSize(n)
	return nil
}

// reading is how a model's records are read.
type reading struct {
	readers int
	direct  bool
	why     string     // direct or not
	ram     *ram.Cache // nil for none
}

// diskSource is a source that reads files as it is told.
type diskSource interface {
	store.Source
	Prepare(store.Reading) error
	PageCache() store.PageCache
}

// reading prepares a source of files of so many bytes, and puts the cache in front. It closes the source
// where it fails.
func (r readingFlags) reading(a *app, s diskSource, bytes int64, records []*program.PlacedRecord, experts int) (store.Source, *reading, error) {
	available := availableMemory(os.DirFS("/proc"))
	if n := uint64(r.RAMCache); available > 0 && n > available {
		return nil, nil, errors.Join(fmt.Errorf("--ram-cache: have %s, want at most the %s of memory that are available", size(n), size(available)), s.Close())
	}
	out, err := r.prepare(a, s, uint64(bytes), available)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	if r.RAMCache == 0 {
		return s, out, nil
	}
	if out.ram, err = ram.New(s, records, experts, uint64(r.RAMCache)); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("--ram-cache: %w", err), s.Close())
	}
	return out.ram, out, nil
}

// prepare makes a source of files of so many bytes read as the flags say.
func (r readingFlags) prepare(a *app, s diskSource, bytes, available uint64) (*reading, error) {
	out := &reading{readers: r.Readers}
	if out.readers == 0 {
		out.readers = engine.DefaultReaders()
	}
	out.direct, out.why = r.direct(bytes, available)
	err := s.Prepare(store.Reading{Readers: out.readers, Direct: out.direct})
	if errors.Is(err, store.ErrNoDirect) {
		if r.Direct == "on" {
			a.log.Warn("reading experts by way of the page cache", "why", err)
		}
		out.direct, out.why = false, err.Error()
		err = s.Prepare(store.Reading{Readers: out.readers})
	}
	a.log.Debug("reading experts", "readers", out.readers, "direct", out.direct, "why", out.why, "ram-cache", uint64(r.RAMCache))
	return out, err
}

// directFrom is how much larger than the available memory a file must be for the page cache to be of little use: at twice
// its size half of the reads or more are from the disk (docs/streaming.md).
const directFrom = 2

// direct says whether to read past the page cache, and why, for files and available memory of so many bytes.
func (r readingFlags) direct(file, available uint64) (bool, string) {
	switch r.Direct {
	case "on", "off":
		return r.Direct == "on", "--direct " + r.Direct
	case "auto":
	default: // flags that were not parsed
		return false, ""
	}
	if available == 0 {
		return false, "auto: nothing tells how much memory is available"
	}
	left := available - min(available, uint64(r.RAMCache))
	text := fmt.Sprintf("auto: files of %s, %s of memory for the page cache", size(file), size(left))
	return file/directFrom > left, text
}

// fromRAM says what came from the cache, for people; empty where there is none.
func (l *loaded) fromRAM() string {
	if l.reading == nil || l.reading.ram == nil {
		return ""
	}
	c := l.reading.ram.Counters()
	return fmt.Sprintf(", %s from RAM (hit rate %s, %s)", size(uint64(c.Bytes)), shareText(c.Hits, c.Hits+c.Misses), size(c.Size))
}

// readingReport is how experts were read.
type readingReport struct {
	Readers int        `json:"readers"`
	Direct  bool       `json:"direct"`
	Why     string     `json:"why"`
	RAM     *ramReport `json:"ram_cache,omitempty"`
}

// ramReport is the cache in host memory; records.
type ramReport struct {
	Bytes     uint64 `json:"bytes"`
	Slots     int    `json:"slots"`
	Hits      int64  `json:"hits"`
	Misses    int64  `json:"misses"`
	Kept      int64  `json:"kept"`      // that came from the GPU
	Evictions int64  `json:"evictions"` // of them, that went unused
}

// report adds to a report what is known of the reading.
func (x *reading) report(r *statsReport) {
	r.Reading = readingReport{Readers: x.readers, Direct: x.direct, Why: x.why}
	if x.ram != nil {
		c := x.ram.Counters()
		r.FromRAM = c.Bytes
		r.Reading.RAM = &ramReport{c.Size, c.Slots, c.Hits, c.Misses, c.Kept, c.Evictions}
	}
}
