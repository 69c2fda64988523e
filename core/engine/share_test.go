package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// sharer builds a program of one section: letters name its buffers, capitals those of a session.
func sharer(classes map[rune]program.Class, dispatches ...string) (*program.Program, map[rune]uint32) {
	p, at := &program.Program{}, map[rune]uint32{}
	v := &program.Variant{}
	for _, d := range dispatches {
		k, x := &program.Kernel{}, &program.Dispatch{Kernel: uint32(len(p.Kernels))}
		access := program.Access_READ
		for _, r := range d { // as in "xy>z": reads x and y, writes z
			if r == '>' {
				access = program.Access_READ_WRITE
				continue
			}
			if _, ok := at[r]; !ok {
				at[r] = uint32(len(p.Buffers))
				p.Buffers = append(p.Buffers, &program.Buffer{Name: string(r), Class: classes[r], Fixed: 256})
			}
			k.Slots = append(k.Slots, &program.Slot{Access: access})
			x.Bindings = append(x.Bindings, &program.Binding{At: &program.Binding_Buffer{Buffer: at[r]}})
		}
		p.Kernels, v.Dispatches = append(p.Kernels, k), append(v.Dispatches, x)
	}
	p.Sections = []*program.Section{{Variants: []*program.Variant{v}}}
	return p, at
}

func TestSharing(t *testing.T) {
	kv, ring, state := program.Class_KV, program.Class_RING, program.Class_STATE
	for name, c := range map[string]struct {
		classes    map[rune]program.Class
		dispatches []string
		want       string
	}{
		"keys and values": {map[rune]program.Class{'K': kv, 'V': kv, 'L': kv, 'W': kv},
			[]string{"x>a", "a>qKV", "qKV>x", "x>a", "a>qLW", "qLW>x"}, "[KL VW]"},
		"a layer without values between": {map[rune]program.Class{'K': kv, 'V': kv, 'L': kv, 'M': kv, 'W': kv},
			[]string{"x>a", "a>KV", "x>a", "a>L", "x>a", "a>MW"}, "[KLM VW]"},
		"classes": {map[rune]program.Class{'K': kv, 'R': ring, 'S': state, 'D': state},
			[]string{"x>a", "a>K", "x>a", "a>R", "x>a", "a>Sb", "b>Dc"}, "[K R SD]"},
		"first of its section": {map[rune]program.Class{'S': state, 'T': state, 'U': state},
			[]string{"x>S", "S>x", "x>aT", "a>bU"}, "[S TU]"},
		"beside another dispatch": {map[rune]program.Class{'S': state, 'T': state, 'U': state},
			[]string{"x>a", "a>S", "y>T", "a>b", "b>U"}, "[SU T]"},
		"two readers": {map[rune]program.Class{'S': state, 'T': state},
			[]string{"x>a", "a>ST", "ST>y"}, "[S T]"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := sharer(c.classes, c.dispatches...)
			var have []string
			for _, g := range sharing(p) {
				s := ""
				for _, b := range g {
					s += p.Buffers[b].Name
				}
				have = append(have, s)
			}
			if fmt.Sprint(have) != c.want {
				t.Errorf("have %v, want %v", have, c.want)
			}
		})
	}
}

// barriers are the dispatches of a section that the library puts a barrier before, where home says which GPU buffer each of the
// program's lies in. whole is what the sections before have used.
func barriers(v *program.Variant, kernels []*program.Kernel, home func(uint32) string, whole map[string]bool) (at []bool, err error) {
	for _, d := range v.Dispatches {
		now, waits := map[string]bool{}, false
		for i, b := range d.Bindings {
			h, writes := home(b.GetBuffer()), kernels[d.Kernel].Slots[i].Access == program.Access_READ_WRITE
			wrote, before := whole[h]
			waits = waits || before && (wrote || writes)
			if other, twice := now[h]; twice && (other || writes) {
				return nil, fmt.Errorf("%s is bound twice", h)
			}
			now[h] = writes
		}
		maps.Copy(whole, now)
		at = append(at, waits)
	}
	return at, nil
}

// randomProgram has sections of dispatches that bind scratch and session buffers as they like.
func randomProgram(r *rand.Rand) *program.Program {
	p := &program.Program{}
	for i := range 2 + r.IntN(20) {
		c := program.Class(r.IntN(4))
		p.Buffers = append(p.Buffers, &program.Buffer{Name: fmt.Sprint(i), Class: c, Fixed: 1 + r.Uint64N(1<<uint(4+r.IntN(20)))})
	}
	for range 1 + r.IntN(6) {
		v := &program.Variant{}
		for range 1 + r.IntN(8) {
			k, d := &program.Kernel{}, &program.Dispatch{Kernel: uint32(len(p.Kernels))}
			for _, b := range r.Perm(len(p.Buffers))[:1+r.IntN(min(4, len(p.Buffers)))] {
				k.Slots = append(k.Slots, &program.Slot{Access: program.Access(r.IntN(2))})
				d.Bindings = append(d.Bindings, &program.Binding{At: &program.Binding_Buffer{Buffer: uint32(b)}})
			}
			p.Kernels, v.Dispatches = append(p.Kernels, k), append(v.Dispatches, d)
		}
		p.Sections = append(p.Sections, &program.Section{Variants: []*program.Variant{v}})
	}
	return p
}

// Whatever a program does, arenas add no barrier and no conflict, and hold each buffer once, of one class and within limits; and
// they reserve no more than a buffer for each.
func TestSessionArenasRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	shared := 0
	for range 3000 {
		p := randomProgram(r)
		const limit = 8 << 20
		a, err := (&Planned{Program: p, Plan: &program.Plan{Model: &program.Model{}}, Chunk: 1, Context: 1}).packSession(limit)
		if err != nil {
			t.Fatal(err)
		}
		checkLayout(t, p, a, limit)
		shared += len(a.at) - len(a.list)
		own := func(b uint32) string { return fmt.Sprint("buffer ", b) }
		home := func(b uint32) string {
			if s, ok := a.at[b]; ok {
				return fmt.Sprint("arena ", s.arena)
			}
			return own(b)
		}
		alone, together := map[string]bool{}, map[string]bool{}
		for _, s := range p.Sections {
			before, err := barriers(s.Variants[0], p.Kernels, own, alone)
			if err != nil {
				t.Fatal(err)
			}
			after, err := barriers(s.Variants[0], p.Kernels, home, together)
			if err != nil {
				t.Fatalf("%v: %v in %v", err, p, a)
			}
			for i := range after { // one less is fine: another part's use of the arena came between
				if after[i] && !before[i] {
					t.Fatalf("have barriers %v, want none beyond %v: %v in %v", after, before, p, a)
				}
			}
		}
	}
	if shared < 100 {
		t.Errorf("have %d buffers in another's arena in 3000 programs, want many", shared)
	}
}

// checkLayout checks where buffers lie.
func checkLayout(t *testing.T, p *program.Program, a sessionArenas, limit uint64) {
	t.Helper()
	ends := make([]uint64, len(a.list))
	var apart, have uint64
	for i, b := range p.Buffers {
		s, ok := a.at[uint32(i)]
		if ok == (b.Class == program.Class_SCRATCH) {
			t.Fatalf("buffer %d: have a place: %v, of class %v", i, ok, b.Class)
		}
		if !ok {
			continue
		}
		x := a.list[s.arena]
		if s.size != 4*b.Fixed || s.offset%bandAlign != 0 || s.offset < ends[s.arena] || s.offset+s.size > x.size || x.class != b.Class {
			t.Fatalf("buffer %d: have %+v in %+v, %d taken, of class %v", i, s, x, ends[s.arena], b.Class)
		}
		ends[s.arena] = s.offset + s.size
		apart += gpu.Reserved(s.size)
	}
	for i, x := range a.list {
		alone := slices.ContainsFunc(p.Buffers, func(b *program.Buffer) bool { return 4*b.Fixed == x.size })
		if x.size != ends[i] || x.size > limit && !alone {
			t.Fatalf("arena %d: have %+v, %d of it used, limit %d", i, x, ends[i], limit)
		}
		have += gpu.Reserved(x.size)
	}
	if have > apart {
		t.Fatalf("have %d bytes reserved, %d with a buffer for each", have, apart)
	}
}

func TestCutRuns(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		sizes []uint64
		limit uint64
		want  []int
	}{
		"none":                      {nil, mib, nil},
		"small":                     {[]uint64{256, 256, 256, 256}, mib, []int{4}},
		"powers of two":             {slices.Repeat([]uint64{mib}, 5), 4096 * mib, []int{1, 5}},
		"an even number of them":    {slices.Repeat([]uint64{mib}, 8), 4096 * mib, []int{8}},
		"memory of their own":       {slices.Repeat([]uint64{5 * mib}, 7), 4096 * mib, []int{7}},
		"limit":                     {slices.Repeat([]uint64{5 * mib}, 14), 40 * mib, []int{7, 14}},
		"one larger than the limit": {[]uint64{mib, 3 * mib}, 2 * mib, []int{1, 2}},
		"full":                      {slices.Repeat([]uint64{100 * mib}, 7), 4096 * mib, []int{3, 6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			have := cutRuns(c.sizes, c.limit)
			if c.want == nil && len(have) == 0 {
				return
			}
			if len(have) != len(c.want) || reservedBy(c.sizes, have) != reservedBy(c.sizes, c.want) {
				t.Errorf("have %v, want as many and as much as %v", have, c.want)
			}
		})
	}
	if have := cutRuns(make([]uint64, 100_000), mib); len(have) < 100_000/mostShared {
		t.Errorf("have %d runs of 100000, want at most %d in each", len(have), mostShared)
	}
}

func reservedBy(sizes []uint64, ends []int) (sum uint64) {
	first := 0
	for _, end := range ends {
		var n uint64
		for _, s := range sizes[first:end] {
			n = alignUp(n, bandAlign) + s
		}
		sum += gpu.Reserved(n)
		first = end
	}
	return sum
}
