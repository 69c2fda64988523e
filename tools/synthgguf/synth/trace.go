package synth

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/sluicehost/sluice/sdk/ggml"
	"golang.org/x/sync/errgroup"
)

// Trace is a layer's picks along a simulated continuation.
type Trace struct {
	Layer   int
	Experts int
	Picks   [][]int32 // per token, the best first
	Guesses [][]int32 // per token, what the layer's router picks before the last blocks have written
}

// Trace simulates tokens of a continuation and what the routers of the given layers pick for them. The tensors of router,
// norm and embedding are the file's own bytes; stand-ins are the token sequence (each token one of those that the head
// favours, with equal chances) and what layers write to the residual stream (noise of the predicted size).
func (m *Model) Trace(ctx context.Context, seed uint64, tokens int, layers []int) ([]Trace, error) {
	if tokens < 1 {
		return nil, fmt.Errorf("synth: have %d tokens to trace, want 1 or more", tokens)
	}
	ids := m.topics.walk(seed, tokens)
	out := make([]Trace, len(layers))
	for n, layer := range layers {
		i := slices.IndexFunc(m.routers, func(r router) bool { return r.layer == layer && layer < m.Shape.Layers })
		if i < 0 {
			return nil, fmt.Errorf("synth: layer %d has no router", layer)
		}
		r := m.load(&m.routers[i])
		t := &out[n]
		*t = Trace{layer, m.Shape.Experts, make([][]int32, tokens), make([][]int32, tokens)}
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(runtime.GOMAXPROCS(0))
		for at, id := range ids {
			g.Go(func() error {
				t.Picks[at], t.Guesses[at] = r.route(m, id, &stream{seedOf(seed, "writes", uint64(layer)<<32|uint64(at))})
				return ctx.Err()
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// MoELayers are the layers with routed experts.
func (m *Model) MoELayers() []int {
	var out []int
	for _, r := range m.routers {
		if r.layer < m.Shape.Layers {
			out = append(out, r.layer)
		}
	}
	return out
}

// walk is a continuation: each token is one of the current topic's, all equally likely; after a bridge it is one of either
// topic's.
func (t *topics) walk(seed uint64, tokens int) []int {
	members := make([][]int, t.count) // bridges belong to both sides
	for id := range t.vocab {
		topic, other := t.of(id)
		if topic >= 0 {
			members[topic] = append(members[topic], id)
		}
		if other >= 0 {
			members[other] = append(members[other], id)
		}
	}
	r := stream{seedOf(seed, "walk", 0)}
	next := func(ids []int) int { return ids[r.next()%uint64(len(ids))] }
	out := []int{next(members[r.next()%uint64(t.count)])}
	for len(out) < tokens {
		last := out[len(out)-1]
		topic, other := t.of(last)
		if other >= 0 && r.next()&1 == 0 {
			topic = other
		}
		id := next(members[topic])
		if id != last { // the head keeps a token from following itself
			out = append(out, id)
		}
	}
	return out
}

// loaded is a router as numbers.
type loaded struct {
	*router
	weight []float32 // [experts][hidden], the factors multiplied in
	bias   []float32
	hidden int
}

func (m *Model) load(r *router) *loaded {
	l := &loaded{router: r, weight: m.values(r.weight, 0), hidden: m.Shape.Hidden}
	factor := m.values(r.factor, 0)
	for i := range l.weight {
		l.weight[i] *= factor[i%l.hidden] * float32(r.scale)
	}
	if r.bias != "" {
		l.bias = m.values(r.bias, 0)
	}
	return l
}

// values are a tensor's values from row on: all of an F32 tensor's, one row of another's.
func (m *Model) values(name string, row uint64) []float32 {
	i := slices.IndexFunc(m.Tensors, func(t Tensor) bool { return t.Name == name })
	t := &m.Tensors[i]
	rows := uint64(1)
	if t.Type == ggml.F32 {
		rows = t.Rows()
	}
	data := make([]byte, rows*t.RowBytes())
	t.Fill(data, row)
	out := make([]float32, rows*t.Dims[0])
	if err := ggml.DequantizeF32(t.Type, out, data); err != nil {
		panic(fmt.Sprintf("BUG: synth: tensor %s: %v", name, err))
	}
	return out
}

// route picks for one token, with what the layers wrote drawn from s; and picks what a guess made one layer earlier would.
func (l *loaded) route(m *Model, id int, s *stream) (picks, guess []int32) {
	x := m.values("token_embd.weight", uint64(id))
	scale := float32(m.arch.embedScale(m.Shape.Hidden))
	spread := weak * math.Sqrt(float64(2*l.layer+1))
	for j := range x {
		x[j] *= scale
		if j >= restAt {
			x[j] += float32(spread * s.gauss())
		}
	}
	logits := make([]float64, m.Shape.Experts)
	l.multiply(logits, x, 0, l.hidden)
	guess = l.pick(m, logits, x)
	for _, g := range m.residual.before(l.layer) {
		l.multiply(logits, x, g.at, -groupWidth)
		for j := g.at; j < g.at+groupWidth; j++ {
			x[j] += float32(g.write * s.gauss())
		}
		l.multiply(logits, x, g.at, groupWidth)
	}
	return l.pick(m, logits, x), guess
}

// multiply adds to each expert's logit what n channels of x from at on give; with n negative it takes that away.
func (l *loaded) multiply(logits []float64, x []float32, at, n int) {
	sign := 1.0
	if n < 0 {
		n, sign = -n, -1
	}
	for e := range logits {
		logits[e] += sign * float64(dot(l.weight[e*l.hidden+at:e*l.hidden+at+n], x[at:at+n]))
	}
}

// dot sums in four parts, which a CPU can add side by side. Widths are multiples of 4.
func dot(a, b []float32) float32 {
	var s [4]float32
	for ; len(a) >= 4 && len(b) >= 4; a, b = a[4:], b[4:] {
		s[0] += a[0] * b[0]
		s[1] += a[1] * b[1]
		s[2] += a[2] * b[2]
		s[3] += a[3] * b[3]
	}
	return s[0] + s[1] + s[2] + s[3]
}

// pick is the architecture's choice of experts by the logits of a residual stream x that is not normalized yet.
func (l *loaded) pick(m *Model, logits []float64, x []float32) []int32 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	norm := 1 / math.Sqrt(sum/float64(len(x)))
	scores := make([]float64, len(logits))
	for e, v := range logits {
		scores[e] = v * norm
		if l.sigmoid {
			scores[e] = 1 / (1 + math.Exp(-scores[e]))
		}
		if l.bias != nil {
			scores[e] += float64(l.bias[e])
		}
	}
	if m.Shape.Groups > 1 {
		dropGroups(scores, m.Shape.Groups, m.Shape.GroupsUsed)
	}
	return best(scores, m.Shape.TopK)
}

// best are the indices of the k largest scores, the largest first; of equal ones the lower index.
func best(scores []float64, k int) []int32 {
	ids := make([]int32, len(scores))
	for i := range ids {
		ids[i] = int32(i)
	}
	slices.SortStableFunc(ids, func(a, b int32) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	return ids[:k]
}

// dropGroups leaves the groups whose two best scores have the largest sums.
func dropGroups(scores []float64, groups, used int) {
	per := len(scores) / groups
	sums := make([]float64, groups)
	for g := range sums {
		members := scores[g*per : (g+1)*per]
		for _, i := range best(members, 2) {
			sums[g] += members[i]
		}
	}
	for _, g := range best(sums, groups)[used:] {
		for i := range per {
			scores[int(g)*per+i] = math.Inf(-1)
		}
	}
}
