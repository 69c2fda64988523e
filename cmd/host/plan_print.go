package main

import (
	"fmt"
	"io"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
)

// print writes the plan as text.
func (r *planReport) print(out io.Writer) error {
	w := &errWriter{w: out}
	fmt.Fprintf(w, "%s: %s, %s in each of %s, %d of them used\n", quoted(r.File), quoted(r.Architecture), plural(r.Experts, "expert"), plural(r.MoELayers, "layer"), r.TopK)
	if r.Device != "" {
		r.printBudget(w)
	}
	if r.Trace != nil {
		r.printCurve(w)
	}
	if text := capped(r.Most, r.Pool.Of, r.binding); text != "" {
		fmt.Fprintf(w, "\n%s\n", text)
	}
	return w.err
}

func (r *planReport) printBudget(w io.Writer) {
	fmt.Fprintf(w, "context %d, chunk %d, kv %s; limits of %s; budget %s\n\n", r.Context, r.Chunk, r.KV, r.Device, r.BudgetText)
	table(w, func(t io.Writer) {
		for _, k := range []gpu.Kind{gpu.Dense, gpu.KV, gpu.State, gpu.Scratch, gpu.Table, gpu.Staging, gpu.Pool} {
			note := ""
			if k == gpu.Pool && r.Fits {
				note = fmt.Sprintf("%s for %s (%s) in %s", plural(r.Pool.Slots, "slot"), plural(r.Pool.Of, "expert"), percentText(r.Pool.Share), plural(r.Pool.Banks, "bank"))
			} else if k == gpu.Pool {
				note = "no room"
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\n", k, size(r.Bytes[k]), note)
		}
		fmt.Fprintf(t, "  total\t%s\t%s requested, the rest is rounding\n", size(r.Total), size(r.Requested))
	})
	if r.RAMCache > 0 {
		fmt.Fprintf(w, "\nand up to %s of host memory for --ram-cache\n", size(r.RAMCache))
	}
	fmt.Fprintf(w, "\nsmallest budget %s (--gpu-budget %d); %s resident from %s on\n", size(r.Smallest), r.Smallest, r.largestText(), size(r.Largest))
	if !r.Fits {
		fmt.Fprintf(w, "DOES NOT FIT in %s\n", size(r.Budget))
	}
	for _, s := range r.Suggestions {
		fmt.Fprintf(w, "  %s\n", s)
	}
	if r.nothing != "" {
		fmt.Fprintf(w, "  %s\n", r.nothing)
	}
}

// largestText is what the largest budget holds.
func (r *planReport) largestText() string {
	if r.Most < r.Pool.Of {
		return plural(r.Most, "expert")
	}
	return "everything"
}

func (r *planReport) printCurve(w io.Writer) {
	t := r.Trace
	fmt.Fprintf(w, "\ntrace %s of %s: %s, %s counted", quoted(t.File), quoted(t.Model), plural(t.Steps, "step"), plural(t.Counted, "token"))
	if t.Cut {
		fmt.Fprint(w, "; its run was cut short")
	}
	if !t.Same {
		fmt.Fprint(w, "; recorded with another file of this shape")
	}
	fmt.Fprintf(w, "\nfound of the experts that tokens asked for; read with --evict %s\n\n", r.Evict)
	if r.RAMCache > 0 {
		fmt.Fprint(w, "what --ram-cache finds of READ/TOKEN is not taken off: such records take no reading, but uploading\n\n")
	}
	known := r.Limits.Known()
	table(w, func(t io.Writer) {
		fmt.Fprint(t, "BUDGET\tSLOTS\tSHARE\tLRU\tFREQ\tONE LRU\tBEST\tREAD/TOKEN")
		if known {
			fmt.Fprint(t, "\tTOK/S\tSIMULATED\tNO OVERLAP\tLIMITED BY")
		}
		fmt.Fprintln(t)
		for _, p := range r.Curve {
			mark := ""
			if p.Chosen {
				mark = " *"
			}
			fmt.Fprintf(t, "%s%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s", size(p.Budget), mark, p.Pool.Slots, percentText(p.Pool.Share),
				percentText(p.LRU.HitRate), percentText(p.Freq.HitRate), percentText(p.Global.HitRate), percentText(p.Best.HitRate), size(uint64(p.Read)))
			if known {
				fmt.Fprintf(t, "\t%s\t%s\t%s\t%s", speedText(p.Bound), speedText(p.Likely), speedText(p.Serial), p.By)
			}
			fmt.Fprintln(t)
		}
	})
	if known {
		ahead := fmt.Sprintf("guesses up to %s ahead", plural(t.Guesses, "layer"))
		if t.Guesses == 0 {
			ahead = "nothing read ahead, as the trace has no guesses"
		}
		fmt.Fprintf(w, "\nlimits: %s; simulated with %s\n", r.limitsText(), ahead)
	} else {
		fmt.Fprint(w, "\nfor tokens per second give --disk-gbs, --upload-gbs, --token-ms, or --bench\n")
	}
}

func speedText(rate float64) string {
	if rate == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", rate)
}

func (r *planReport) limitsText() string {
	text := func(name string, bytes float64) string {
		if bytes == 0 {
			return name + " unknown"
		}
		return fmt.Sprintf("%s %.3g GB/s", name, bytes/1e9)
	}
	token := "a token unknown"
	if r.Limits.Token > 0 {
		token = fmt.Sprintf("a token %s", r.Limits.Token.Round(time.Microsecond))
	}
	return text("disk", r.Limits.Disk) + ", " + text("upload", r.Limits.Upload) + ", " + token
}
