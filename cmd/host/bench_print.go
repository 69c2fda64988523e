package main

import (
	"fmt"
	"io"
)

// print writes tables.
func (r *benchReport) print(out io.Writer) error {
	w := &errWriter{w: out}
	speed := func(n int, rate float64) string {
		if n == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f tok/s", rate)
	}
	table(w, func(t io.Writer) {
		fmt.Fprintln(t, "RUN\tPREFILL\tDECODE\tHIT RATE\tREAD")
		for i, x := range r.Runs {
			name := fmt.Sprint(i)
			if i == 0 {
				name = "cold"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", name, speed(r.Prompt, perSecond(r.Prompt, x.Prefill)), speed(r.Decode, perSecond(r.Decode, x.Decode)),
				percentText(x.HitRate), size(uint64(x.Read)))
		}
		if r.Warm != nil {
			fmt.Fprintf(t, "median\t%s\t%s\n", speed(r.Prompt, r.Warm.Prefill), speed(r.Decode, r.Warm.Decode))
		}
	})
	fmt.Fprintf(w, "\n%s of prompt in chunks of %d, %d made after it; loaded in %.1f s; %s; GPU %s (budget %s)\n",
		plural(r.Prompt, "token"), r.Chunk, r.Decode, r.Stats.Load, r.Stats.Device, size(r.Stats.GPU.Total.Actual), r.Stats.GPU.Budget)
	if last := r.Runs[len(r.Runs)-1]; r.Decode > 0 {
		n := uint64(r.Decode)
		fmt.Fprintf(w, "%s and %s for each token made in the last run, all of the process\n", plural(last.Allocs/n, "allocation"), size(last.Bytes/n))
	}
	r.printKernels(w)
	return w.err
}

func (r *benchReport) printKernels(w io.Writer) {
	if len(r.Kernels) == 0 {
		return
	}
	var sum float64
	for _, k := range r.Kernels {
		sum += k.Seconds
	}
	fmt.Fprintln(w)
	table(w, func(t io.Writer) {
		fmt.Fprintln(t, "GPU TIME\tSHARE\tDISPATCHES\tEACH\tKERNEL")
		for _, k := range r.Kernels {
			fmt.Fprintf(t, "%.1f ms\t%s\t%d\t%.1f µs\t%s\n", 1e3*k.Seconds, percentText(k.Seconds/sum), k.Dispatches, 1e6*k.Seconds/float64(k.Dispatches), k.Kernel)
		}
	})
}
