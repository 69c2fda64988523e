package sample

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)

func newSampler(t *testing.T, p Params) *Sampler {
	t.Helper()
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fresh makes random numbers and prints their seed.
func fresh(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func TestGreedy(t *testing.T) {
	for name, c := range map[string]struct {
		logits []float32
		want   int32
		err    error
	}{
		"largest":          {[]float32{1, 3, 2}, 1, nil},
		"lowest of equals": {[]float32{1, 3, 3, 3}, 1, nil},
		"negative":         {[]float32{-9, -3, -7}, 1, nil},
		"nan first":        {[]float32{nan, -3, -7}, 1, nil},
		"nan between":      {[]float32{1, nan, 2}, 2, nil},
		"-inf first":       {[]float32{-inf, -3e38}, 1, nil},
		"+inf":             {[]float32{1, inf, inf}, 1, nil},
		"nothing usable":   {[]float32{nan, -inf}, 0, ErrNoLogit},
		"none":             {nil, 0, ErrNoLogit},
	} {
		t.Run(name, func(t *testing.T) {
			for form, pick := range map[string]func([]float32) (int32, error){
				"Greedy":    Greedy,
				"Sample":    newSampler(t, Params{TopK: 2}).Sample,
				"SampleTop": func(l []float32) (int32, error) { return newSampler(t, Params{}).SampleTop(Top(l, 2)) },
			} {
				if got, err := pick(c.logits); got != c.want || !errors.Is(err, c.err) {
					t.Errorf("%s: have %d, %v, want %d, %v", form, got, err, c.want, c.err)
				}
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for name, p := range map[string]Params{
		"negative temperature": {Temp: -0.1},
		"nan temperature":      {Temp: math.NaN()},
		"infinite temperature": {Temp: math.Inf(1)},
		"negative top-k":       {TopK: -1},
	} {
		if _, err := New(p); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// oracle is the distribution that p asks for, by sorting, in float64.
func oracle(logits []float32, p Params) []float64 {
	order := make([]int, len(logits))
	for i := range order {
		order[i] = i
	}
	value := func(i int) float64 {
		if v := float64(logits[i]); !math.IsNaN(v) {
			return v
		}
		return math.Inf(-1)
	}
	sort.SliceStable(order, func(a, b int) bool { return value(order[a]) > value(order[b]) })
	if p.TopK > 0 && p.TopK < len(order) {
		order = order[:p.TopK]
	}
	out := make([]float64, len(logits))
	var sum float64
	for _, i := range order {
		out[i] = math.Exp(value(i) / p.Temp)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// TestDistribution compares how often each id is drawn with the oracle, by a chi-squared test whose
// bound a right sampler passes but once in some 10^6 runs.
func TestDistribution(t *testing.T) {
	r := fresh(t)
	logits := make([]float32, 30)
	for i := range logits {
		logits[i] = float32(r.NormFloat64())
	}
	logits[3], logits[7], logits[9] = nan, -inf, logits[8]
	const draws = 40000
	for name, p := range map[string]Params{
		"all":               {Temp: 1},
		"hot":               {Temp: 3},
		"cold":              {Temp: 0.4},
		"top 5":             {Temp: 0.8, TopK: 5},
		"top more than all": {Temp: 1, TopK: 99},
	} {
		t.Run(name, func(t *testing.T) {
			p.Seed = r.Uint64()
			s, listed := newSampler(t, p), newSampler(t, p)
			ids, values := Top(logits, max(p.TopK, 1))
			counts := make([]int, len(logits))
			for range draws {
				id, err := s.Sample(logits)
				if err != nil {
					t.Fatal(err)
				}
				counts[id]++
				if p.TopK == 0 || p.TopK >= len(logits) {
					continue // then the order of drawing differs
				}
				if got, err := listed.SampleTop(ids, values); err != nil || got != id {
					t.Fatalf("SampleTop: have %d, %v, want %d as Sample", got, err, id)
				}
			}
			chi, free := 0.0, -1.0
			for i, q := range oracle(logits, p) {
				if q == 0 {
					if counts[i] > 0 {
						t.Errorf("id %d: drawn %d times, want never", i, counts[i])
					}
					continue
				}
				if math.Abs(float64(counts[i])-draws*q) > 6*math.Sqrt(draws*q*(1-q))+1 {
					t.Errorf("id %d: drawn %d times, want about %.0f", i, counts[i], draws*q)
				}
				if draws*q >= 5 {
					chi += math.Pow(float64(counts[i])-draws*q, 2) / (draws * q)
					free++
				}
			}
			if bound := free + 5*math.Sqrt(2*free) + 15; chi > bound {
				t.Errorf("chi squared: have %.1f over %v degrees of freedom, want under %.1f", chi, free, bound)
			}
		})
	}
}

func TestDeterministic(t *testing.T) {
	r := fresh(t)
	logits := make([]float32, 100)
	for i := range logits {
		logits[i] = float32(r.NormFloat64())
	}
	take := func(seed uint64) (out []int32) {
		s := newSampler(t, Params{Temp: 1, TopK: 40, Seed: seed})
		for range 50 {
			id, err := s.Sample(logits)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, id)
		}
		return out
	}
	a := take(1)
	if !slices.Equal(a, take(1)) {
		t.Error("equal seeds: have different tokens")
	}
	if slices.Equal(a, take(2)) {
		t.Error("different seeds: have equal tokens")
	}
}

func TestExtremes(t *testing.T) {
	for name, c := range map[string]struct {
		logits []float32
		p      Params
		want   int32
	}{
		"tiny temperature": {[]float32{1, 1.001, 0}, Params{Temp: 1e-300}, 1},
		"huge logits":      {[]float32{-3e38, 3e38, 0}, Params{Temp: 1}, 1},
		"+inf":             {[]float32{1, inf, inf}, Params{Temp: 1, TopK: 2}, 1},
		"only one usable":  {[]float32{nan, -inf, -5, nan}, Params{Temp: 100}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSampler(t, c.p)
			for range 20 {
				if got, err := s.Sample(c.logits); got != c.want || err != nil {
					t.Fatalf("have %d, %v, want %d", got, err, c.want)
				}
			}
		})
	}
	if _, err := newSampler(t, Params{Temp: 1, TopK: 1}).Sample([]float32{nan, nan}); !errors.Is(err, ErrNoLogit) {
		t.Errorf("all NaN: have %v, want ErrNoLogit", err)
	}
}

func TestTop(t *testing.T) {
	r := fresh(t)
	for range 200 {
		logits := make([]float32, 1+r.IntN(50))
		for i := range logits {
			logits[i] = float32(r.IntN(8)) // many equals
			if r.IntN(10) == 0 {
				logits[i] = [...]float32{nan, -inf, inf}[r.IntN(3)]
			}
		}
		clean := slices.Clone(logits)
		order := make([]int32, len(logits))
		for i, l := range clean {
			order[i] = int32(i)
			if l != l {
				clean[i] = -inf
			}
		}
		sort.SliceStable(order, func(a, b int) bool { return clean[order[a]] > clean[order[b]] })
		k := r.IntN(len(logits) + 3)
		ids, values := Top(logits, k)
		if !slices.Equal(ids, order[:min(k, len(order))]) {
			t.Fatalf("Top(%v, %d): have ids %v, want %v", logits, k, ids, order[:min(k, len(order))])
		}
		for i, id := range ids {
			if values[i] != clean[id] {
				t.Fatalf("Top(%v, %d): have value %v of id %d, want %v", logits, k, values[i], id, clean[id])
			}
		}
	}
}

func TestLogSumExp(t *testing.T) {
	for name, c := range map[string]struct {
		logits []float32
		want   float64
	}{
		"none":      {nil, math.Inf(-1)},
		"one":       {[]float32{-2.5}, -2.5},
		"equals":    {[]float32{1, 1, 1, 1}, 1 + math.Log(4)},
		"large":     {[]float32{1000, 1000}, 1000 + math.Ln2},
		"small":     {[]float32{-1000, -1000}, -1000 + math.Ln2},
		"with -inf": {[]float32{-inf, 0}, 0},
		"all -inf":  {[]float32{-inf, -inf}, math.Inf(-1)},
		"+inf":      {[]float32{0, inf}, math.Inf(1)},
	} {
		if got := LogSumExp(c.logits); math.Abs(got-c.want) > 1e-12 && got != c.want {
			t.Errorf("%s: have %v, want %v", name, got, c.want)
		}
	}
	for _, l := range [][]float32{{nan}, {1, nan, 2}, {nan, 1}, {inf, nan}} {
		if got := LogSumExp(l); !math.IsNaN(got) {
			t.Errorf("%v: have %v, want NaN", l, got)
		}
	}
}

func TestNeeds(t *testing.T) {
	for _, c := range []struct {
		p    Params
		want int
	}{{Params{}, 1}, {Params{TopK: 40}, 1}, {Params{Temp: 1, TopK: 40}, 40}, {Params{Temp: 1}, 0}} {
		if got := newSampler(t, c.p).Needs(); got != c.want {
			t.Errorf("%+v: have %d, want %d", c.p, got, c.want)
		}
	}
}

func BenchmarkSample(b *testing.B) {
	logits := make([]float32, 128<<10)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range logits {
		logits[i] = float32(r.NormFloat64())
	}
	for name, p := range map[string]Params{"greedy": {}, "top40": {Temp: 0.8, TopK: 40}, "all": {Temp: 0.8}} {
		b.Run(name, func(b *testing.B) {
			s, err := New(p)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Sample(logits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
