package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// line is a row for people who wait.
func (r *benchRow) line() string {
	name := r.Budget
	if r.Cache != "" {
		name += ", " + r.Cache
	}
	if r.Error != "" {
		return name + ": " + r.Error
	}
	text := fmt.Sprintf("%s: prompt %s tok/s", name, tokText(r.Prefill))
	if r.Decode == 0 {
		return text + ", decode -, hit rate -, read -"
	}
	return fmt.Sprintf("%s, decode %s tok/s, hit rate %s, read %s/s", text, tokText(r.Decode), percentText(r.HitRate), size(uint64(r.Rate)))
}

// print writes limits and tables.
func (t *benchTable) print(out io.Writer) error {
	w := &errWriter{w: out}
	fmt.Fprintf(w, "%s, %s, on %s\n", t.Model, size(uint64(t.File)), t.Device)
	fmt.Fprintf(w, "%s of at most %s, %s in all, and beside them %s of GPU memory\n", plural(t.Experts, "expert"), size(t.Largest), size(t.ExpertBytes), size(t.Fixed))
	fmt.Fprintf(w, "%s of prompt, %d made after it; %s\n\n", plural(t.Prompt, "token"), t.Decode, t.runsText())
	any := slices.ContainsFunc(t.Rows, benchRow.measured)
	if any {
		t.printLimits(w)
	}
	t.printRows(w)
	if any && t.Decode > 0 {
		t.printWhy(w)
	}
	for _, n := range t.Notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
	if t.Interrupted {
		fmt.Fprint(w, "\ninterrupted: the rest was not measured\n")
	}
	return w.err
}

func (t *benchTable) runsText() string {
	switch t.Runs {
	case 0:
		return "the first run"
	case 1:
		return "the run after the first"
	}
	return fmt.Sprintf("the median of %d runs after the first", t.Runs)
}

func (t *benchTable) printLimits(w io.Writer) {
	fmt.Fprintln(w, "limits:")
	table(w, func(out io.Writer) {
		for _, x := range t.Limits.Caches {
			fmt.Fprintf(out, "  disk, %s\t%s\t%s\n", x.Cache, rateText(x.Disk), t.diskText(x))
		}
		fmt.Fprintf(out, "  upload\t%s\tfrom mapped memory to the GPU, %s at a time, %d at once\n", rateText(t.Limits.Upload), size(t.Largest), t.Readers)
		if t.Limits.Token > 0 {
			fmt.Fprintf(out, "  a token\t%s ms\twith every expert resident: the best such row below\n", msText(t.Limits.Token))
		} else {
			fmt.Fprint(out, "  a token\tunknown\twith every expert resident: no row below is so\n")
		}
	})
	fmt.Fprintln(w)
}

// diskText says what a disk's rate is.
func (t *benchTable) diskText(x benchCache) string {
	text := fmt.Sprintf("records at random, %d at once", t.Readers)
	share := func(n *int64) string {
		if n == nil {
			return "unknown"
		}
		return shareText(*n, x.Size)
	}
	switch {
	case t.Direct:
		return text + ", past the page cache"
	case x.drop && *x.Before == 0:
		return text + "; none of it in the page cache"
	case x.drop:
		return fmt.Sprintf("%s; %s of the file could not be dropped", text, share(x.Before))
	}
	return fmt.Sprintf("%s; %s of the file cached (%s after)", text, share(x.Before), share(x.After))
}

func rateText(bytes float64) string {
	if bytes <= 0 {
		return "unknown"
	}
	return size(uint64(bytes)) + "/s"
}

// printRows is the table of speeds.
func (t *benchTable) printRows(w io.Writer) {
	table(w, func(out io.Writer) {
		fmt.Fprintln(out, "BUDGET\tCACHE\tSLOTS\tOF ALL\tPROMPT\tDECODE\tHITS\tREAD/TOK\tREAD/S\tLIMIT\tSERIAL\tOF LIMIT")
		for _, r := range t.Rows {
			if !r.measured() {
				fmt.Fprintf(out, "%s\t%s\t%s\n", r.budgetText(), orDash(r.Cache), r.Error)
				continue
			}
			hits, each, read := "-", "-", "-"
			if r.Decode > 0 {
				hits, each, read = percentText(r.HitRate), size(uint64(r.Read)), size(uint64(r.Rate))
			}
			fmt.Fprintf(out, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.budgetText(), r.Cache, r.Slots, percentText(r.Share),
				tokText(r.Prefill), tokText(r.Decode), hits, each, read, tokText(r.Limit.Bound), tokText(r.Limit.Serial), ratioText(r.Efficient))
		}
	})
}

// printWhy is the table of what lies behind the speeds.
func (t *benchTable) printWhy(w io.Writer) {
	fmt.Fprint(w, "\nPROMPT, DECODE, LIMIT, SERIAL: tokens per second. LIMIT: the slowest of disk, upload, GPU decides;\n"+
		"SERIAL: each waits for the others; for the bytes that tokens asked for. OF LIMIT: DECODE / LIMIT.\n\n")
	table(w, func(out io.Writer) {
		fmt.Fprintln(out, "BUDGET\tCACHE\tGPU\tLIMITED BY\tMS/TOK\tDISK WAIT\tGPU WAIT\tENCODING\tUSED\tALLOCATIONS/TOK")
		for _, r := range t.Rows {
			if !r.measured() || r.Decode == 0 {
				continue
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f, %s\n", r.budgetText(), r.Cache, size(r.GPU), orDash(r.Limit.By),
				msText(1/r.Decode), msText(r.Waited), msText(r.GPUWaited), msText(r.Encoded), percentText(r.Wanted), r.Allocs, size(uint64(r.Bytes)))
		}
	})
}

// budgetText is the budget as given, unless that is a long number of bytes.
func (r *benchRow) budgetText() string {
	if len(r.Budget) > 9 && r.GPU > 0 {
		return strings.ReplaceAll(size(r.GPU), " ", "")
	}
	return r.Budget
}

// tokText is a speed in tokens per second, in at most six characters.
func tokText(rate float64) string {
	if rate >= 1000 {
		return fmt.Sprintf("%.0f", rate)
	}
	return speedText(rate)
}

// msText is a time in milliseconds.
func msText(seconds float64) string {
	if seconds >= 1 {
		return fmt.Sprintf("%.0f", 1e3*seconds)
	}
	return fmt.Sprintf("%.3g", 1e3*seconds)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func ratioText(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}
