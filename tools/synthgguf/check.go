package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/sluicehost/sluice/tools/synthgguf/synth"
)

// check prints the hit rates of caches of an eighth of the experts and other sizes, per layer.
func check(ctx context.Context, out io.Writer, m *synth.Model, seed uint64, tokens, layers int) error {
	all := m.MoELayers()
	if layers == 0 {
		layers = min(3, len(all))
	}
	if layers < 1 || layers > len(all) {
		return fmt.Errorf("have %d layers to trace, want 1 to %d", layers, len(all))
	}
	var some []int
	for i := range layers {
		some = append(some, all[(2*i+1)*len(all)/(2*layers)])
	}
	traces, err := m.Trace(ctx, seed, tokens, some)
	if err != nil {
		return err
	}
	s := m.Shape
	fmt.Fprintf(out, "%s %s: %d tokens simulated, %d of %d experts a token. Share of picks found:\n", s.Arch, s.Name, tokens, s.TopK, s.Experts)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "layer\t")
	slots := []int{s.Experts / 16, s.Experts / 8, 3 * s.Experts / 16, s.Experts / 4, 3 * s.Experts / 8, s.Experts / 2, 3 * s.Experts / 4}
	for _, n := range slots {
		fmt.Fprintf(w, "LRU %d\t", n)
	}
	fmt.Fprintf(w, "static %d\tin the token before\tguessed a layer ahead\t\n", s.Experts/8)
	for _, t := range traces {
		fmt.Fprintf(w, "%d\t", t.Layer)
		for _, n := range slots {
			fmt.Fprintf(w, "%.1f %%\t", 100*t.LRU(n))
		}
		fmt.Fprintf(w, "%.1f %%\t%.1f %%\t%.1f %%\t\n", 100*t.Static(s.Experts/8), 100*t.Repeated(), 100*t.Guessed())
	}
	return w.Flush()
}
