package synth

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
)

// golden is the folder of reference files; without it the test is skipped, or fails in CI.
func golden(t *testing.T, name string) *gguf.File {
	t.Helper()
	dir := os.Getenv("SLUICE_GOLDEN")
	if dir == "" {
		dir = "../../../../shared/golden"
	}
	f, err := gguf.Open(filepath.Join(dir, name))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("no golden file: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// headerOnly reads as a file of which only the header was made.
type headerOnly struct{ header []byte }

func (h headerOnly) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(h.header)) {
		copy(p, h.header[off:])
	}
	return len(p), nil
}

// parsed is the model as core/gguf reads it.
func parsed(t *testing.T, o Options) (*Model, *gguf.File) {
	t.Helper()
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Read(headerOnly{m.Header()}, int64(m.size()), o.Arch+" "+o.Shape)
	if err != nil {
		t.Fatal(err)
	}
	return m, f
}

func (m *Model) size() uint64 {
	n := uint64(len(m.Header()))
	for i := range m.Tensors {
		n += Padded(m.Tensors[i].Size())
	}
	return n
}

var _ io.ReaderAt = headerOnly{}

var inBlock = regexp.MustCompile(`^blk\.(\d+)\.(.*)$`)

// kinds are the file's kinds of layers, by the names of their tensors: for each name its types and number of dimensions.
// The tensors outside layers are a kind, too.
func kinds(f *gguf.File) map[string]map[string][]string {
	blocks := map[string]map[string]string{}
	for _, tensor := range f.Tensors {
		block, name := "", tensor.Name
		if m := inBlock.FindStringSubmatch(name); m != nil {
			block, name = m[1], m[2]
		}
		if blocks[block] == nil {
			blocks[block] = map[string]string{}
		}
		blocks[block][name] = fmt.Sprintf("%v %dD", tensor.Type, len(tensor.Dims))
	}
	out := map[string]map[string][]string{}
	for _, tensors := range blocks {
		kind := strings.Join(slices.Sorted(maps.Keys(tensors)), " ")
		if out[kind] == nil {
			out[kind] = map[string][]string{}
		}
		for name, typ := range tensors {
			if !slices.Contains(out[kind][name], typ) {
				out[kind][name] = append(out[kind][name], typ)
				slices.Sort(out[kind][name])
			}
		}
	}
	return out
}

// goldenFiles are the reference files and what is made like them.
var goldenFiles = []struct {
	arch, file, typ string
	mtp             bool
}{
	{"lfm2moe", "q4_0", "q4_0", false},
	{"lfm2moe", "q4_k_m", "q4_k_m", false},
	{"qwen35moe", "q8_0", "q8_0", false},
	{"qwen35moe", "q4_k_m", "q4_k_m", false},
	{"gemma4", "q4_0", "q4_0", false},
	{"gemma4", "q4_k_m", "q4_k_m", false},
	{"bailingmoe3", "q4_k_m", "q4_k_m", false},
	{"bailingmoe3", "q8_0_mtp", "q8_0", true},
}

// Same keys, same kinds of layers, same tensors in each, same types.
func TestLikeGolden(t *testing.T) {
	for _, g := range goldenFiles {
		t.Run(g.arch+" "+g.file, func(t *testing.T) {
			want := golden(t, g.arch+"/"+g.file+".gguf")
			_, have := parsed(t, Options{Arch: g.arch, Shape: "tiny", Type: g.typ, MTP: g.mtp})
			sameKeys(t, have, want)
			haveKinds, wantKinds := kinds(have), kinds(want)
			if a, b := slices.Sorted(maps.Keys(haveKinds)), slices.Sorted(maps.Keys(wantKinds)); !slices.Equal(a, b) {
				t.Fatalf("have kinds of layers\n%s\nwant\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
			}
			for kind, tensors := range wantKinds {
				for name, types := range tensors {
					if made := haveKinds[kind][name]; !slices.Equal(made, types) && !within(made, types, g.arch, name) {
						t.Errorf("tensor %s of the layers with %.60s: have %q, want %q", name, kind, made, types)
					}
				}
			}
		})
	}
}

// within allows what depends on the number of layers: which down projections of Ling get more bits.
func within(have, want []string, arch, name string) bool {
	return arch == "bailingmoe3" && strings.HasPrefix(name, "ffn_down") && strings.HasPrefix(have[0], "Q") && strings.HasPrefix(want[0], "Q")
}

// sameKeys compares the keys and their types; the description is ours alone.
func sameKeys(t *testing.T, have, want *gguf.File) {
	t.Helper()
	types := func(f *gguf.File) map[string]string {
		out := map[string]string{}
		for _, key := range f.Metadata.Keys() {
			v, _ := f.Metadata.Value(key)
			out[key] = fmt.Sprintf("%T", v)
		}
		return out
	}
	made, wanted := types(have), types(want)
	delete(made, "general.description")
	for key, typ := range wanted {
		if made[key] != typ {
			t.Errorf("key %s: have type %q, want %q", key, made[key], typ)
		}
	}
	for key := range made {
		if wanted[key] == "" {
			t.Errorf("key %s: have it, want none", key)
		}
	}
}

// Published sizes: of the registry's files, where tensors are all of the file but the tokenizer (at most 20 MB), and of
// llama-bench, to three digits. Parameters as published.
func TestPublishedSizes(t *testing.T) {
	const gib = 1 << 30
	for _, test := range []struct {
		o      Options
		bytes  float64
		within float64
		params float64 // billions; 0: not published to three digits
	}{
		{Options{Arch: "lfm2moe", Shape: "24b-a2b", Type: "q4_0"}, 12.54 * gib, 0.005 * gib, 23.84},
		{Options{Arch: "lfm2moe", Shape: "8b-a1b", Type: "q4_0"}, 4.41 * gib, 0.005 * gib, 8.34},
		{Options{Arch: "qwen35moe", Shape: "35b-a3b", Type: "q8_0"}, 36903140320 - 10e6, 10e6, 34.66},
		{Options{Arch: "gemma4", Shape: "26b-a4b", Type: "q4_0"}, 14439363584 - 10e6, 10e6, 25.23},
		{Options{Arch: "bailingmoe3", Shape: "flash", Type: "q4_k_m", MTP: true}, 77010144672, 0.001 * 77e9, 0},
		{Options{Arch: "qwen35moe", Shape: "122b-a10b", Type: "q4_k_m"}, 0, 0, 122},
		{Options{Arch: "qwen35moe", Shape: "397b-a17b", Type: "q4_k_m"}, 0, 0, 397},
		{Options{Arch: "bailingmoe3", Shape: "flash", Type: "q4_k_m"}, 0, 0, 124},
	} {
		t.Run(test.o.Arch+" "+test.o.Shape, func(t *testing.T) {
			m, err := New(test.o)
			if err != nil {
				t.Fatal(err)
			}
			var bytes, params float64
			for i := range m.Tensors {
				bytes += float64(Padded(m.Tensors[i].Size()))
				params += float64(m.Tensors[i].Rows() * m.Tensors[i].Dims[0])
			}
			if test.bytes > 0 && math.Abs(bytes-test.bytes) > test.within {
				t.Errorf("have %.0f bytes of tensors, want %.0f within %.0f", bytes, test.bytes, test.within)
			}
			if test.params > 0 && math.Abs(params/1e9/test.params-1) > 0.005 {
				t.Errorf("have %.2f billion parameters, want %.2f", params/1e9, test.params)
			}
		})
	}
}

// Every shape in every type is a file that the reader takes, with all tensors where they should be.
func TestEveryShape(t *testing.T) {
	for _, s := range shapes {
		for _, r := range recipes {
			m, f := parsed(t, Options{Arch: s.Arch, Shape: s.Name, Type: r.name})
			if len(f.Tensors) != len(m.Tensors) || f.Size() != int64(m.size()) {
				t.Errorf("%s %s %s: the reader finds %d tensors in %d bytes, want %d in %d", s.Arch, s.Name, r.name, len(f.Tensors), f.Size(), len(m.Tensors), m.size())
			}
			for i, tensor := range f.Tensors {
				if tensor.Name != m.Tensors[i].Name || uint64(tensor.Size) != m.Tensors[i].Size() {
					t.Fatalf("%s %s %s: tensor %d: have %s of %d bytes, want %s of %d", s.Arch, s.Name, r.name, i, tensor.Name, tensor.Size, m.Tensors[i].Name, m.Tensors[i].Size())
				}
			}
		}
	}
}

// Fewer layers are the first ones of the pattern; what a layer holds does not change.
func TestFewerLayers(t *testing.T) {
	m, _ := parsed(t, Options{Arch: "gemma4", Shape: "26b-a4b", Type: "q4_0"})
	n, f := parsed(t, Options{Arch: "gemma4", Shape: "26b-a4b", Type: "q4_0", Layers: 7})
	if v, _ := f.Metadata.Value("gemma4.attention.sliding_window_pattern"); !slices.Equal(v.([]bool), []bool{true, true, true, true, true, false, true}) {
		t.Errorf("have pattern %v", v)
	}
	for i := range n.Tensors {
		if a, b := &n.Tensors[i], &m.Tensors[i]; a.Name != "output_norm.weight" && (a.Name != b.Name || a.Type != b.Type || !slices.Equal(a.Dims, b.Dims)) {
			t.Errorf("tensor %d: have %s %v %v, want %s %v %v", i, a.Name, a.Type, a.Dims, b.Name, b.Type, b.Dims)
		}
	}
}

// Without a full layer a file has no divisors of its angles, which llama.cpp would refuse as one tensor too many.
func TestGemmaRopes(t *testing.T) {
	for layers, want := range map[int]bool{5: false, 6: true} {
		m, _ := parsed(t, Options{Arch: "gemma4", Shape: "26b-a4b", Type: "q4_0", Layers: layers})
		if have := slices.ContainsFunc(m.Tensors, func(x Tensor) bool { return x.Name == "rope_freqs.weight" }); have != want {
			t.Errorf("%d layers: have rope_freqs.weight %t, want %t", layers, have, want)
		}
	}
}

func TestOptionErrors(t *testing.T) {
	good := Options{Arch: "lfm2moe", Shape: "tiny", Type: "q4_0"}
	for want, change := range map[string]func(*Options){
		`have architecture "llama"`:  func(o *Options) { o.Arch = "llama" },
		`shape "9b"`:                 func(o *Options) { o.Shape = "9b" },
		`have type "q3_k"`:           func(o *Options) { o.Type = "q3_k" },
		"have 1 layers, want 2 to 4": func(o *Options) { o.Layers = 1 },
		"have 5 layers, want 2 to 4": func(o *Options) { o.Layers = 5 },
		"have -1 layers":             func(o *Options) { o.Layers = -1 },
		"have locality 1.5":          func(o *Options) { o.Locality = 1.5 },
		"have locality NaN":          func(o *Options) { o.Locality = math.NaN() },
		"have skew -1":               func(o *Options) { o.Skew = -1 },
		"have dwell 1":               func(o *Options) { o.Dwell = 1 },
		"have --mtp":                 func(o *Options) { o.MTP = true },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("have error %v, want %q", err, want)
		}
	}
}

// All values of a tiny model are finite, and none is out of proportion.
func TestValues(t *testing.T) {
	for _, s := range shapes {
		if s.Name != "tiny" {
			continue
		}
		m, err := New(Options{Arch: s.Arch, Shape: s.Name, Type: "q4_k_m", Seed: freshSeed(t), Skew: 0.5, Locality: DefaultLocality, Dwell: DefaultDwell})
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Tensors {
			tensor := &m.Tensors[i]
			if tensor.Name == "rope_freqs.weight" {
				continue // 1 and 1e30
			}
			data := make([]byte, min(1024, tensor.Rows())*tensor.RowBytes())
			tensor.Fill(data, 0)
			mean, rms, most := moments(dequantized(t, tensor.Type, data))
			if math.IsNaN(mean) || rms == 0 || most > 20 {
				t.Errorf("%s %s: have mean %g, root mean square %g and a value of size %g, want finite ones up to 20", s.Arch, tensor.Name, mean, rms, most)
			}
		}
	}
}
