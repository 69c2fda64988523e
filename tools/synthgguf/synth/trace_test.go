package synth

import (
	"context"
	"testing"
)

func TestLRU(t *testing.T) {
	trace := &Trace{Experts: 4, Picks: [][]int32{{0, 1}, {0, 1}, {0, 2}, {0, 1}, {2, 3}, {0, 1}, {0, 1}, {0, 1}}}
	// The first token does not count. Of the 14 other picks these are found.
	for slots, want := range map[int]int{
		2: 2 + 1 + 1 + 0 + 0 + 2 + 2,
		4: 2 + 1 + 2 + 1 + 2 + 2 + 2,
	} {
		if have := trace.LRU(slots) * 14; int(have+0.5) != want {
			t.Errorf("%d slots: have %.2f hits, want %d", slots, have, want)
		}
	}
	if have := trace.Static(2); have != 6.0/8 { // 0 and 1 are the first half's most picked
		t.Errorf("static: have %g, want 6 of 8", have)
	}
	if have := trace.Repeated(); have != float64(2+1+1+0+0+2+2)/14 {
		t.Errorf("repeated: have %g", have)
	}
}

// The default's hit rates are those of published traces of 512 experts: 67 % for 64 slots, 81 % for 128, and no more for a
// hot list than its size. Without locality a cache finds its own share.
func TestHitRates(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: simulates routers of 512 experts, half a minute")
	}
	seed := freshSeed(t)
	for name, test := range map[string]struct {
		o             Options
		tokens, layer int
		lru64, lru128 [2]float64 // of 512, least and most
		static, guess [2]float64
	}{
		"default":     {o: Options{Locality: DefaultLocality, Dwell: DefaultDwell}, tokens: 1200, layer: 2, lru64: [2]float64{.60, .74}, lru128: [2]float64{.75, .88}, static: [2]float64{.05, .30}, guess: [2]float64{.65, .90}},
		"no locality": {o: Options{Dwell: DefaultDwell}, tokens: 300, layer: 2, lru64: [2]float64{.09, .18}, lru128: [2]float64{.19, .33}, static: [2]float64{.08, .20}, guess: [2]float64{.5, .9}},
		"skew":        {o: Options{Skew: 1, Dwell: DefaultDwell}, tokens: 300, layer: 2, lru64: [2]float64{.35, .85}, lru128: [2]float64{.55, .97}, static: [2]float64{.45, .95}, guess: [2]float64{.5, .95}},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.o
			o.Arch, o.Shape, o.Type, o.Layers, o.Seed = "qwen35moe", "397b-a17b", "q4_0", 4, seed
			m, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			traces, err := m.Trace(context.Background(), seed, test.tokens, []int{test.layer})
			if err != nil {
				t.Fatal(err)
			}
			tr := &traces[0]
			for _, c := range []struct {
				what  string
				have  float64
				bound [2]float64
			}{{"LRU 64", tr.LRU(64), test.lru64}, {"LRU 128", tr.LRU(128), test.lru128}, {"static 64", tr.Static(64), test.static}, {"guessed", tr.Guessed(), test.guess}} {
				t.Logf("%s: %.3f", c.what, c.have)
				if c.have < c.bound[0] || c.have > c.bound[1] {
					t.Errorf("%s: have %.3f, want %.2f to %.2f", c.what, c.have, c.bound[0], c.bound[1])
				}
			}
		})
	}
}

func TestDropGroups(t *testing.T) {
	scores := []float64{9, 0, 5, 5, 6, 1, 4, 4} // sums of two: 9, 10, 7, 8
	dropGroups(scores, 4, 2)
	if have := best(scores, 4); have[0] != 0 || have[1] != 2 || have[2] != 3 || have[3] != 1 {
		t.Errorf("have %v, want the experts of groups 0 and 1", have)
	}
}

func TestTraceErrors(t *testing.T) {
	m, err := New(Options{Arch: "lfm2moe", Shape: "tiny", Type: "q4_0"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Trace(context.Background(), 1, 0, []int{1}); err == nil {
		t.Error("no tokens: have no error")
	}
	if _, err := m.Trace(context.Background(), 1, 1, []int{0}); err == nil {
		t.Error("a dense layer: have no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.Trace(ctx, 1, 100, []int{1}); err == nil {
		t.Error("cancelled: have no error")
	}
}
