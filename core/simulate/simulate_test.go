package simulate

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/routing"
	"github.com/sluicehost/sluice/core/stream"
)

const experts, topK = 12, 3

// random is a trace with favourites that change, and a prompt before and in between.
func random(t testing.TB, layers, steps int) *routing.Trace {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	tr := &routing.Trace{Header: &routing.Header{Experts: experts, TopK: topK}}
	for l := range layers {
		tr.Header.Layers = append(tr.Header.Layers, routing.Layer{Layer: 2*l + 1, RecordBytes: 10})
	}
	for i := range steps {
		s := routing.Step{Decode: i%50 > 1, Pos: i, Tokens: 1}
		if !s.Decode {
			s.Tokens = 1 + rng.IntN(4)
		}
		for l := range layers {
			for range s.Tokens {
				row := rng.Perm(experts / 2)[:topK]
				for _, e := range row {
					s.Picks = append(s.Picks, uint16((e+l+i/40)%experts))
				}
			}
		}
		tr.Steps = append(tr.Steps, s)
	}
	return tr
}

func demand(t testing.TB, tr *routing.Trace) *Demand {
	t.Helper()
	d, err := New(tr)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// naive counts LRU hits with a list, and says what Belady's choice would find by scanning ahead.
func naive(d *Demand, b stream.Bank, best bool) (hits int64) {
	served := firsts(d, b)
	var resident []int // least recent first
	for at, a := range d.asks {
		first, ok := served[a.layer]
		if !ok {
			continue
		}
		for rest := a.experts; len(rest) > 0; {
			wave := rest[:min(b.Slots, len(rest))]
			rest = rest[len(wave):]
			var ids []int
			for _, e := range wave {
				ids = append(ids, first+int(e))
			}
			others := slices.DeleteFunc(slices.Clone(resident), func(id int) bool { return slices.Contains(ids, id) })
			if a.counted {
				hits += int64(len(resident) - len(others))
			}
			if best {
				slices.SortStableFunc(others, func(x, y int) int { return nextUse(d, served, y, at) - nextUse(d, served, x, at) })
			}
			others = others[max(0, len(others)+len(ids)-b.Slots):]
			resident = append(others, ids...)
		}
	}
	return hits
}

// firsts are the ids of expert 0, by layer of the header.
func firsts(d *Demand, b stream.Bank) map[int]int {
	out := map[int]int{}
	for _, l := range d.serve(b.Layers).layers {
		out[l.layer] = l.first
	}
	return out
}

func nextUse(d *Demand, first map[int]int, id, after int) int {
	for i := after + 1; i < len(d.asks); i++ {
		if first, ok := first[d.asks[i].layer]; ok && slices.Contains(d.asks[i].experts, uint16(id-first)) && id-first < experts && id >= first {
			return i
		}
	}
	return math.MaxInt32
}

func banks(slots int) []stream.Bank {
	return []stream.Bank{{Layers: []int{1, 5}, Experts: experts, RecordBytes: 10, Slots: slots}, {Layers: []int{3}, Experts: experts, RecordBytes: 10, Slots: slots / 2}}
}

// TestAgainstNaive: the one pass, the replay of LRU and a list agree at every number of slots, and so do both Beladys.
func TestAgainstNaive(t *testing.T) {
	d := demand(t, random(t, 3, 150))
	for slots := 6; slots <= 24; slots += 3 {
		b := banks(slots)
		var lru, best int64
		for _, x := range b {
			lru += naive(d, x, false)
			best += naive(d, x, true)
		}
		if have := d.LRU(b); have.Hits != lru {
			t.Errorf("%d slots: LRU: have %d hits, want %d", slots, have.Hits, lru)
		}
		have := d.Replay(b, stream.NewLRU)
		if have.Hits != lru || have.Asked != int64(d.Tokens*3*topK) {
			t.Errorf("%d slots: replay: have %+v, want %d hits", slots, have, lru)
		}
		if want := float64(have.Asked-lru) * 10 / float64(d.Tokens); math.Abs(have.BytesPerToken-want) > 1e-9 {
			t.Errorf("%d slots: have %v bytes a token, want %v", slots, have.BytesPerToken, want)
		}
		if have := d.Best(b); have.Hits != best || have.Hits < lru {
			t.Errorf("%d slots: best: have %d hits, want %d, LRU's %d or more", slots, have.Hits, best, lru)
		}
	}
}

// quick fills slots at once.
type quick struct{}

func (quick) Begin(context.Context, stream.Key, int, int) (stream.Transfer, int, error) {
	return quick{}, 1, nil
}
func (quick) Read(context.Context, int) error { return nil }
func (quick) End(error) error                 { return nil }

// TestAgainstPool: replays hit as often as the pool itself.
func TestAgainstPool(t *testing.T) {
	tr := random(t, 3, 300)
	for i := range tr.Steps {
		tr.Steps[i].Decode = true // so that the pool's counters count what the replay does
	}
	d := demand(t, tr)
	for name, policy := range map[string]func(int) stream.Policy{
		"lru": stream.NewLRU, "freq": func(keys int) stream.Policy { return stream.NewDecayed(keys, 20) },
	} {
		for _, slots := range []int{6, 9, 15, 24} {
			p, err := stream.New(stream.Config{Banks: banks(slots), Readers: 1, Loader: quick{}, Policy: policy})
			if err != nil {
				t.Fatal(err)
			}
			var want int64
			for _, a := range d.asks {
				if a.layer == 0 {
					p.Tick(a.tokens)
				}
				layer, served := d.Header.Layers[a.layer].Layer, slots
				if layer == 3 {
					served = slots / 2
				}
				for rest := a.experts; len(rest) > 0; {
					var wave []int
					for _, e := range rest[:min(len(rest), served)] {
						wave = append(wave, int(e))
					}
					rest = rest[len(wave):]
					before := hits(p)
					pins, err := p.Ensure(t.Context(), layer, wave)
					if err != nil {
						t.Fatal(err)
					}
					pins.Release()
					if a.counted {
						want += hits(p) - before
					}
				}
			}
			p.Close()
			if have := d.Replay(banks(slots), policy); have.Hits != want {
				t.Errorf("%s, %d slots: have %d hits, want the pool's %d", name, slots, have.Hits, want)
			}
		}
	}
}

func hits(p *stream.Pool) (n int64) {
	for _, c := range p.Counters(nil) {
		n += c.Hits
	}
	return n
}

// TestGlobal: with records of one size it is the LRU of one bank over all layers.
func TestGlobal(t *testing.T) {
	d := demand(t, random(t, 3, 300))
	for slots := 6; slots <= 24; slots++ {
		all := []stream.Bank{{Layers: []int{1, 3, 5}, Experts: experts, RecordBytes: 10, Slots: slots + slots/2}}
		if have, want := d.Global(banks(slots)), d.LRU(all); have != want {
			t.Errorf("%d slots: have %+v, want %+v", slots, have, want)
		}
	}
}

// TestStack compares sums of unlike costs with a list, past several compactions.
func TestStack(t *testing.T) {
	cost := []int64{1, 5, 2, 9, 3}
	s, rng := newStack(cost), rand.New(rand.NewPCG(3, 4))
	var list []int // the last used first
	for range 500 {
		key := rng.IntN(len(cost))
		want := int64(-1)
		if at := slices.Index(list, key); at >= 0 {
			want = 0
			for _, k := range list[:at+1] {
				want += cost[k]
			}
			list = slices.Delete(list, at, at+1)
		}
		if have := s.distance(key); have != want {
			t.Fatalf("key %d: have %d, want %d", key, have, want)
		}
		s.use(key)
		list = slices.Insert(list, 0, key)
	}
}

func TestFits(t *testing.T) {
	d := demand(t, random(t, 2, 20))
	groups := d.Groups()
	if err := d.Fits(groups); err != nil || len(groups) != 1 || !slices.Equal(groups[0].Layers, []int{1, 3}) {
		t.Errorf("have %+v, %v", groups, err)
	}
	for want, edit := range map[string]func(g *stream.Group){
		"want 13 and 3": func(g *stream.Group) { g.Experts++ }, "no layer 2": func(g *stream.Group) { g.Layers = []int{1, 2} }, "want 1": func(g *stream.Group) { g.Layers = []int{1} },
	} {
		g := groups[0]
		if edit(&g); d.Fits([]stream.Group{g}) == nil || !strings.Contains(d.Fits([]stream.Group{g}).Error(), want) {
			t.Errorf("have %v, want %q", d.Fits([]stream.Group{g}), want)
		}
	}
	tr := random(t, 1, 20)
	for i := range tr.Steps {
		tr.Steps[i].Decode = false
	}
	if _, err := New(tr); err == nil {
		t.Error("a prompt alone: have no error")
	}
}

func TestSpeed(t *testing.T) {
	l := Limits{Disk: 1e9, Upload: 4e9, Token: 10 * time.Millisecond}
	for _, c := range []struct{ bytes, bound, serial float64 }{{0, 100, 100}, {8e6, 100, 50}, {20e6, 50, 1 / 0.035}} {
		bound, serial := l.Speed(c.bytes)
		if math.Abs(bound-c.bound) > 1e-9 || math.Abs(serial-c.serial) > 1e-9 {
			t.Errorf("%v bytes: have %v and %v, want %v and %v", c.bytes, bound, serial, c.bound, c.serial)
		}
	}
	if l.By(0) != "gpu" || l.By(20e6) != "disk" || (Limits{}).By(5) != "" || (Limits{}).Known() {
		t.Error("the wrong limit decides")
	}
	if bound, serial := (Limits{}).Speed(5); bound != 0 || serial != 0 {
		t.Errorf("no limits: have %v, %v", bound, serial)
	}
}
