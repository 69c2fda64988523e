package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/core/simulate"
)

// States of the page cache, as --cache names them.
const (
	cacheAsIs = "as-is"
	cacheCold = "cold"
	cacheWarm = "warm"
	cacheBoth = "both"
)

// machineLimits are what the machine can do, as measured beside the rows. 0 is unknown.
type machineLimits struct {
	Upload float64      `json:"upload_bytes_per_second"` // from mapped memory to the GPU, as records go
	Token  float64      `json:"token_seconds"`           // with every expert resident, the best row's
	Caches []benchCache `json:"caches"`
}

// benchCache is what the disk gives with the page cache in a state.
type benchCache struct {
	Cache   string  `json:"cache"`
	Disk    float64 `json:"disk_bytes_per_second"` // read of records at random; 0 is unknown
	Grows   float64 `json:"packed_bytes_per_byte"` // a record's bytes on the GPU for each byte read
	Records int     `json:"records"`               // that were read for it
	Seconds float64 `json:"seconds"`
	Size    int64   `json:"file_bytes"`          // of the files that have the records
	Before  *int64  `json:"cached_bytes_before"` // of the files in the page cache: before the rows; null is unknown
	After   *int64  `json:"cached_bytes_after"`  // and after them
	drop    bool    // before every token
}

// diskTime is the most that a state's disk is measured.
const diskTime = 2 * time.Second

// pageCache is store.PageCache, or a test's.
type pageCache interface {
	Size() int64
	Drop() error
	Uncache() (left int64, err error)
	Cached() (int64, error)
	Fill(ctx context.Context, progress func(done, total uint64)) error
}

// states are the states of --cache that can be had for reads of this kind.
func (c *benchCmd) states(r *reading) ([]string, error) {
	switch {
	case !r.direct && c.Cache == cacheBoth:
		return []string{cacheCold, cacheWarm}, nil
	case r.direct && c.Cache == cacheWarm:
		return nil, fmt.Errorf("--cache warm: experts are read past the page cache (%s): give --direct off", r.why)
	case r.direct: // cold by nature
		return []string{cacheCold}, nil
	}
	return []string{c.Cache}, nil
}

// begin brings the page cache into the state. An error says that it can't be had.
func (x *benchCache) begin(ctx context.Context, p pageCache, direct bool, shown *progress) error {
	x.Size = p.Size()
	switch {
	case direct:
		return nil
	case x.Cache == cacheCold:
		left, err := p.Uncache()
		if err != nil {
			return err
		}
		x.Before, x.drop = &left, true
		return nil
	case x.Cache == cacheWarm:
		err := p.Fill(ctx, shown.update)
		shown.done()
		if err != nil {
			return err
		}
	}
	x.Before = cachedNow(p)
	return nil
}

// note says where the state was not quite had; empty where it was.
func (x *benchCache) note() string {
	switch {
	case x.drop && *x.Before > x.Size/100:
		return fmt.Sprintf("cold: %s of the files stay in the page cache, as others use them, or they lie in memory anyway,\nor are another user's, of which the system tells nothing: not all reads are from the disk", size(uint64(*x.Before)))
	case x.Cache == cacheWarm && x.Before != nil && *x.Before < x.Size-x.Size/100:
		return fmt.Sprintf("warm: of %s only %s stayed in the page cache: the rest finds no memory there", size(uint64(x.Size)), size(uint64(*x.Before)))
	}
	return ""
}

// cachedNow is what is cached, if the system tells.
func cachedNow(p pageCache) *int64 {
	n, err := p.Cached()
	if err != nil {
		return nil
	}
	return &n
}

// measure reads records as misses do.
func (x *benchCache) measure(ctx context.Context, s *benchSurvey) error {
	if x.drop {
		if _, err := s.source.PageCache().Uncache(); err != nil {
			return err
		}
	}
	before := s.source.BytesRead()
	r, err := readRandomly(ctx, s.source, s.records, s.experts, s.reading.readers, diskTime)
	if err != nil {
		return err
	}
	x.Records, x.Seconds = len(r.took), r.wall.Seconds()
	if read := s.source.BytesRead() - before; read > 0 && x.Seconds > 0 {
		x.Disk, x.Grows = float64(read)/x.Seconds, float64(r.bytes)/float64(read)
	}
	return nil
}

// benchSpeed is what the formula of docs/streaming.md allows, in tokens per second; 0 where it is unknown.
type benchSpeed struct {
	Bound  float64 `json:"overlapped_tokens_per_second"` // reading, copying and computing overlap
	Serial float64 `json:"serial_tokens_per_second"`     // nothing overlaps
	By     string  `json:"limited_by"`                   // what decides of the overlapped: disk, upload or gpu
}

// speed is the limit where each token needs so many bytes from the disk, as files have them, and from --ram-cache, as the GPU has them.
// It is unknown where what has a part in it is.
func (l machineLimits) speed(disk benchCache, read, ram float64) benchSpeed {
	m := read*disk.Grows + ram // bytes that a token lacks, as the GPU has them
	if l.Token <= 0 || read > 0 && disk.Disk <= 0 || m > 0 && l.Upload <= 0 {
		return benchSpeed{}
	}
	limits := simulate.Limits{Upload: l.Upload, Token: time.Duration(l.Token * float64(time.Second))}
	if read > 0 && disk.Disk > 0 {
		limits.Disk = disk.Disk * m / read // what the disk's part of them takes
	}
	var out benchSpeed
	out.Bound, out.Serial = limits.Speed(m)
	out.By = limits.By(m)
	return out
}
