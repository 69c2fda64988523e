package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/lookahead"
	"github.com/sluicehost/sluice/core/routing"
	"github.com/sluicehost/sluice/core/stream"
)

// still is a machine without noise, that reads n records of 10 bytes a second.
func still(n float64) Machine {
	return Machine{Limits: Limits{Disk: 10 * n, Token: time.Second}, Readers: 2, Parts: 2, Stop: 10 * time.Millisecond}
}

// TestDecodeAgainstReplay: what finds its experts in time and what does not is what a replay counts, where nothing is read ahead.
func TestDecodeAgainstReplay(t *testing.T) {
	d := demand(t, random(t, 3, 200))
	for name, policy := range map[string]func(int) stream.Policy{
		"lru": stream.NewLRU, "freq": func(keys int) stream.Policy { return stream.NewDecayed(keys, 8) },
	} {
		for slots := 6; slots <= 24; slots += 6 {
			want, have := d.Replay(banks(slots), policy), d.Decode(banks(slots), policy, still(5), Fixed(3))
			if have.Hits != want.Hits || have.Misses != want.Asked-want.Hits || have.Late != 0 || have.Tokens != d.Tokens || have.Guessed != 0 {
				t.Errorf("%s, %d slots: have %+v, want %+v", name, slots, have, want)
			}
			// A token computes for a second, and of each layer that stops the records come one after the other.
			if want := float64(have.Tokens) + float64(have.Misses)/5; have.Time.Seconds() < want || have.Time.Seconds() > want+float64(3*have.Tokens)*0.011 {
				t.Errorf("%s, %d slots: have %v, want %.3f s and what waits cost", name, slots, have.Time, want)
			}
		}
	}
}

// TestDecodeByHand: one layer's miss behind another, with a guess in between that comes in time, late or not at all.
func TestDecodeByHand(t *testing.T) {
	tr := &routing.Trace{Header: &routing.Header{Experts: 4, TopK: 1, Layers: []routing.Layer{{Layer: 0, RecordBytes: 10, Guesses: 1}, {Layer: 1, RecordBytes: 10}}}}
	for i := range uint16(2) {
		tr.Steps = append(tr.Steps, routing.Step{Decode: true, Pos: int(i), Tokens: 1, Picks: []uint16{2 * i, 2*i + 1}, Guesses: []uint16{2*i + 1}})
	}
	d := demand(t, tr)
	b := []stream.Bank{{Layers: []int{0, 1}, Experts: 4, RecordBytes: 10, Slots: 8}}
	for _, c := range []struct {
		records, seconds float64 // a second; of both tokens
		depth            int
		want             Run
	}{
		// Each token: half a layer, a stop, its record, half, half, a stop, its record, half.
		{10, 2 * (1 + 2*0.01 + 2*0.1), 0, Run{Misses: 4, Stops: 4}},
		// The guess is read while the first layer's experts and the second's routing run. They went to the GPU before it was there, and so they stop.
		{10, 2 * (1 + 2*0.01 + 0.1), 1, Run{Misses: 2, Hits: 2, Guessed: 2, Useful: 2, Stops: 4}},
		// A record takes 2 s, the guess is read after the one that is asked for.
		{0.5, 2 * (0.25 + 0.01 + 2 + 2 + 0.25), 1, Run{Misses: 2, Late: 2, Guessed: 2, Useful: 2, Stops: 4}},
	} {
		m := still(c.records)
		m.Readers, m.Parts = 1, 1
		have := d.Decode(b, stream.NewLRU, m, Fixed(c.depth))
		if have.Misses != c.want.Misses || have.Hits != c.want.Hits || have.Late != c.want.Late || have.Guessed != c.want.Guessed ||
			have.Useful != c.want.Useful || have.Stops != c.want.Stops || have.Wasted != 0 || have.Bytes != 40 {
			t.Errorf("%+v: have %+v", c, have)
		}
		if math.Abs(have.Time.Seconds()-c.seconds) > 1e-6 {
			t.Errorf("%+v: have %v, want %.3f s", c, have.Time, c.seconds)
		}
	}
}

// TestDecodeCounts: whatever the guesses, each pick counts once, and no guess is useful and wasted.
func TestDecodeCounts(t *testing.T) {
	tr := random(t, 3, 300)
	Foretell(tr, []float64{0.8, 0.4}, 1)
	d := demand(t, tr)
	for _, m := range []Machine{still(2), still(20), {Limits: Limits{Disk: 50, Upload: 200, Token: time.Second}, Readers: 4, Parts: 1, Noise: 0.2, Seed: 3}} {
		for depth := range 3 {
			r := d.Decode(banks(9), stream.NewLRU, m, Fixed(depth))
			if r.Hits+r.Late+r.Misses != int64(d.Tokens*3*topK) || r.Useful > r.Guessed+6 || (r.Guessed > 0) != (depth > 0) || depth > 0 && r.Wasted+r.Useful == 0 {
				t.Errorf("%+v, depth %d: have %+v", m, depth, r)
			}
			if again := d.Decode(banks(9), stream.NewLRU, m, Fixed(depth)); again.Time != r.Time {
				t.Errorf("have %v, then %v, want the same of the same seed", r.Time, again.Time)
			}
		}
	}
}

// TestDecodeNoFasterThanTheMachine: noise makes tokens unlike, and a run that waits for nothing as fast as the limit.
func TestDecodeNoFasterThanTheMachine(t *testing.T) {
	d := demand(t, random(t, 3, 100))
	for seed := range uint64(20) {
		m := Typical(Limits{Token: 10 * time.Millisecond}, 4)
		m.Seed, m.Stop = seed, 0
		if r := d.Decode(banks(24), stream.NewLRU, m, Fixed(0)); math.Abs(r.Rate-100) > 1e-6 {
			t.Errorf("seed %d: have %.3f tok/s, want 100", seed, r.Rate)
		}
		least, most := 2.0, 0.0
		for _, x := range d.noise(m) {
			least, most = min(least, x), max(most, x)
		}
		if most-least < 0.2 {
			t.Errorf("seed %d: have tokens from %.2f to %.2f times the limit's, want them unlike", seed, least, most)
		}
	}
}

// TestForetell: guesses have the recall that was asked for.
func TestForetell(t *testing.T) {
	tr := topical(60, 64, 4, 6, 1)
	want := []float64{0.9, 0.5, 0.1}
	Foretell(tr, want, 5)
	have := Recall(tr)
	for i := range want {
		if len(have) != len(want) || math.Abs(have[i]-want[i]) > 0.1 {
			t.Fatalf("have recall %.3f, want %.3f", have, want)
		}
	}
	if g := tr.Header.Layers; g[0].Guesses != 3 || g[5].Guesses != 0 || g[4].Guesses != 1 {
		t.Errorf("have %+v", g)
	}
}

// topical is a trace whose tokens pick again much of what the last ones picked.
func topical(tokens, experts, topK, layers int, seed uint64) *routing.Trace {
	rng := rand.New(rand.NewPCG(seed, 4))
	tr := &routing.Trace{Header: &routing.Header{Experts: experts, TopK: topK}}
	for l := range layers {
		tr.Header.Layers = append(tr.Header.Layers, routing.Layer{Layer: l, RecordBytes: 1 << 20})
	}
	var last []uint16
	for pos := range tokens {
		s := routing.Step{Decode: true, Pos: pos, Tokens: 1}
		for l := range layers {
			var row []uint16
			for len(row) < topK {
				e := uint16(rng.IntN(experts))
				if last != nil && rng.IntN(4) > 0 {
					e = last[(l*topK+rng.IntN(topK))%len(last)]
				}
				if !slices.Contains(row, e) {
					row = append(row, e)
				}
			}
			s.Picks = append(s.Picks, row...)
		}
		if pos%3 == 0 {
			last = s.Picks
		}
		tr.Steps = append(tr.Steps, s)
	}
	return tr
}

// profiles are recalls by distance.
var profiles = []struct {
	name   string
	recall []float64
}{
	{"good", []float64{0.90, 0.85, 0.80, 0.76, 0.72, 0.68, 0.65, 0.62}},
	{"measured", []float64{0.80, 0.72, 0.66, 0.54, 0.49, 0.44, 0.39, 0.34}}, // on the shipped models
	{"poor", []float64{0.50, 0.35, 0.25, 0.20, 0.20, 0.15, 0.15, 0.10}},
	{"useless", []float64{0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05}},
}

// contest is what auto and each fixed depth make of a trace.
type contest struct {
	rates []float64 // tokens per second, by depth
	auto  Run
}

func (c contest) best() (depth int) {
	for i, r := range c.rates {
		if r > c.rates[depth] {
			depth = i
		}
	}
	return depth
}

// share is auto's rate as a share of the best depth's.
func (c contest) share() float64 { return c.auto.Rate / c.rates[c.best()] }

func (c contest) String() string {
	out := ""
	for _, r := range c.rates {
		out += fmt.Sprintf("%.1f ", r)
	}
	return fmt.Sprintf("%sbest %d, auto %.1f, %.3f of it", out, c.best(), c.auto.Rate, c.share())
}

// compete lets all depths make a trace with guesses, in slots for a share of the experts, on a machine whose disk takes ratio
// times as long as the GPU for what a token lacks without reading ahead. All tokens count, those that fill the slots too.
func compete(t *testing.T, tr *routing.Trace, slots, ratio float64, m Machine) (c contest) {
	d := demand(t, tr)
	for i := range d.asks {
		d.asks[i].counted = true
	}
	var whole int64
	for _, g := range d.Groups() {
		whole += int64(len(g.Layers)*g.Experts) * g.RecordBytes
	}
	b, err := stream.Divide(d.Groups(), 2<<30-4, int64(slots*float64(whole)))
	if err != nil {
		t.Fatal(err)
	}
	policy := func(keys int) stream.Policy { return stream.NewDecayed(keys, 8) }
	m.Token = 10 * time.Millisecond
	m.Disk = d.Replay(b, policy).BytesPerToken / (ratio * m.Token.Seconds())
	for depth := range d.Guesses() + 1 {
		c.rates = append(c.rates, d.Decode(b, policy, m, Fixed(depth)).Rate)
	}
	c.auto = d.Decode(b, policy, m, lookahead.New(d.Guesses(), m.Readers))
	return c
}

// TestAutomaticDepth: automatic is within 5 % of the best fixed depth, whatever guesses are worth and whatever the disk.
// make lookahead does the same with the published shapes.
func TestAutomaticDepth(t *testing.T) {
	whole := Typical(Limits{}, 8)
	whole.Parts = 1
	for _, p := range profiles {
		tr := topical(400, 48, 6, 12, 2)
		Foretell(tr, p.recall, 1)
		for _, x := range []struct {
			name         string
			slots, ratio float64
			m            Machine
		}{
			{"records in parts", 0.3, 1, Typical(Limits{}, 4)},
			{"slow disk", 0.3, 10, Typical(Limits{}, 4)},
			{"a reader a record", 0.6, 1, whole},
		} {
			c := compete(t, tr, x.slots, x.ratio, x.m)
			t.Logf("%s guesses, %s: %v", p.name, x.name, c)
			if c.share() < 0.95 {
				t.Errorf("%s guesses, %s: want at least 0.95", p.name, x.name)
			}
		}
	}
}

// TestLookaheadTable prints the table of docs/streaming.md, of the traces in the folder SLUICE_TRACES (make lookahead).
func TestLookaheadTable(t *testing.T) {
	folder := os.Getenv("SLUICE_TRACES")
	if folder == "" {
		t.Skip("SLUICE_TRACES is not set: make lookahead sets it, and takes minutes")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.trace"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: have no *.trace, %v", folder, err)
	}
	whole := Typical(Limits{}, 8)
	whole.Parts = 1
	shared := Typical(Limits{}, 8)
	shared.Full = 2
	for name, m := range map[string]Machine{"in parts": Typical(Limits{}, 4), "a reader a record": whole, "a disk that two of eight readers fill": shared} {
		t.Run(name, func(t *testing.T) {
			var shares []float64
			for _, file := range files {
				shares = append(shares, table(t, file, m)...)
			}
			slices.Sort(shares)
			below, sum := 0, 0.0
			for _, x := range shares {
				if sum += x; x < 0.95 {
					below++
				}
			}
			fmt.Printf("%s: %d contests, auto's share of the best in the mean %.3f, least %.3f, below 0.95 %d times\n", name, len(shares), sum/float64(len(shares)), shares[0], below)
		})
	}
}

// table prints a trace's contests and returns auto's shares.
func table(t *testing.T, file string, m Machine) (shares []float64) {
	for _, p := range profiles {
		for _, slots := range []float64{0.1, 0.25, 0.5, 0.75} {
			for _, ratio := range []float64{0.3, 1, 3, 10} {
				f, err := os.Open(file)
				if err != nil {
					t.Fatal(err)
				}
				tr, err := routing.Read(f)
				if err != nil {
					t.Fatal(err)
				}
				f.Close()
				Foretell(tr, p.recall, 1)
				c := compete(t, tr, slots, ratio, m)
				fmt.Printf("%s, %s, slots %.2f, ratio %.1f: %v\n", filepath.Base(file), p.name, slots, ratio, c)
				shares = append(shares, c.share())
			}
		}
	}
	return shares
}
