package synth

import (
	"fmt"
	"slices"
	"strings"
)

// Shape is the size of a model, from public model configurations. Fields that an architecture has no use for are 0.
type Shape struct {
	Arch string // general.architecture
	Name string // of the size, within the architecture
	Real string // the published model; empty for one that exists only for tests

	Layers  int // without MTP blocks
	Hidden  int
	Vocab   int
	Context int // context_length

	// Every Period-th layer, beginning with layer Period-1, is full attention (bailingmoe3: MLA); FullAt lists them
	// instead where there is no period. The others are what the architecture has between: short convolutions, sliding
	// windows, Gated DeltaNet or KDA.
	Period int
	FullAt []int

	Heads, KVHeads, HeadDim int     // of full attention
	RopeBase                float64 // of full attention
	RopeDims                int     // 0: all of HeadDim
	Window                  int     // gemma4: of the sliding layers,
	WindowKV, WindowDim     int     // and their KV heads and head size
	KeyHeads, ValueHeads    int     // qwen35moe: DeltaNet's, of 128
	NoPE, ValueDim, Rank    int     // bailingmoe3: MLA's head sizes, and its latent's

	Lead   int // dense layers before the first with experts
	Dense  int // width of the dense feed-forward blocks
	Shared int // width of the shared expert

	Experts, TopK, ExpertFF int
	Groups, GroupsUsed      int // bailingmoe3: groups of experts
}

// stateDim is the head size of Gated DeltaNet and KDA.
const stateDim = 128

// shapes are the sizes that can be made. The tiny ones have the structure of their family and no more width than the
// codes of the embedding need (topics.go).
var shapes = []Shape{
	{
		Arch: "lfm2moe", Name: "24b-a2b", Real: "LFM2-24B-A2B",
		Layers: 40, Hidden: 2048, Vocab: 65536, Context: 128000, FullAt: []int{2, 6, 10, 14, 18, 22, 26, 30, 34, 38},
		Heads: 32, KVHeads: 8, HeadDim: 64, RopeBase: 1e7,
		Lead: 2, Dense: 11776, Experts: 64, TopK: 4, ExpertFF: 1536,
	},
	{
		Arch: "lfm2moe", Name: "8b-a1b", Real: "LFM2-8B-A1B",
		Layers: 24, Hidden: 2048, Vocab: 65536, Context: 128000, FullAt: []int{2, 6, 10, 14, 18, 21},
		Heads: 32, KVHeads: 8, HeadDim: 64, RopeBase: 1e6,
		Lead: 2, Dense: 7168, Experts: 32, TopK: 4, ExpertFF: 1792,
	},
	{
		Arch: "lfm2moe", Name: "tiny",
		Layers: 4, Hidden: 1024, Vocab: 4096, Context: 4096, FullAt: []int{1},
		Heads: 16, KVHeads: 4, HeadDim: 64, RopeBase: 1e6,
		Lead: 1, Dense: 512, Experts: 32, TopK: 4, ExpertFF: 256,
	},
	{
		Arch: "qwen35moe", Name: "35b-a3b", Real: "Qwen3.5-35B-A3B and Qwen3.6-35B-A3B",
		Layers: 40, Hidden: 2048, Vocab: 248320, Context: 262144, Period: 4,
		Heads: 16, KVHeads: 2, HeadDim: 256, RopeDims: 64, RopeBase: 1e7, KeyHeads: 16, ValueHeads: 32,
		Shared: 512, Experts: 256, TopK: 8, ExpertFF: 512,
	},
	{
		Arch: "qwen35moe", Name: "122b-a10b", Real: "Qwen3.5-122B-A10B",
		Layers: 48, Hidden: 3072, Vocab: 248320, Context: 262144, Period: 4,
		Heads: 32, KVHeads: 2, HeadDim: 256, RopeDims: 64, RopeBase: 1e7, KeyHeads: 16, ValueHeads: 64,
		Shared: 1024, Experts: 256, TopK: 8, ExpertFF: 1024,
	},
	{
		Arch: "qwen35moe", Name: "397b-a17b", Real: "Qwen3.5-397B-A17B",
		Layers: 60, Hidden: 4096, Vocab: 248320, Context: 262144, Period: 4,
		Heads: 32, KVHeads: 2, HeadDim: 256, RopeDims: 64, RopeBase: 1e7, KeyHeads: 16, ValueHeads: 64,
		Shared: 1024, Experts: 512, TopK: 10, ExpertFF: 1024,
	},
	{
		Arch: "qwen35moe", Name: "tiny",
		Layers: 4, Hidden: 1024, Vocab: 4096, Context: 4096, Period: 2,
		Heads: 4, KVHeads: 2, HeadDim: 64, RopeDims: 16, RopeBase: 1e7, KeyHeads: 2, ValueHeads: 4,
		Shared: 256, Experts: 32, TopK: 4, ExpertFF: 256,
	},
	{
		Arch: "gemma4", Name: "26b-a4b", Real: "Gemma 4 26B-A4B",
		Layers: 30, Hidden: 2816, Vocab: 262144, Context: 262144, Period: 6,
		Heads: 16, KVHeads: 2, HeadDim: 512, RopeBase: 1e6, Window: 1024, WindowKV: 8, WindowDim: 256,
		Dense: 2112, Experts: 128, TopK: 8, ExpertFF: 704,
	},
	{
		Arch: "gemma4", Name: "tiny",
		Layers: 4, Hidden: 1024, Vocab: 4096, Context: 4096, Period: 2,
		Heads: 4, KVHeads: 1, HeadDim: 128, RopeBase: 1e6, Window: 64, WindowKV: 2, WindowDim: 64,
		Dense: 256, Experts: 32, TopK: 4, ExpertFF: 256,
	},
	{
		Arch: "bailingmoe3", Name: "flash", Real: "Ling-3.0-flash, 124B-A5.1B",
		Layers: 42, Hidden: 2560, Vocab: 157184, Context: 262144, Period: 6,
		Heads: 32, RopeDims: 64, RopeBase: 6e6, NoPE: 128, ValueDim: 128, Rank: 512,
		Lead: 2, Dense: 6144, Shared: 768, Experts: 512, TopK: 8, ExpertFF: 768, Groups: 8, GroupsUsed: 4,
	},
	{
		Arch: "bailingmoe3", Name: "tiny",
		Layers: 4, Hidden: 1024, Vocab: 4096, Context: 4096, Period: 2,
		Heads: 2, RopeDims: 64, RopeBase: 6e6, NoPE: 128, ValueDim: 128, Rank: 256,
		Lead: 1, Dense: 512, Shared: 256, Experts: 32, TopK: 4, ExpertFF: 256, Groups: 4, GroupsUsed: 2,
	},
}

// Shapes are the sizes that can be made, by architecture.
func Shapes() []Shape { return slices.Clone(shapes) }

// full says whether layer i is full attention (MLA).
func (s *Shape) full(i int) bool {
	if s.FullAt != nil {
		return slices.Contains(s.FullAt, i)
	}
	return i%s.Period == s.Period-1
}

// shapeOf finds a shape, with its depth changed to layers where that is not 0: the first ones of the pattern.
func shapeOf(arch, name string, layers int) (Shape, error) {
	i := slices.IndexFunc(shapes, func(s Shape) bool { return s.Arch == arch && s.Name == name })
	if i < 0 {
		return Shape{}, fmt.Errorf("synth: have architecture %q and shape %q, want one of %s", arch, name, shapeNames())
	}
	s := shapes[i]
	if layers == 0 {
		return s, nil
	}
	if layers <= s.Lead || layers > s.Layers {
		return Shape{}, fmt.Errorf("synth: have %d layers, want %d to %d for %s %s: the dense lead and at least one with experts",
			layers, s.Lead+1, s.Layers, arch, name)
	}
	s.Layers = layers
	return s, nil
}

func shapeNames() string {
	var names []string
	for _, s := range shapes {
		names = append(names, s.Arch+" "+s.Name)
	}
	return strings.Join(names, ", ")
}
