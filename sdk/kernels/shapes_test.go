package kernels

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// realShape is a model's sizes where they are largest (the table "Real shapes" of the specification).
type realShape struct {
	name                              string
	hidden, vocab, widest             uint32 // widest: the longest row of any matrix
	heads, kvHeads, headDim, window   uint32
	experts, topK, expertFF, convTaps uint32
	groups                            uint32 // of experts
}

var realShapes = []realShape{
	{"qwen35moe 35B", 2048, 248320, 4096, 16, 2, 256, 0, 256, 8, 512, 0, 0},
	{"qwen35moe 397B", 4096, 248320, 8192, 32, 2, 256, 0, 512, 10, 1024, 0, 0},
	{"gemma4 sliding", 2816, 262144, 4096, 16, 8, 256, 1024, 128, 8, 704, 0, 0},
	{"gemma4 full", 2816, 262144, 8192, 16, 2, 512, 0, 128, 8, 704, 0, 0},
	{"lfm2moe 24B", 2048, 65536, 11776, 32, 8, 64, 0, 64, 4, 1536, 3, 0},
	{"lfm2moe 8B", 2048, 65536, 7168, 32, 8, 64, 0, 32, 4, 1792, 3, 0},
	{"bailingmoe3 flash", 2560, 157184, 6144, 32, 32, 192, 0, 512, 8, 768, 4, 8},
}

const longestContext, longestChunk = 262144, 4096

// device is the shapes that sdk/layer gives kernels on a kind of device.
type device struct {
	name   string
	split  map[string]uint32
	width  uint32
	limits *program.Limits
}

var (
	software = device{name: "lavapipe", split: map[string]uint32{"W": 8, "L": 1, "R": 4, "K": 1, "RW": 32}, width: 16,
		limits: &program.Limits{Cpu: true, LoopLimit: 65535, WorkgroupBytes: 32 << 10}}
	nvidia = device{name: "NVIDIA", split: map[string]uint32{"W": 128, "L": 8, "R": 4, "K": 2, "RW": 512}, width: 64,
		limits: &program.Limits{WorkgroupBytes: 48 << 10}}
)

// dispatches are the largest dispatches of each kernel for a model on a device.
func dispatches(t *testing.T, m realShape, d device) []dispatched {
	one, err := NewAttnSplit(d.limits, int(m.heads), int(m.kvHeads), int(m.headDim))
	if err != nil {
		t.Fatal(err)
	}
	with := func(base map[string]uint32, more ...any) map[string]uint32 {
		out := map[string]uint32{}
		for k, v := range base {
			out[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i].(string)] = more[i+1].(uint32)
		}
		return out
	}
	width := map[string]uint32{"W": d.width}
	taps := max(2, m.convTaps)
	list := []dispatched{
		{"matvec", d.split, map[string]uint32{"units": m.widest / 32}, ""},
		{"pair", with(d.split, "RW", 2*d.split["RW"]), map[string]uint32{"units": m.hidden / 32}, ""},
		{"expert_pair", with(d.split, "RW", 2*d.split["RW"]), map[string]uint32{"units": m.hidden / 32}, ""},
		{"expert_matvec", d.split, map[string]uint32{"units": m.expertFF / 32}, ""},
		{"expert_down", d.split, map[string]uint32{"units": m.expertFF / 32, "top_k": m.topK}, ""},
		{"heads", with(width, "HD", m.headDim, "ROT", m.headDim), nil, ""},
		{"attn_split", one.Params, map[string]uint32{"window": m.window}, one.Choice},
		{"attn_merge", one.Merge, map[string]uint32{"window": m.window}, ""},
		{"shortconv", with(width, "TAPS", taps), nil, ""},
		{"conv", map[string]uint32{"TAPS": taps, "W": d.width}, nil, ""},
		{"delta_rule", map[string]uint32{"D": 128, "TB": 8, "W": 32}, nil, ""},
		{"gated_norm", width, map[string]uint32{"d": 128}, ""},
		{"topk", with(width, "E", m.experts, "K", m.topK, "GROUPS", max(1, m.groups), "USED", max(1, m.groups/2)), nil, ""},
		{"add", width, nil, ""},
		{"gate", width, nil, ""},
		{"scale", width, nil, ""},
		{"rmsnorm", width, map[string]uint32{"n": m.hidden}, ""},
	}
	top, err := NewTopN(d.limits, m.vocab, MaxTopN)
	if err != nil {
		t.Fatal(err)
	}
	c := map[string]uint32{"vocab": top.Vocab, "chunk": top.Chunk}
	list = append(list, chunkDispatches(m, d.limits)...)
	list = append(list, latentDispatches(d)...)
	list = append(list, dispatched{"resolve", map[string]uint32{"W": 64}, map[string]uint32{"top_k": m.topK, "last": 4800, "depth": 3}, ""})
	return append(list, dispatched{"topn", top.First.Params, c, ""}, dispatched{"topn_merge", top.Merge.Params, c, ""})
}

var docLoops = regexp.MustCompile(`loops ([\d,]+)`)

// thousands writes n as the documents do.
func thousands(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

type dispatched struct {
	kernel string
	params map[string]uint32
	consts map[string]uint32
	tile   string // choice "tile", "chunk" or "split"
}

// TestRealShapes: the worst case of loop iterations stays under lavapipe's limit for every kernel at the largest real
// shapes, and shared memory within the device's.
func TestRealShapes(t *testing.T) {
	worst, most, groupBytes := map[string]string{}, map[string]uint64{}, map[string]uint32{}
	for _, d := range []device{software, nvidia} {
		for _, m := range realShapes {
			covered := map[string]bool{}
			for _, x := range dispatches(t, m, d) {
				covered[x.kernel] = true
				for _, s := range specs(x.kernel, ggml.Q4_0) {
					if s.Choices["tile"]+s.Choices["chunk"]+s.Choices["split"] != x.tile {
						continue
					}
					s.Params = x.params
					n, shared := cost(t, s, x.consts)
					if limit := uint64(d.limits.LoopLimit); limit > 0 && n > limit {
						t.Errorf("%s on %s: %s: have %d loop iterations, want at most %d", m.name, d.name, s, n, limit)
					}
					if shared > d.limits.WorkgroupBytes {
						t.Errorf("%s on %s: %s: have %d bytes of shared memory, want at most %d", m.name, d.name, s, shared, d.limits.WorkgroupBytes)
					}
					groupBytes[x.kernel] = max(groupBytes[x.kernel], shared)
					if d.limits.Cpu && n > most[x.kernel] {
						most[x.kernel], worst[x.kernel] = n, fmt.Sprintf("%s: %s", m.name, s)
					}
				}
			}
			for _, name := range Names() {
				if !covered[name] {
					t.Fatalf("%s: no dispatch is checked", name)
				}
			}
		}
	}
	docs := docTables(t)
	for _, name := range Names() {
		if m := docLoops.FindStringSubmatch(docs[name]["limits"]); m != nil && m[1] != thousands(most[name]) {
			t.Errorf("docs/kernels.md: %s: have loops %s, want %s", name, m[1], thousands(most[name]))
		}
		t.Logf("%-12s at most %5d bytes of shared memory, %5d loop iterations on lavapipe (%s)", name, groupBytes[name], most[name], worst[name])
	}
}

// cost is the loop iterations and the shared memory of a dispatch at the longest context and chunk.
func cost(t *testing.T, s Spec, consts map[string]uint32) (iterations uint64, shared uint32) {
	t.Helper()
	k, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	d, err := program.ParseWGSL(k.Wgsl)
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, d.ConstantBytes)
	for _, f := range d.Constants {
		if v, ok := consts[f.Name]; ok {
			binary.LittleEndian.PutUint32(raw[f.Offset:], v)
		}
	}
	n, err := Iterations(k, program.StepUniform{T: longestChunk, S: longestContext, Chunk: longestChunk}, raw)
	if err != nil {
		t.Fatal(err)
	}
	return n, d.WorkgroupBytes
}

func TestIterationsRefuses(t *testing.T) {
	k, err := Build(Spec{Name: "topn"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Iterations(k, program.StepUniform{}, make([]byte, 4)); err == nil || !strings.Contains(err.Error(), "field chunk") {
		t.Errorf("short constants: have error %v", err)
	}
	k.Params["W"] = 0
	if _, err := Iterations(k, program.StepUniform{}, make([]byte, 16)); err == nil || !strings.Contains(err.Error(), "param W") {
		t.Errorf("W of 0: have error %v", err)
	}
	if _, err := Iterations(&program.Kernel{Ref: "own"}, program.StepUniform{}, nil); err == nil {
		t.Error("a kernel of a plugin's own: have no error")
	}
	if _, err := Iterations(&program.Kernel{Ref: "topn", Wgsl: "var<"}, program.StepUniform{}, nil); err == nil {
		t.Error("not WGSL: have no error")
	}
	if err := CheckLoops(&program.Kernel{Ref: "topn"}, program.StepUniform{}, nil, software.limits); err == nil {
		t.Error("no constants: have no error")
	}
}

func TestCheckLoops(t *testing.T) {
	k, err := Build(Spec{Name: "attn_merge", Params: map[string]uint32{"HD": 512, "W": 16}})
	if err != nil {
		t.Fatal(err)
	}
	step := program.StepUniform{S: 1 << 23}
	if err := CheckLoops(k, step, make([]byte, 16), software.limits); err == nil || !strings.Contains(err.Error(), "want at most 65535") {
		t.Errorf("eight million positions: have error %v", err)
	}
	if err := CheckLoops(k, step, make([]byte, 16), nvidia.limits); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

// TestLoopCounter: a kernel's source is read once, however many dispatches run it.
func TestLoopCounter(t *testing.T) {
	k, err := Build(Spec{Name: "attn_merge", Params: map[string]uint32{"HD": 512, "W": 16}})
	if err != nil {
		t.Fatal(err)
	}
	k.Wgsl += strings.Repeat("fn f() { var a = 1; a = a + 1; }\n", 20_000)
	var c LoopCounter
	step, start := program.StepUniform{S: 1000}, time.Now()
	want, err := Iterations(k, step, make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if n, err := c.Iterations(k, step, make([]byte, 16)); n != want || err != nil {
			t.Fatalf("have %d, %v, want %d", n, err, want)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Fatalf("takes more than %v", took)
		}
	}
}

func TestNewTopN(t *testing.T) {
	for _, c := range []struct{ vocab, n uint32 }{{0, 1}, {1 << 31, 1}, {100, 0}, {100, MaxTopN + 1}} {
		if _, err := NewTopN(nvidia.limits, c.vocab, c.n); err == nil {
			t.Errorf("vocab %d, n %d: have no error", c.vocab, c.n)
		}
	}
	if _, err := NewTopN(software.limits, 1<<30, MaxTopN); err == nil {
		t.Error("a vocabulary past the loop limit: have no error")
	}
	for _, d := range []device{software, nvidia} {
		for _, vocab := range []uint32{1, 511, 512, 513, 65536, 65537, 262144} {
			top, err := NewTopN(d.limits, vocab, 40)
			if err != nil {
				t.Fatal(err)
			}
			if n := top.Chunks(); n == 0 || n > 128 || (n-1)*top.Chunk >= vocab || n*top.Chunk < vocab {
				t.Errorf("vocab %d: have %d chunks of %d", vocab, n, top.Chunk)
			}
			first, merge := top.Grids(3)
			if first != [3]uint32{top.Chunks(), 3, 1} || merge != [3]uint32{1, 3, 1} {
				t.Errorf("vocab %d: have grids %v, %v", vocab, first, merge)
			}
		}
	}
}
