package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// What a session keeps lies in arenas, too, each of buffers of one class. Unlike weights these are written, and the library
// tracks what a whole buffer is used for. So which may share one is found in the program:
//   - Not those that a dispatch binds together: read through one binding and written through another is refused, and else each
//     would be ordered after the other's uses.
//   - None that is bound by a dispatch which would otherwise run beside the dispatches before it. The library puts a barrier
//     before a dispatch that uses a buffer otherwise than it was used last, or writes it again; in an arena that is the use of
//     another layer's part. One barrier orders all that is before it with all that is behind, so where a dispatch has one
//     anyway, since it reads what its section has computed just before, an arena costs nothing. Where it has none the buffers
//     that it binds stay alone.

// mostShared bounds the buffers of an arena, and so the time that cutting takes.
const mostShared = 256

// sessionArenas is where a session's buffers lie. Offsets are multiples of bandAlign.
type sessionArenas struct {
	list []sessionArena
	at   map[uint32]span // by the program's buffer
}

// sessionArena is a GPU buffer of session buffers of a class: so an arena counts to one kind, and is cleared on reset and
// copied to snapshots as a whole or not at all.
type sessionArena struct {
	class program.Class
	size  uint64
}

// label names an arena in messages.
func (a sessionArena) label(number int) string {
	return fmt.Sprintf("%s %d", strings.ToLower(a.class.String()), number)
}

// packSession lays out what each session keeps, in arenas of at most limit bytes.
func (m *Planned) packSession(limit uint64) (sessionArenas, error) {
	a := sessionArenas{at: map[uint32]span{}}
	for _, buffers := range sharing(m.Program) {
		sizes := make([]uint64, len(buffers))
		for i, b := range buffers {
			var err error
			if sizes[i], err = program.BufferBytes(m.Program.Buffers[b], uint64(m.Chunk), uint64(m.outs()), uint64(m.Context)); err != nil {
				return a, err
			}
		}
		first := 0
		for _, end := range cutRuns(sizes, limit) {
			arena := sessionArena{class: m.Program.Buffers[buffers[first]].Class}
			for i := first; i < end; i++ {
				offset := alignUp(arena.size, bandAlign)
				a.at[buffers[i]] = span{len(a.list), offset, sizes[i]}
				arena.size = offset + sizes[i]
			}
			a.list = append(a.list, arena)
			first = end
		}
	}
	return a, nil
}

// cutRuns cuts a list of sizes into runs that lie in an arena each, and returns where each ends: those that reserve least, and
// of these the fewest. (Five caches of 1 MiB each lose nothing to rounding by themselves, and 3 MiB in one arena.)
func cutRuns(sizes []uint64, limit uint64) (ends []int) {
	type cut struct {
		reserved    uint64
		arenas, run int // of arenas the number, of the last one the buffers
	}
	best := make([]cut, len(sizes)+1) // of the first so many
	for end := 1; end <= len(sizes); end++ {
		best[end].reserved = math.MaxUint64
		last := sizes[end-1]
		for run, n := 1, last; ; {
			before := best[end-run]
			x := cut{before.reserved + gpu.Reserved(n), before.arenas + 1, run}
			if y := best[end]; x.reserved < y.reserved || x.reserved == y.reserved && x.arenas < y.arenas {
				best[end] = x
			}
			if run == min(end, mostShared) {
				break
			}
			run++
			if n += alignUp(sizes[end-run], bandAlign); n > limit || n-last >= fullArena {
				break
			}
		}
	}
	for end := len(sizes); end > 0; end -= best[end].run {
		ends = append(ends, end)
	}
	slices.Reverse(ends)
	return ends
}

// sharing puts the buffers of sessions into groups that may share arenas, all in the program's order: each joins the first group
// of its class that has none it must be apart from. So the keys of all layers come together, and the values.
func sharing(p *program.Program) (groups [][]uint32) {
	apart, alone := separate(p)
	group := map[uint32]int{}         // by buffer
	open := map[program.Class][]int{} // groups that may grow
	for i, b := range p.Buffers {
		x := uint32(i)
		if b.Class == program.Class_SCRATCH {
			continue
		}
		taken := map[int]bool{}
		for y := range apart[x] {
			if g, ok := group[y]; ok {
				taken[g] = true
			}
		}
		at := slices.IndexFunc(open[b.Class], func(g int) bool { return !alone[x] && !taken[g] })
		if at >= 0 {
			group[x] = open[b.Class][at]
			groups[group[x]] = append(groups[group[x]], x)
			continue
		}
		group[x] = len(groups)
		if groups = append(groups, []uint32{x}); !alone[x] {
			open[b.Class] = append(open[b.Class], group[x])
		}
	}
	return groups
}

// separate finds which session buffers a dispatch binds together, and which ones a dispatch binds that has no barrier of its own.
func separate(p *program.Program) (apart map[uint32]map[uint32]bool, alone map[uint32]bool) {
	apart, alone = map[uint32]map[uint32]bool{}, map[uint32]bool{}
	for _, sec := range p.Sections {
		for _, v := range sec.Variants {
			used := uses{}
			for _, d := range v.Dispatches {
				waits := used.next(p.Kernels[d.Kernel].Slots, d.Bindings)
				kept := keptBy(p, d)
				for _, x := range kept {
					if !waits {
						alone[x] = true
					}
					for _, y := range kept {
						if x != y {
							join(apart, x, y)
						}
					}
				}
			}
		}
	}
	return apart, alone
}

// join notes that x and y are apart.
func join(apart map[uint32]map[uint32]bool, x, y uint32) {
	if apart[x] == nil {
		apart[x] = map[uint32]bool{}
	}
	apart[x][y] = true
}

// keptBy lists the session buffers that a dispatch binds.
func keptBy(p *program.Program, d *program.Dispatch) (kept []uint32) {
	for _, b := range d.Bindings {
		if x, ok := b.At.(*program.Binding_Buffer); ok && p.Buffers[x.Buffer].Class != program.Class_SCRATCH {
			kept = append(kept, x.Buffer)
		}
	}
	return kept
}

// uses are the buffers and tables that a section has used, and whether it wrote them last. What else a dispatch binds is only
// ever read.
type uses map[tracked]bool

// tracked is a buffer of the program, or with buffer -1 a table.
type tracked struct {
	buffer int64
	table  program.Table
}

// next notes what the section's next dispatch uses, and reports whether a barrier comes before it on that account.
func (u uses) next(slots []*program.Slot, bindings []*program.Binding) (waits bool) {
	now := uses{}
	for i, b := range bindings {
		t := tracked{buffer: -1}
		switch x := b.At.(type) {
		case *program.Binding_Buffer:
			t.buffer = int64(x.Buffer)
		case *program.Binding_Table:
			t.table = x.Table
		default:
			continue
		}
		writes := slots[i].Access == program.Access_READ_WRITE
		wrote, before := u[t]
		waits = waits || before && (wrote || writes)
		now[t] = now[t] || writes
	}
	maps.Copy(u, now)
	return waits
}
