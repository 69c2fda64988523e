package kerneltest_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// How these tests sample. Whatever shapes a kernel's code (types, choices,
// override constants) costs a compilation, 0.1 s on lavapipe. So each kernel
// runs in some of a fixed set of forms in which every pair of settings occurs
// (pairs): in each run every setting, over runs every pair. The driver's cache
// keeps them. A few more forms are any (also). Shapes and data are drawn anew
// always; the corners that the tests name are among them in each run.

var seedFlag = flag.Uint64("seed", 0, "replay a run: the seed that it printed (0 draws one)")

var seed uint64

func TestMain(m *testing.M) {
	flag.Parse()
	if seed = *seedFlag; seed == 0 {
		seed = rand.Uint64()
	}
	fmt.Printf("kerneltest: seed %d\n", seed)
	code := m.Run()
	if testing.Verbose() {
		printWorst()
	}
	os.Exit(code)
}

// random is the test's own stream of the run's seed, so that -run with -seed replays a test alone.
func random(t *testing.T) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// worst is the largest error seen of each kernel's variable.
var worst = map[string]kerneltest.Stat{}

func printWorst() {
	for _, k := range slices.Sorted(maps.Keys(worst)) {
		fmt.Printf("worst %-24s NMSE %.1e, max %.1e of rms\n", k, worst[k].NMSE, worst[k].Max)
	}
}

// check runs a case and keeps its errors for printWorst.
func check(t *testing.T, name string, c kerneltest.Case) {
	t.Helper()
	for v, s := range kerneltest.Run(t, c) {
		key := name + " " + v
		w := worst[key]
		worst[key] = kerneltest.Stat{Bound: kerneltest.Bound{NMSE: max(w.NMSE, s.NMSE), Max: max(w.Max, s.Max)}}
	}
}

// build specializes a kernel and begins a case on it.
func build(t testing.TB, s kernels.Spec) kerneltest.Case {
	t.Helper()
	k, err := kernels.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	return kerneltest.Case{Kernel: k, Ref: kernels.Ref(s.Name), Grid: [3]uint32{1, 1, 1}, Constants: map[string]any{},
		Memory: map[string]*program.Memory{}, Bounds: map[string]kerneltest.Bound{}}
}

// matrixEnv asks for all rows of pairs.
const matrixEnv = "SLUICE_MATRIX"

// pairs is rows of everyPair: all of them with SLUICE_MATRIX=full (make golden), else about a quarter, drawn anew in each
// run, in which every value of every axis occurs. A cold run of all compiles for many minutes.
func pairs(r *rand.Rand, axes ...int) [][]int {
	rows := everyPair(axes...)
	if os.Getenv(matrixEnv) == "full" {
		return rows
	}
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	n := covering(rows)
	return rows[:max(n, (len(rows)+3)/4)]
}

// covering moves rows to the front, those with most values that no row before them has, and returns how many have all values.
func covering(rows [][]int) (n int) {
	seen := map[[2]int]bool{}
	for ; ; n++ {
		best, most := n, 0
		for i, row := range rows[n:] {
			fresh := 0
			for axis, value := range row {
				if !seen[[2]int{axis, value}] {
					fresh++
				}
			}
			if fresh > most {
				best, most = n+i, fresh
			}
		}
		if most == 0 {
			return n
		}
		rows[n], rows[best] = rows[best], rows[n]
		for axis, value := range rows[n] {
			seen[[2]int{axis, value}] = true
		}
	}
}

// everyPair covers axes of the given lengths: rows of indices, such that every pair
// of values of two axes occurs in some row. The same lengths give the same rows.
func everyPair(axes ...int) [][]int {
	todo := map[[4]int]bool{}
	for a := range axes {
		for b := range a {
			for i := range axes[a] {
				for j := range axes[b] {
					todo[[4]int{b, j, a, i}] = true
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	var rows [][]int
	for len(todo) > 0 {
		var best []int
		gain := 0
		for range 40 {
			row := make([]int, len(axes))
			for i, n := range axes {
				row[i] = r.IntN(n)
			}
			if g := covered(todo, row, false); g > gain {
				best, gain = row, g
			}
		}
		if best == nil { // take one of what is left, and chance for the rest
			best = make([]int, len(axes))
			for i, n := range axes {
				best[i] = r.IntN(n)
			}
			p := first(todo)
			best[p[0]], best[p[2]] = p[1], p[3]
		}
		covered(todo, best, true)
		rows = append(rows, best)
	}
	return rows
}

// covered counts the pairs of row that are still to do, and strikes them off.
func covered(todo map[[4]int]bool, row []int, strike bool) (n int) {
	for a := range row {
		for b := range a {
			p := [4]int{b, row[b], a, row[a]}
			if todo[p] {
				n++
			}
			if strike {
				delete(todo, p)
			}
		}
	}
	return n
}

func first(todo map[[4]int]bool) [4]int {
	return slices.SortedFunc(maps.Keys(todo), func(a, b [4]int) int { return slices.Compare(a[:], b[:]) })[0]
}

func TestPairs(t *testing.T) {
	rows := everyPair(5, 3, 2)
	for i := range 5 {
		for j := range 3 {
			if !slices.ContainsFunc(rows, func(r []int) bool { return r[0] == i && r[1] == j }) {
				t.Errorf("no row has %d and %d", i, j)
			}
		}
	}
	if len(rows) > 20 {
		t.Errorf("have %d rows, want about 15", len(rows))
	}
}

// TestPairsDrawn: every value of every axis is in each draw, and a seed draws the same again.
func TestPairsDrawn(t *testing.T) {
	t.Setenv(matrixEnv, "")
	axes := []int{17, 12, 2, 3, 3}
	for i := range uint64(5) {
		rows := pairs(rand.New(rand.NewPCG(i, 1)), axes...)
		for axis, n := range axes {
			for value := range n {
				if !slices.ContainsFunc(rows, func(row []int) bool { return row[axis] == value }) {
					t.Errorf("seed %d: no row has %d at %d", i, value, axis)
				}
			}
		}
		if again := pairs(rand.New(rand.NewPCG(i, 1)), axes...); !slices.EqualFunc(rows, again, slices.Equal) {
			t.Errorf("seed %d: have %v, then %v", i, rows, again)
		}
		if all := len(everyPair(axes...)); len(rows) > all/4+1 {
			t.Errorf("seed %d: have %d of %d rows, want a quarter", i, len(rows), all)
		}
	}
}

// also adds n random rows to a covering.
func also(r *rand.Rand, n int, rows [][]int, axes ...int) [][]int {
	for range n {
		row := make([]int, len(axes))
		for i, k := range axes {
			row[i] = r.IntN(k)
		}
		rows = append(rows, row)
	}
	return rows
}

// normal is n values of a standard normal distribution.
func normal(r *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = r.NormFloat64()
	}
	return v
}

// pick draws one of the values.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }
