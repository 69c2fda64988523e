package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gpu"
)

// The golden matrix: chunk lengths, pools and sources of weights, none of which may change what a model says.
// By default each value of each is run, but not each with each; SLUICE_MATRIX=full runs all (make golden).

// matrixEnv asks for the whole matrix.
const matrixEnv = "SLUICE_MATRIX"

// combination is one way to run a model.
type combination struct {
	chunk  int
	pool   string // smallest, middle or full
	source string // gguf or store
}

func (c combination) String() string {
	return fmt.Sprintf("chunk %d, %s pool, %s", c.chunk, c.pool, c.source)
}

// combinations of the i-th model: for each chunk length first the one that the others are compared with. Unless all are
// wanted, each model has two chunk lengths, each with two pools and both sources.
func combinations(i int) []combination {
	full := os.Getenv(matrixEnv) == "full"
	var all []combination
	for j, chunk := range []int{256, 7, 64, 1} {
		for _, pool := range []string{"full", "middle", "smallest"} {
			for _, source := range []string{"gguf", "store"} {
				other := []string{"smallest", "middle"}[j%2]
				chosen := (j == 0 || j == 1+i%3) && (pool == "full" && source == "gguf" || pool == other && source == "store")
				if full || chosen {
					all = append(all, combination{chunk, pool, source})
				}
			}
		}
	}
	return all
}

// goldenModel is a model with its cases.
type goldenModel struct{ name, gguf, refs string }

// goldenArchitectures are those with a plugin: each has a tiny model, and files in the golden folder.
var goldenArchitectures = []string{"lfm2moe", "qwen35moe", "bailingmoe3", "gemma4"}

// goldenModels are the tiny model of each architecture and its files of the golden folder, at most that many.
func goldenModels(t testing.TB, most int) []goldenModel {
	t.Helper()
	var models []goldenModel
	for _, arch := range goldenArchitectures {
		models = append(models, goldenModel{"tiny-" + arch, "../../testdata/models/tiny-" + arch + ".gguf", "../../testdata/models/golden/" + arch + ".json"})
		folder := filepath.Join(cmp.Or(os.Getenv("SLUICE_GOLDEN"), "../../../shared/golden"), arch)
		found, err := filepath.Glob(filepath.Join(folder, "*.gguf"))
		switch {
		case err != nil:
			t.Fatal(err)
		case len(found) == 0 && os.Getenv("CI") == "true":
			t.Fatalf("%s: no golden files there: set SLUICE_GOLDEN", folder)
		case len(found) == 0:
			t.Logf("%s: no golden files there (SLUICE_GOLDEN names their folder): the tiny model only", folder)
		}
		for _, f := range found[:min(len(found), most)] {
			base := strings.TrimSuffix(f, ".gguf")
			models = append(models, goldenModel{arch + "-" + filepath.Base(base), f, base + ".json"})
		}
	}
	return models
}

// inMatrix is how many golden files of an architecture go through the matrix beside its tiny model.
func inMatrix() int {
	if os.Getenv(matrixEnv) == "full" {
		return math.MaxInt
	}
	return 0
}

// TestGoldenMatrix: logits of a short prompt and of 300 tokens are the same bits whatever the pool and the source, within
// 1e-3 of each other whatever the chunk length, and within 1e-3 of the reference.
func TestGoldenMatrix(t *testing.T) {
	t.Parallel()
	needGPU(t)
	for i, m := range goldenModels(t, inMatrix()) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			x := newMatrix(t, m)
			byChunk := map[int]string{}
			for _, c := range combinations(i) {
				out := x.run(c)
				if same, ok := byChunk[c.chunk]; ok && out != same {
					t.Errorf("%v: the logits are not those of the full pool of the GGUF, to the bit", c)
				} else if !ok {
					byChunk[c.chunk] = out
					x.compare(c, out)
				}
			}
		})
	}
}

// someCases are the names of a model's cases to replay: all with the whole matrix, else three drawn anew each time.
func someCases(t testing.TB, r *refs) []string {
	var names []string
	for _, c := range r.Cases {
		names = append(names, c.Name)
	}
	if os.Getenv(matrixEnv) == "full" {
		return names
	}
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:min(3, len(names))]
	t.Logf("cases %v (all with %s=full)", names, matrixEnv)
	return names
}

// TestGoldenVerify: cases with all greedy tokens, and one with the smallest pool token by token.
func TestGoldenVerify(t *testing.T) {
	t.Parallel()
	needGPU(t)
	for _, m := range goldenModels(t, math.MaxInt) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			refs, err := readRefs(m.refs, nil)
			if err != nil {
				t.Fatal(err)
			}
			some := someCases(t, refs)
			if r := runHost(t, "", "verify", "--model", m.gguf, "--refs", m.refs, "--cases", strings.Join(some, ",")); r.code != 0 || strings.Count(r.stdout, "\n") != len(some)+2 {
				t.Errorf("have code %d, output\n%s\nerrors %s", r.code, r.stdout, r.stderr)
			}
			short := slices.MinFunc(refs.Cases, func(a, b *refCase) int { return len(a.Tokens) - len(b.Tokens) }).Name
			args := []string{"--model", m.gguf, "--refs", m.refs, "--cases", short, "--chunk", "1"}
			least := fmt.Sprint(smallestBudget(t, "verify", args...))
			if r := runHost(t, "", append([]string{"verify", "--gpu-budget", least}, args...)...); r.code != 0 {
				t.Errorf("%s in the smallest pool: have code %d, output\n%s\nerrors %s", short, r.code, r.stdout, r.stderr)
			}
		})
	}
}

// matrix is a model under test.
type matrix struct {
	*testing.T
	goldenModel
	store string
	long  *refCase // that is a golden case, or nil
	input string
	whole map[int]uint64 // by chunk length, the bytes of the GPU that hold every expert
	least map[int]int    // by chunk length, the smallest budget
	first []matrixLine   // what the first chunk length gave
}

// matrixLine is an answer of host eval with every logit.
type matrixLine struct {
	Tokens    []int32
	Positions []refPosition
}

// newMatrix chooses two prompts and packs the store.
func newMatrix(t *testing.T, m goldenModel) *matrix {
	t.Helper()
	const tokens = 300
	refs, err := readRefs(m.refs, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := &matrix{T: t, goldenModel: m, store: filepath.Join(t.TempDir(), "store"), whole: map[int]uint64{}, least: map[int]int{}}
	bySize := slices.SortedFunc(slices.Values(refs.Cases), func(a, b *refCase) int { return len(a.Tokens) - len(b.Tokens) })
	var long []int32
	for _, c := range bySize {
		if long = append(long, c.Tokens...); len(c.Tokens) >= tokens {
			x.long, long = c, c.Tokens
			break
		}
	}
	prompts := [][]int32{bySize[0].Tokens, long}
	if x.long == nil { // cases one after the other, which no reference has seen
		for len(prompts[1]) < tokens {
			prompts[1] = append(prompts[1], long...)
		}
		prompts[1] = prompts[1][:tokens]
	}
	for _, p := range prompts {
		x.input += fmt.Sprintf(`{"tokens":%s,"top":1000000}`+"\n", strings.ReplaceAll(fmt.Sprint(p), " ", ","))
	}
	if r := runHost(t, "", "ingest", "--model", m.gguf, "--store", x.store); r.code != 0 {
		t.Fatalf("ingest: have code %d, errors %s", r.code, r.stderr)
	}
	return x
}

// run evaluates the prompts. What it prints has every bit of the logits.
func (x *matrix) run(c combination) string {
	x.Helper()
	stats := filepath.Join(x.TempDir(), "stats.json")
	args := []string{"eval", "--kv", "f32", "--chunk", fmt.Sprint(c.chunk), "--gpu-budget", x.budget(c), "--stats-json", stats, "--model", x.gguf}
	if c.source == "store" {
		args = append(args, "--store", x.store)
	}
	r := runHost(x, x.input, args...)
	if r.code != 0 {
		x.Fatalf("%v: have code %d, errors %s", c, r.code, r.stderr)
	}
	s := readStats(x, stats)
	s.checkMemory(x.T)
	x.whole[c.chunk] = max(x.whole[c.chunk], s.GPU.Total.Actual)
	if full := c.pool == "full"; full != (s.Experts.Evictions == 0) {
		x.Errorf("%v: have %d evictions: it is not the pool that it should be", c, s.Experts.Evictions)
	}
	return r.stdout
}

// budget is what a pool needs: what the smallest is, the host says where it is given less.
func (x *matrix) budget(c combination) string {
	x.Helper()
	if c.pool == "full" {
		return "max"
	}
	if x.least[c.chunk] == 0 {
		x.least[c.chunk] = smallestBudget(x, "eval", "--kv", "f32", "--chunk", fmt.Sprint(c.chunk), "--model", x.gguf)
	}
	least := x.least[c.chunk]
	if c.pool == "middle" { // the full pool ran first
		return fmt.Sprint((uint64(least) + x.whole[c.chunk]) / 2)
	}
	return fmt.Sprint(least)
}

func readStats(t testing.TB, file string) *statsReport {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &statsReport{}
	if err := json.Unmarshal(data, s); err != nil {
		t.Fatalf("%v:\n%s", err, data)
	}
	if s.GPU.Kinds[gpu.Pool].Actual == 0 {
		t.Fatalf("have no pool:\n%s", data)
	}
	return s
}

// compare holds a chunk length's logits to the first one's and to the golden ones.
func (x *matrix) compare(c combination, out string) {
	x.Helper()
	var lines []matrixLine
	for text := range strings.Lines(out) {
		var l matrixLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			x.Fatal(err)
		}
		lines = append(lines, l)
	}
	if len(lines) != 2 || len(lines[1].Positions) != 8 {
		x.Fatalf("%v: have %d lines, want 2, the long prompt's with 8 positions", c, len(lines))
	}
	if x.first == nil {
		x.first = lines
		if x.long != nil {
			x.near("golden "+x.long.Name, lines[1].Positions, x.long.Positions)
		}
		return
	}
	for i := range lines {
		x.near(c.String(), lines[i].Positions, x.first[i].Positions)
	}
}

// near compares logits, of which want may have a few only.
func (x *matrix) near(what string, have, want []refPosition) {
	x.Helper()
	for i, p := range want {
		h := have[len(have)-len(want)+i]
		byID := map[int32]float64{}
		for _, e := range h.Top {
			byID[e.id] = e.logit
		}
		for _, e := range p.Top {
			if l, ok := byID[e.id]; !ok || !(math.Abs(l-e.logit) <= 1e-3) || h.Pos != p.Pos {
				x.Errorf("%s: position %d, token %d: have %v (%v), want %v", what, p.Pos, e.id, l, ok, e.logit)
				return
			}
		}
	}
}
