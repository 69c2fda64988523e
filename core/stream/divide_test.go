package stream

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"testing"
)

// layers returns n layer numbers from first.
func layers(first, n int) []int {
	l := make([]int, n)
	for i := range l {
		l[i] = first + i
	}
	return l
}

func TestDivide(t *testing.T) {
	a := Group{Layers: layers(0, 4), Experts: 8, Used: 2, RecordBytes: 100}
	wide := Group{Layers: layers(4, 2), Experts: 8, Used: 2, RecordBytes: 150}
	small := Group{Layers: layers(4, 2), Experts: 8, Used: 2, RecordBytes: 50}
	odd := Group{Layers: layers(0, 3), Experts: 8, Used: 2, RecordBytes: 100}
	for name, c := range map[string]struct {
		groups        []Group
		limit, budget int64
		want          string // banks as [layers]slots
	}{
		"none":            {nil, 1000, 0, ""},
		"least":           {[]Group{a, wide}, 9999, 500, "[0 1 2 3]2 [4 5]2"},
		"half":            {[]Group{a, wide}, 9999, 2800, "[0 1 2 3]16 [4 5]8"},
		"left-over":       {[]Group{a, wide}, 9999, 2999, "[0 1 2 3]17 [4 5]8"},
		"floor-raises":    {[]Group{a, wide}, 9999, 799, "[0 1 2 3]4 [4 5]2"},
		"all":             {[]Group{a, wide}, 9999, math.MaxInt64, "[0 1 2 3]32 [4 5]16"},
		"one-bank-is-ok":  {[]Group{a}, 1600, 1600, "[0 1 2 3]16"},
		"two-banks":       {[]Group{a}, 1600, 1700, "[0 1]9 [2 3]8"},
		"two-full":        {[]Group{a}, 1600, 9999, "[0 1]16 [2 3]16"},
		"uneven":          {[]Group{a}, 1100, 2900, "[0]8 [1]7 [2]7 [3]7"},
		"layer-too-big":   {[]Group{a}, 500, 9999, "[0]5 [1]5 [2]5 [3]5"},
		"unusable-share":  {[]Group{a, small}, 500, 2800, "[0]5 [1]5 [2]5 [3]5 [4]8 [5]8"},
		"capped-bank":     {[]Group{odd}, 1200, 2000, "[0]8 [1 2]12"},
		"k-fills-binding": {[]Group{a}, 200, 300, "[0 1 2 3]2"},
		"k-per-bank":      {[]Group{a}, 200, 400, "[0 1]2 [2 3]2"},
	} {
		t.Run(name, func(t *testing.T) {
			banks, err := Divide(c.groups, c.limit, c.budget)
			if err != nil {
				t.Fatal(err)
			}
			var have []string
			for _, b := range banks {
				have = append(have, fmt.Sprintf("%v%d", b.Layers, b.Slots))
			}
			if got := strings.Join(have, " "); got != c.want {
				t.Errorf("have %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestDivideRefuses(t *testing.T) {
	good := Group{Layers: layers(0, 4), Experts: 8, Used: 2, RecordBytes: 100}
	with := func(change func(*Group)) []Group {
		g := good
		change(&g)
		return []Group{good, g}
	}
	moved := func(g *Group) { g.Layers = layers(4, 1) }
	for name, c := range map[string]struct {
		groups        []Group
		limit, budget int64
		want          string
	}{
		"budget":   {[]Group{good}, 999, 199, "stream: expert slots: have 199 bytes, want at least 200: raise the GPU budget"},
		"negative": {[]Group{good}, 999, -5, "stream: expert slots: have -5 bytes, want at least 200: raise the GPU budget"},
		"binding": {[]Group{good}, 199, 9999,
			"stream: group 0: bytes of a bank: have at most 199, want 200, which 2 records take: this GPU's bindings are too small for the model"},
		"twice":     {with(func(*Group) {}), 999, 9999, "stream: group 1: layer 0: have it twice, want each layer in one place"},
		"used-none": {with(func(g *Group) { moved(g); g.Used = 0 }), 999, 9999, "stream: group 1: experts used: have 0, want 1 to 8"},
		"used-many": {with(func(g *Group) { moved(g); g.Used = 9 }), 999, 9999, "stream: group 1: experts used: have 9, want 1 to 8"},
		"record": {with(func(g *Group) { moved(g); g.RecordBytes = math.MaxInt64 }), 999, 9999,
			"stream: group 1: record bytes: have 9223372036854775807, want 1 to 1099511627776"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Divide(c.groups, c.limit, c.budget)
			wantError(t, err, c.want)
		})
	}
}

func FuzzDivide(f *testing.F) {
	f.Add(uint8(24), uint16(32), uint8(4), uint32(3_350_000), uint8(6), uint16(128), uint8(8), uint32(4_100_000), int64(128<<20), int64(4<<30))
	f.Add(uint8(3), uint16(10), uint8(2), uint32(1), uint8(0), uint16(0), uint8(0), uint32(0), int64(16), int64(30))
	f.Add(uint8(40), uint16(512), uint8(10), uint32(1<<20), uint8(1), uint16(1), uint8(1), uint32(7), int64(20<<20), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, l1 uint8, e1 uint16, k1 uint8, r1 uint32, l2 uint8, e2 uint16, k2 uint8, r2 uint32, limit, budget int64) {
		groups := []Group{{layers(0, int(l1)), int(e1), int(k1), int64(r1)}}
		if l2 > 0 {
			groups = append(groups, Group{layers(300, int(l2)), int(e2), int(k2), int64(r2)})
		}
		banks, err := Divide(groups, limit, budget)
		if short := (*BudgetError)(nil); errors.As(err, &short) {
			if short.Want <= budget || short.Have != budget {
				t.Fatalf("budget %d: %v", budget, short)
			}
			checkLeast(t, groups, limit, short.Want)
		}
		if err != nil {
			return
		}
		checkDivision(t, groups, banks, limit, budget)
		all, err := Divide(groups, limit, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		checkDivision(t, groups, all, limit, math.MaxInt64)
		for _, b := range all {
			if want := len(b.Layers) * b.Experts; int64(b.Experts)*b.RecordBytes <= limit && b.Slots != want {
				t.Errorf("no budget limit: bank of layers %v: have %d slots, want all %d", b.Layers, b.Slots, want)
			}
		}
	})
}

// checkLeast checks that a budget works and one byte less does not.
func checkLeast(t *testing.T, groups []Group, limit, least int64) {
	banks, err := Divide(groups, limit, least)
	if err != nil {
		t.Fatalf("the smallest budget, %d, does not work: %v", least, err)
	}
	checkDivision(t, groups, banks, limit, least)
	_, err = Divide(groups, limit, least-1)
	if short := (*BudgetError)(nil); !errors.As(err, &short) || short.Want != least {
		t.Errorf("one byte less than %d: have error %v", least, err)
	}
}

// checkDivision checks sums, limits, and that the banks serve the groups' layers in
// order, each once.
func checkDivision(t *testing.T, groups []Group, banks []Bank, limit, budget int64) {
	t.Helper()
	if err := checkBanks(banks); err != nil {
		t.Fatal(err)
	}
	left, next := budget, 0
	for _, g := range groups {
		for at := 0; at < len(g.Layers); next++ {
			if next == len(banks) {
				t.Fatalf("layer %d is in no bank", g.Layers[at])
			}
			b := banks[next]
			size := int64(b.Slots) * b.RecordBytes
			if size > limit || b.Slots < g.Used || b.Experts != g.Experts || b.RecordBytes != g.RecordBytes {
				t.Errorf("bank %d %+v of group %+v with limit %d", next, b, g, limit)
			}
			left -= size
			for _, l := range b.Layers {
				if at == len(g.Layers) || g.Layers[at] != l {
					t.Fatalf("bank %d serves layer %d out of order", next, l)
				}
				at++
			}
		}
	}
	if left < 0 || next != len(banks) {
		t.Errorf("budget %d exceeded by %d, or %d banks too many", budget, -left, len(banks)-next)
	}
}

// TestDivideWith: banks that take powers of two fill what they take.
func TestDivideWith(t *testing.T) {
	power := func(n int64) int64 { return 1 << bits.Len64(uint64(max(n, 16)-1)) }
	a := Group{Layers: layers(0, 4), Experts: 8, Used: 2, RecordBytes: 100}
	wide := Group{Layers: layers(4, 2), Experts: 8, Used: 2, RecordBytes: 150}
	for _, c := range []struct {
		limit, budget int64
		want          string // banks as [layers]slots
	}{
		{9999, 256 + 512, "[0 1 2 3]2 [4 5]3"}, // the least
		{9999, 2047, "[0 1 2 3]10 [4 5]3"},     // 1024 and 512
		{9999, 2048, "[0 1 2 3]10 [4 5]6"},
		{9999, math.MaxInt64, "[0 1 2 3]32 [4 5]16"},
		{1700, math.MaxInt64, "[0 1]16 [2 3]16 [4]8 [5]8"},
	} {
		banks, err := DivideWith([]Group{a, wide}, c.limit, c.budget, power)
		if err != nil {
			t.Errorf("budget %d: %v", c.budget, err)
		}
		var have []string
		var sum int64
		for _, b := range banks {
			have = append(have, fmt.Sprintf("%v%d", b.Layers, b.Slots))
			sum += power(int64(b.Slots) * b.RecordBytes)
		}
		if got := strings.Join(have, " "); got != c.want || sum > c.budget {
			t.Errorf("budget %d: have %s, which take %d, want %s", c.budget, got, sum, c.want)
		}
	}
	_, err := DivideWith([]Group{a, wide}, 9999, 767, power)
	if short := (*BudgetError)(nil); !errors.As(err, &short) || short.Want != 768 {
		t.Errorf("have %v, want a budget of 768", err)
	}
}

// TestDivideMany: of thousands of groups, as a trace may have, each is made banks of once, and not for each try of a division.
func TestDivideMany(t *testing.T) {
	const n = 4096
	groups := make([]Group, n)
	for i := range groups {
		groups[i] = Group{Layers: layers(i, 1), Experts: 256, Used: 1, RecordBytes: 1000 + int64(i)}
	}
	all := testing.AllocsPerRun(1, func() {
		banks, err := Divide(groups, 1<<30, 1<<29)
		if err != nil || len(banks) != n {
			t.Errorf("have %d banks, %v", len(banks), err)
		}
	})
	if each := all / n; each > 20 {
		t.Errorf("have %.1f allocations a group, want a few", each)
	}
}
