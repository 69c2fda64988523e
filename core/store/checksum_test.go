package store

import (
	"math/rand/v2"
	"testing"
)

// TestCombine: the checksum of two stretches is that of both together, however long they are.
func TestCombine(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	data := make([]byte, 1<<16)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	for _, n := range []int{0, 1, 2, 7, 4096, 1<<16 - 1, 1 << 16, r.IntN(1 << 16), r.IntN(1 << 16)} {
		for _, cut := range []int{0, n / 2, r.IntN(n + 1), n} {
			if have, want := combine(checksum(data[:cut]), checksum(data[cut:n]), int64(n-cut)), checksum(data[:n]); have != want {
				t.Errorf("%d and %d bytes: have %08x, want %08x", cut, n-cut, have, want)
			}
		}
	}
}
