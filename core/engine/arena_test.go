package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// weightsOf makes a weight of each list of band sizes.
func weightsOf(sizes ...[]uint64) (all []*program.Placed) {
	for _, bands := range sizes {
		w := &program.Placed{}
		for _, n := range bands {
			w.Bands = append(w.Bands, &program.Band{Bytes: n})
		}
		all = append(all, w)
	}
	return all
}

func TestPackArenas(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		weights []*program.Placed
		limit   uint64
		want    []uint64 // sizes
		last    span     // of the last band
	}{
		"none":             {nil, mib, nil, span{}},
		"one after other":  {weightsOf([]uint64{16, 272}, []uint64{32}), mib, []uint64{800}, span{0, 768, 32}},
		"a band too large": {weightsOf([]uint64{2 * mib}), mib, []uint64{2 * mib}, span{0, 0, 2 * mib}},
		"limit":            {weightsOf([]uint64{mib - 256}, []uint64{256}, []uint64{16}), mib, []uint64{mib, 16}, span{1, 0, 16}},
		"full":             {weightsOf([]uint64{200 * mib, 100 * mib, 40 * mib}), 4096 * mib, []uint64{300 * mib, 40 * mib}, span{1, 0, 40 * mib}},
		"small last one":   {weightsOf([]uint64{300 * mib}, []uint64{mib, 2 * mib}), 4096 * mib, []uint64{303 * mib}, span{0, 301 * mib, 2 * mib}},
		"no room to merge": {weightsOf([]uint64{300 * mib, mib}), 300 * mib, []uint64{300 * mib, mib}, span{1, 0, mib}},
	} {
		t.Run(name, func(t *testing.T) {
			a := packArenas(c.weights, c.limit)
			if len(a.sizes) != len(c.want) {
				t.Fatalf("have arenas %v, want %v", a.sizes, c.want)
			}
			for i, n := range c.want {
				if a.sizes[i] != n {
					t.Errorf("have arenas %v, want %v", a.sizes, c.want)
				}
			}
			if n := len(a.at); n > 0 {
				if bands := a.at[n-1]; bands[len(bands)-1] != c.last {
					t.Errorf("have the last band at %+v, want %+v", bands[len(bands)-1], c.last)
				}
			}
		})
	}
}

// Random bands lie apart, aligned and within limits, and rounding costs nothing where there is enough of them.
func TestPackArenasRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		const limit = 4<<30 - 128<<20
		var sizes [][]uint64
		var sum uint64
		for range 1 + r.IntN(60) {
			var bands []uint64
			for range r.IntN(4) {
				n := 16 * (1 + r.Uint64N(1<<(10+r.IntN(17))))
				bands, sum = append(bands, n), sum+n
			}
			sizes = append(sizes, bands)
		}
		a := packArenas(weightsOf(sizes...), limit)
		ends, arena := uint64(0), 0
		for i, spans := range a.at {
			for j, s := range spans {
				if s.arena != arena {
					arena, ends = arena+1, 0
				}
				if s.arena != arena || s.size != sizes[i][j] || s.offset%bandAlign != 0 || s.offset < ends || s.offset-ends >= bandAlign || s.offset+s.size > a.sizes[arena] {
					t.Fatalf("have band %+v after %d in arenas %v", s, ends, a.sizes)
				}
				ends = s.offset + s.size
			}
		}
		for i, n := range a.sizes {
			if n > limit || sum >= gpu.OwnMemory && n < gpu.OwnMemory {
				t.Fatalf("arena %d of %v for %d bytes", i, a.sizes, sum)
			}
		}
	}
}
