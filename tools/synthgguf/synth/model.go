// Package synth makes GGUF models out of nothing: the key set, tensors, types and shapes of a published model, or fewer of
// its layers, with random weights that keep activations finite and give routers a settable locality. It computes bytes
// and writes no file; the command above it does that.
//
// Start at New. How tokens, topics and routers hang together is said in topics.go, residual.go and router.go; one file per
// architecture lists its keys and tensors.
package synth

import (
	"fmt"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// Options choose a model.
type Options struct {
	Arch, Shape string // see Shapes
	Type        string // q4_0, q8_0 or q4_k_m
	Layers      int    // 0: all; else so many of the first
	MTP         bool   // store the multi-token prediction block, too, where the published file has one
	Seed        uint64
	// Skew is the size of an expert's own popularity, the same for all tokens, beside the 1 of what depends on the token: 0
	// for none (published traces show hardly any), 1 for a strong one.
	Skew float64
	// Locality is the share of the routers' input that lasts as long as a topic, 0 to 1; the rest is new with each token.
	Locality float64
	// Dwell is the mean length of a topic in tokens; 0 for topics without an end.
	Dwell int
}

// DefaultLocality and DefaultDwell give hit rates close to published traces (docs/benchmarks.md).
const (
	DefaultLocality = 0.55
	DefaultDwell    = 60
)

// Tensor is a tensor whose bytes are made on demand, row by row.
type Tensor struct {
	Name string
	Type ggml.Type
	Dims []uint64 // ne0 first

	row func(dst []byte, row uint64)
}

// Rows is the number of rows of ne0 values.
func (t *Tensor) Rows() uint64 {
	n := uint64(1)
	for _, d := range t.Dims[1:] {
		n *= d
	}
	return n
}

// RowBytes is the size of a row in bytes.
func (t *Tensor) RowBytes() uint64 {
	n, err := t.Type.RowBytes(t.Dims[0])
	if err != nil {
		panic(fmt.Sprintf("BUG: synth: tensor %s: %v", t.Name, err))
	}
	return n
}

// Size is the size of the tensor's data in bytes.
func (t *Tensor) Size() uint64 { return t.Rows() * t.RowBytes() }

// Fill writes rows from row on over dst, a whole number of them. It may be called from several goroutines at once; the
// bytes of a row depend on nothing but the model's options.
func (t *Tensor) Fill(dst []byte, row uint64) {
	for n := int(t.RowBytes()); len(dst) > 0; dst = dst[n:] {
		t.row(dst[:n:n], row)
		row++
	}
}

// Model is what a file is to hold.
type Model struct {
	Shape    Shape
	Metadata []KV
	Tensors  []Tensor

	arch     *arch
	topics   *topics
	residual residual
	routers  []router
}

// arch is what one architecture adds to the common part.
type arch struct {
	name  string
	head  string // the tensor that gives logits
	mtp   bool   // the published file has an MTP block
	mixed func(name string, layer, blocks int) ggml.Type
	keys  func(b *builder)
	build func(b *builder)
	// vocabulary is the family's tokenizer.
	vocabulary func(n int) vocabulary
	embedScale func(hidden int) float64 // the factor on embedding rows
	sigmoid    bool                     // the router's probabilities
}

var archs = []*arch{&lfm2moe, &qwen35moe, &gemma4, &bailingmoe3}

// New describes a model. It fails where the options name none.
func New(o Options) (*Model, error) {
	s, err := shapeOf(o.Arch, o.Shape, o.Layers)
	if err != nil {
		return nil, err
	}
	r, err := recipeOf(o.Type)
	if err != nil {
		return nil, err
	}
	switch {
	case !(o.Locality >= 0 && o.Locality <= 1):
		return nil, fmt.Errorf("synth: have locality %v, want 0 to 1", o.Locality)
	case !(o.Skew >= 0 && o.Skew <= 10):
		return nil, fmt.Errorf("synth: have skew %v, want 0 to 10", o.Skew)
	case o.Dwell < 0 || o.Dwell == 1:
		return nil, fmt.Errorf("synth: have dwell %d, want 2 tokens or more, or 0 for topics without an end", o.Dwell)
	}
	b := &builder{Options: o, s: s, recipe: r, Model: &Model{Shape: s, residual: residual{s.Hidden, s.Layers}}}
	for _, a := range archs {
		if a.name == s.Arch {
			b.arch = a
		}
	}
	if o.MTP && !b.arch.mtp {
		return nil, fmt.Errorf("synth: have --mtp, want it only for an architecture whose published file stores an MTP block: not %s", s.Arch)
	}
	return b.model()
}
