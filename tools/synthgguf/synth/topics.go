package synth

import (
	"fmt"
	"math/bits"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// A row of the embedding has four parts, and each part of the residual stream keeps to its channels, since no layer writes
// outside the last:
//
//	[  0,256)  constant  the same for every token: where the routers find the experts' popularity (skew)
//	[256,512)  topic     the same for all tokens of a topic: the slow part of the routers' input
//	[512,768)  token     a token's own: its fast part; the head subtracts it, so that no token follows itself
//	[768,  H)  rest      random, and what the layers write to (residual.go)
//
// A topic is a range of ids. The head favours the tokens of the topic that is in the residual stream, so a continuation
// stays in its topic. One token in Dwell is a bridge: it carries its own topic and one other, half of its continuations go
// over, and so a topic lasts Dwell tokens in the mean whatever the sampler. No two bridges join the same topics: they would
// follow each other for ever.
const (
	constantAt = 0
	topicAt    = codeWidth
	tokenAt    = 2 * codeWidth
	restAt     = 3 * codeWidth
)

// The sizes of constant and topic, in units of the other values: small, since what lasts that long would otherwise show in
// everything that layers compute. Norms and routers make up for it.
const (
	constantSize = 0.25
	topicSize    = 0.5
)

// topics says which tokens belong together.
type topics struct {
	seed   uint64
	vocab  int
	count  int
	dwell  int
	skip   []bool // by id: special tokens, which belong to no topic
	offset []int  // from a topic to the other side of its n-th bridge
}

// wantTopics is the number of topics where the vocabulary is large enough: as many as a code can tell apart with ease.
const wantTopics = 256

func newTopics(seed uint64, vocab, dwell int, special []bool) (*topics, error) {
	count := min(wantTopics, vocab/128)
	if count < 8 {
		return nil, fmt.Errorf("synth: have a vocabulary of %d, want 1024 or more", vocab)
	}
	t := &topics{seed: seed, vocab: vocab, count: count, dwell: dwell, skip: special}
	// Distinct and below half the circle: then no pair of topics comes twice.
	for i := 1; i < (count+1)/2; i++ {
		t.offset = append(t.offset, i)
	}
	r := stream{seedOf(seed, "bridges", 0)}
	for i := len(t.offset) - 1; i > 0; i-- {
		j := int(r.next() % uint64(i+1))
		t.offset[i], t.offset[j] = t.offset[j], t.offset[i]
	}
	return t, nil
}

// of is the topic of a token, and the other topic of a bridge or -1. Both are -1 for special tokens.
func (t *topics) of(id int) (topic, other int) {
	if t.skip[id] {
		return -1, -1
	}
	topic = id * t.count / t.vocab
	if t.dwell == 0 {
		return topic, -1
	}
	n := id - t.first(topic)
	bridge := n / t.dwell
	if n%t.dwell != t.dwell/2 || bridge >= len(t.offset) {
		return topic, -1
	}
	return topic, (topic + t.offset[bridge]) % t.count
}

// code is what a token carries in its topic channels.
func (t *topics) code(id int) code {
	topic, other := t.of(id)
	if topic < 0 {
		return signs(seedOf(t.seed, "special", uint64(id)))
	}
	c := signs(seedOf(t.seed, "topic", uint64(topic)))
	if other >= 0 {
		c = c.plus(signs(seedOf(t.seed, "topic", uint64(other))))
	}
	return c
}

// own is what a token carries in its token channels. Within a topic these are rows of a Walsh matrix, all at right angles
// to each other: that the head subtracts the last token's then changes nothing between the others.
func (t *topics) own(id int) code {
	topic, _ := t.of(id)
	if topic < 0 {
		return signs(seedOf(t.seed, "own", uint64(id)))
	}
	c := signs(seedOf(t.seed, "mask", uint64(topic)))
	n := uint8(id - t.first(topic))
	for i := range c {
		if bits.OnesCount8(n&uint8(i))%2 == 1 {
			c[i] = -c[i]
		}
	}
	return c
}

// first is the first id of a topic.
func (t *topics) first(topic int) int { return (topic*t.vocab + t.count - 1) / t.count }

// rows makes the rows of a table of tokens, the embedding or the head, of the given type and width: codes of size unit and a
// random rest of the same root mean square. Two tables of one seed have the same codes.
func (t *topics) rows(name string, typ ggml.Type, width int, unit float64) func(dst []byte, row uint64) {
	size := int(codeWidth / typ.BlockSize() * typ.BlockBytes())
	constant := make([]byte, size)
	c := signs(seedOf(t.seed, "constant", 0))
	c.pack(typ, constant, constantSize*unit)
	plain := make([][]byte, t.count)
	for k := range plain {
		plain[k] = make([]byte, size)
		c := signs(seedOf(t.seed, "topic", uint64(k)))
		c.pack(typ, plain[k], topicSize*unit)
	}
	s := newScales(typ, unit)
	return func(dst []byte, row uint64) {
		id := int(row)
		copy(dst, constant)
		if topic, other := t.of(id); topic >= 0 && other < 0 {
			copy(dst[size:], plain[topic])
		} else {
			c := t.code(id)
			c.pack(typ, dst[size:], topicSize*unit)
		}
		own := t.own(id)
		own.pack(typ, dst[2*size:], unit)
		fill(typ, dst[3*size:], &stream{seedOf(t.seed, name, row)}, s)
	}
}

// constantCode is the code of the constant channels.
func (t *topics) constantCode() code { return signs(seedOf(t.seed, "constant", 0)) }
