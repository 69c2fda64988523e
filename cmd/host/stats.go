package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/sample"
)

// stats is the line that ends a run.
func (g *generation) stats(p sample.Params) string {
	parts := []string{
		fmt.Sprintf("prompt %s, %s", plural(g.prompted, "token"), rate(g.prompted, g.prefill)),
		// The first token's logits are the prompt's last.
		fmt.Sprintf("generated %s, %s", plural(g.made, "token"), rate(max(g.made-1, 0), g.decode)),
		g.end,
		g.experts(),
		"read " + size(uint64(g.model.BytesRead())) + g.fromRAM(),
		"GPU " + kinds(g.device.Memory()) + " (budget " + g.budget + ")",
	}
	if p.Temp > 0 {
		parts = append(parts, fmt.Sprintf("seed %d", p.Seed))
	}
	return "host: " + strings.Join(parts, "; ")
}

func rate(n int, d time.Duration) string {
	if n == 0 || d <= 0 {
		return "no rate"
	}
	return fmt.Sprintf("%.1f tok/s", float64(n)/d.Seconds())
}

// experts says how often an expert was in its slot when a token asked for it.
func (l *loaded) experts() string {
	var hits, asked int64
	for _, c := range l.model.Counters(nil) {
		hits += c.Hits
		asked += c.Hits + c.Late + c.Misses
	}
	if asked == 0 {
		return "no experts asked for"
	}
	return fmt.Sprintf("hit rate %s of %s", shareText(hits, asked), plural(asked, "expert"))
}

// kinds is the memory in use, by kind, the largest first.
func kinds(m gpu.Memory) string {
	order := slices.SortedFunc(maps.Keys(m.Live), func(a, b gpu.Kind) int {
		return cmp.Or(cmp.Compare(m.Live[b], m.Live[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, k := range order {
		if m.Live[k] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", k, size(m.Live[k])))
		}
	}
	return size(m.Total) + ": " + strings.Join(parts, ", ")
}
