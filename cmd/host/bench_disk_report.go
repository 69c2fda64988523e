package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/sluicehost/sluice/sdk/program"
)

// diskReport is the result of host bench disk.
type diskReport struct {
	Model   string      `json:"model"`
	File    int64       `json:"file_bytes"`
	Records int         `json:"records"`
	Largest uint64      `json:"record_bytes"` // the largest
	Rows    []diskRow   `json:"rows"`
	Notes   []string    `json:"notes"` // what could not be done
	Advice  *diskAdvice `json:"advice"`
}

// diskRow is one measurement.
type diskRow struct {
	Source  string  `json:"source"`
	Direct  bool    `json:"direct"`
	Readers int     `json:"readers"`
	Rate    float64 `json:"bytes_per_second"` // of records, as the GPU takes them
	Records int     `json:"records"`          // that were read
	Seconds float64 `json:"seconds"`
	Median  float64 `json:"median_seconds"` // of one record
	P95     float64 `json:"p95_seconds"`
	Cached  *int64  `json:"cached_bytes"` // of the files in the page cache at the beginning; null is unknown
}

// diskAdvice is what to run with.
type diskAdvice struct {
	Source  string   `json:"source"`
	Readers int      `json:"readers"`
	Direct  bool     `json:"direct"`
	Rate    float64  `json:"bytes_per_second"`
	Flags   string   `json:"flags"`
	Why     []string `json:"why"`
}

func (r *diskReport) describe(m *openModel, records []*program.PlacedRecord, experts int) {
	r.Model, r.File, r.Records, r.Rows, r.Notes = m.path, m.bytes(), len(records)*experts, []diskRow{}, []string{}
	for _, x := range records {
		r.Largest = max(r.Largest, x.GetStride())
	}
}

// note tells something once.
func (r *diskReport) note(text string) {
	if !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

func (r *diskRow) mode() string {
	if r.Direct {
		return "direct"
	}
	return "buffered"
}

func (r *diskRow) fill(took []float64, bytes int64, wall time.Duration) {
	slices.Sort(took)
	r.Records, r.Seconds = len(took), wall.Seconds()
	if len(took) > 0 {
		r.Rate, r.Median, r.P95 = float64(bytes)/r.Seconds, took[len(took)/2], took[len(took)*95/100]
	}
}

// Measurements that are within enough of the best count as good; more is worth a change only by worth.
const (
	enough = 0.9
	worth  = 1.10
)

// pick is the row of a source and mode with the fewest readers that are good enough.
func (r *diskReport) pick(source string, direct bool) (diskRow, bool) {
	var rows []diskRow
	best := 0.0
	for _, x := range r.Rows {
		if x.Source == source && x.Direct == direct && x.Records > 0 {
			rows = append(rows, x)
			best = max(best, x.Rate)
		}
	}
	i := slices.IndexFunc(rows, func(x diskRow) bool { return x.Rate >= enough*best })
	if i < 0 {
		return diskRow{}, false
	}
	return rows[i], true
}

// best is a source's row of the better mode. Past the page cache must be worth it, since what is read again may be in it.
func (r *diskReport) best(source string) (diskRow, bool) {
	buffered, ok := r.pick(source, false)
	direct, ok2 := r.pick(source, true)
	if ok2 && (!ok || direct.Rate >= worth*buffered.Rate) {
		return direct, true
	}
	return buffered, ok
}

// advise says what to run with.
func (r *diskReport) advise(m modelFlags) {
	row, ok := r.best(fromGGUF)
	packed, name := diskRow{}, fromStore
	have := false
	for _, name = range []string{fromStore, likeStore} {
		if packed, have = r.best(name); have {
			break
		}
	}
	if !ok && !have {
		return
	}
	out := &diskAdvice{}
	switch {
	case !ok:
		row = packed
	case have && packed.Rate >= worth*row.Rate:
		out.Why = append(out.Why, fmt.Sprintf("a store gives %s/s, the GGUF %s/s", size(uint64(packed.Rate)), size(uint64(row.Rate))))
		row = packed
	case have:
		out.Why = append(out.Why, fmt.Sprintf("the GGUF in place gives %s/s, a store %s/s: not worth a copy", size(uint64(row.Rate)), size(uint64(packed.Rate))))
	}
	out.Source, out.Readers, out.Direct, out.Rate = row.Source, row.Readers, row.Direct, row.Rate
	out.Flags = "--model " + m.Model
	switch row.Source {
	case fromStore:
		out.Flags = "--store " + cmp.Or(m.Store, m.Model)
	case likeStore:
		out.Flags = "--store DIR"
		out.Why = append(out.Why, "make the store first: host ingest --model "+m.Model)
	}
	out.Flags += fmt.Sprintf(" --readers %d", row.Readers)
	if row.Direct {
		out.Flags += " --direct on"
		out.Why = append(out.Why, "direct reads are faster than the first ones by way of the page cache; where memory holds much of the file, leave --direct auto")
	}
	out.Why = append(out.Why, r.whyReaders(row))
	r.Advice = out
}

// whyReaders says why a row's readers and not more or fewer, as far as it was measured.
func (r *diskReport) whyReaders(row diskRow) string {
	most := 0
	for _, x := range r.Rows {
		if x.Source == row.Source && x.Direct == row.Direct && x.Records > 0 {
			most = max(most, x.Readers)
		}
	}
	if row.Readers < most {
		return fmt.Sprintf("more readers gain less than %.0f%%; up to %d were measured", 100*(1/enough-1), most)
	}
	return fmt.Sprintf("fewer readers give less than %.0f%% of it; more than %d were not measured", 100*enough, most)
}

// print writes a table.
func (r *diskReport) print(out io.Writer) error {
	w := &errWriter{w: out}
	fmt.Fprintf(w, "%s: %s, %s of at most %s\n\n", r.Model, size(uint64(r.File)), plural(r.Records, "record"), size(r.Largest))
	table(w, func(t io.Writer) {
		fmt.Fprintln(t, "SOURCE\tMODE\tREADERS\tRATE\tRECORDS\tMEDIAN\tP95\tCACHED BEFORE")
		for _, x := range r.Rows {
			cached := "unknown"
			if x.Cached != nil {
				cached = shareText(*x.Cached, r.File)
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%s/s\t%d\t%.2f ms\t%.2f ms\t%s\n", x.Source, x.mode(), x.Readers, size(uint64(x.Rate)), x.Records, 1e3*x.Median, 1e3*x.P95, cached)
		}
	})
	for _, n := range r.Notes {
		fmt.Fprintf(w, "\n%s", n)
	}
	if a := r.Advice; a != nil {
		fmt.Fprintf(w, "\nUse %s: %s/s.\n", a.Flags, size(uint64(a.Rate)))
		for _, why := range a.Why {
			fmt.Fprintf(w, "- %s\n", why)
		}
	}
	return w.err
}
