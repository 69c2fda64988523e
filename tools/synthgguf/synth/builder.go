package synth

import (
	"fmt"
	"math"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// builder puts a model together.
type builder struct {
	*Model
	Options
	s      Shape
	recipe recipe
	block  int // the layer that tensors are added to, or -1
}

func (b *builder) model() (*Model, error) {
	v := b.arch.vocabulary(b.s.Vocab)
	var err error
	if b.topics, err = newTopics(b.Seed, b.s.Vocab, b.Dwell, v.special()); err != nil {
		return nil, err
	}
	b.general()
	b.arch.keys(b)
	b.Metadata = append(b.Metadata, v.metadata()...)
	b.block = -1
	b.arch.build(b)
	return b.Model, nil
}

// blocks is block_count: the layers and, where the published model has one, the MTP block, stored or not.
func (b *builder) blocks() int {
	if b.arch.mtp {
		return b.s.Layers + 1
	}
	return b.s.Layers
}

// layer makes i the layer that the next tensors belong to.
func (b *builder) layer(i int) { b.block = i }

// full is a tensor's name in the file: within a layer with the layer's prefix.
func (b *builder) full(name string) string {
	if b.block < 0 {
		return name
	}
	return fmt.Sprintf("blk.%d.%s", b.block, name)
}

// add appends a tensor.
func (b *builder) add(name string, t ggml.Type, row func(dst []byte, row uint64), dims ...int) {
	tensor := Tensor{Name: b.full(name), Type: t, row: row}
	for _, d := range dims {
		tensor.Dims = append(tensor.Dims, uint64(d))
	}
	b.Tensors = append(b.Tensors, tensor)
}

// vector appends an F32 tensor of values that next gives; i counts within a row.
func (b *builder) vector(name string, next func(r *stream, i int) float64, dims ...int) {
	seed := seedOf(b.Seed, name, uint64(b.block+1))
	b.add(name, ggml.F32, func(dst []byte, row uint64) {
		r := &stream{seedOf(seed, "", row)}
		fillF32(dst, func(i int) float64 { return next(r, i) })
	}, dims...)
}

// norm appends a norm's weights around mean, by a tenth of it.
func (b *builder) norm(name string, mean float64, n int) {
	b.vector(name, func(r *stream, _ int) float64 { return mean * (1 + 0.1*r.gauss()) }, n)
}

// matrix appends a matrix whose product with unit activations has a root mean square of gain.
func (b *builder) matrix(name string, gain float64, dims ...int) {
	t := b.recipe.typeOf(b.arch, name, b.block, b.blocks(), uint64(dims[0]))
	seed := seedOf(b.Seed, name, uint64(b.block+1))
	s := newScales(t, gain/math.Sqrt(float64(dims[0])))
	b.add(name, t, func(dst []byte, row uint64) { fill(t, dst, &stream{seedOf(seed, "", row)}, s) }, dims...)
}

// writer appends a matrix whose output is what a block adds to the residual stream, g being the block's group. input is the
// root mean square of the matrix's input.
func (b *builder) writer(name string, g group, input float64, dims ...int) {
	t := b.recipe.typeOf(b.arch, name, b.block, b.blocks(), uint64(dims[0]))
	seed := seedOf(b.Seed, name, uint64(b.block+1))
	size := 1 / (input * math.Sqrt(float64(dims[0])))
	none, faint, strong := newScales(t, 0), newScales(t, weak*size), newScales(t, g.write*size)
	hidden := uint64(b.s.Hidden)
	b.add(name, t, func(dst []byte, row uint64) {
		s := strong
		switch g.writes(int(row % hidden)) {
		case 0:
			s = none
		case weak:
			s = faint
		}
		fill(t, dst, &stream{seedOf(seed, "", row)}, s)
	}, dims...)
}

// unit is the size of an embedding value in the file; it is 1 in the residual stream.
func (b *builder) unit() float64 { return 1 / b.arch.embedScale(b.s.Hidden) }

// table appends the embedding or the head.
func (b *builder) table(name string, unit float64) {
	t := b.recipe.typeOf(b.arch, name, b.block, b.blocks(), uint64(b.s.Hidden))
	b.add(name, t, b.topics.rows(name, t, b.s.Hidden, unit), b.s.Hidden, b.s.Vocab)
}

// finalNorm appends the norm before the head, whose table has values of size unit. It makes the tokens of the residual
// stream's topic the likely ones and the last token itself an unlikely one, and ranks the others by the rest, above all by
// what the mixers wrote. The signs there are at random, so that no token favours itself.
func (b *builder) finalNorm(name string, unit float64) {
	const (
		sigma  = 1.5        // the logits' spread within a topic
		topic  = 7 * sigma  // over the tokens of other topics
		itself = 12 * sigma // below the other tokens
		others = 0.5        // the weight of channels that are in no mixer's group
	)
	res := b.residual
	perRMS := res.rms(res.layers) / unit
	weights := make([]float64, b.s.Hidden)
	var sum float64 // of squares of weight times size
	for i := restAt; i < b.s.Hidden; i++ {
		var g group
		if weights[i] = others; res.mixed(i) {
			weights[i], g = 1, res.mixer(0)
		}
		sum += square(weights[i] * g.size(2*res.layers-1))
	}
	rank := sigma / math.Sqrt(sum)
	b.vector(name, func(r *stream, i int) float64 {
		w := perRMS * (1 + 0.05*r.gauss())
		sign := float64(r.next()&1)*2 - 1
		switch {
		case i < topicAt:
			return w * 0.01
		case i < tokenAt:
			return w * topic / (codeWidth * topicSize * topicSize)
		case i < restAt:
			return -w * itself / codeWidth
		}
		return w * rank * weights[i] * sign
	}, b.s.Hidden)
}
