package simulate

import (
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/routing"
	"github.com/sluicehost/sluice/core/stream"
)

// TestLarge: what traces may announce at most takes time as their bytes do. With work for each pair of layers, of banks or of
// picks these would take minutes.
func TestLarge(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct{ layers, experts, topK, guesses, steps int }{
		"layers": {4096, 2, 1, 1, 60},
		"picks":  {1, 1 << 15, 1 << 15, 0, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &routing.Header{Model: "m", Architecture: "a", Experts: x.experts, TopK: x.topK}
			var banks []stream.Bank
			guesses := 0
			for l := range x.layers {
				n := min(x.guesses, x.layers-1-l)
				h.Layers = append(h.Layers, routing.Layer{Layer: l, RecordBytes: 10, Group: l, Guesses: n})
				banks = append(banks, stream.Bank{Layers: []int{l}, Experts: x.experts, RecordBytes: 10, Slots: x.topK})
				guesses += n * x.topK
			}
			tr := &routing.Trace{Header: h}
			picks := make([]uint16, x.layers*x.topK)
			for i := range picks {
				picks[i] = uint16(i % x.topK)
			}
			for i := range x.steps {
				tr.Steps = append(tr.Steps, routing.Step{Decode: true, Pos: i, Tokens: 1, Picks: picks, Guesses: make([]uint16, guesses)})
			}
			d := demand(t, tr)
			want := Outcome{Asked: int64(d.Tokens * len(picks)), Hits: int64((x.steps - 1) * len(picks)), HitRate: 1}
			if x.steps/warmShare == 0 { // the first token counts, and finds nothing
				want.HitRate = float64(want.Hits) / float64(want.Asked)
				want.BytesPerToken = float64(want.Asked-want.Hits) * 10 / float64(d.Tokens)
			} else {
				want.Hits = want.Asked
			}
			for name, have := range map[string]Outcome{"lru": d.LRU(banks), "replay": d.Replay(banks, stream.NewLRU), "global": d.Global(banks), "best": d.Best(banks)} {
				if have != want {
					t.Errorf("%s: have %+v, want %+v", name, have, want)
				}
			}
			run := d.Decode(banks, stream.NewLRU, Machine{Limits: Limits{Disk: 1e9, Token: time.Millisecond}, Readers: 1}, Fixed(1))
			if run.Tokens != d.Tokens || run.Hits+run.Late+run.Misses != want.Asked {
				t.Errorf("have %d tokens, %d asked, want %d and %d", run.Tokens, run.Hits+run.Late+run.Misses, d.Tokens, want.Asked)
			}
		})
	}
}
