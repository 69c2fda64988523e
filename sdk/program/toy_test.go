package program

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// toy is a model with made-up but real arithmetic, small enough to write down
// twice: as a program with references, and as plain loops over its tensors
// (toyModel). It has every class of buffer, both forms of the experts, a stack
// of two types, a rope, and records of two types.
type toy struct {
	*builder
	data map[string][]byte
}

// Dimensions of the toy.
const (
	toyHidden  = 32
	toyVocab   = 16
	toyExperts = 5
	toyTopK    = 2
	toyWindow  = 3
)

func newToy(t testing.TB, seed uint64) *toy {
	b := newBuilder(t, &Model{Architecture: "toy", Layers: 2, Hidden: toyHidden, Vocab: toyVocab, Experts: toyExperts, TopK: toyTopK, Context: 64, MoeLayers: []uint32{0, 1}})
	b.embed("embd", ggml.Q8_0, 0.5)
	b.matrix("out", ggml.F16, toyHidden, toyVocab)
	b.tensor("div", ggml.F32, toyHidden/2)
	b.rope(&Rope{Name: "rope", Pairs: toyHidden / 2, Base: 100, BaseDims: toyHidden, Divisor: "div", Magnitude: 1.5})
	b.scratch(toyHidden, "x", "h")
	b.scratch(toyExperts, "rl")
	b.scratch(toyTopK, "pw")
	b.scratch(toyTopK*toyHidden, "act", "rows")
	for l := range uint32(2) {
		p := func(s string) string { return string(rune('0'+l)) + "." + s }
		b.vector(p("scale"), toyHidden)
		b.tensor(p("r0"), ggml.F32, toyHidden, 2)
		b.tensor(p("r1"), ggml.Q4_0, toyHidden, 3)
		b.stack(p("router"), p("r0"), p("r1"))
		b.tensor(p("up"), ggml.Q4_1, toyHidden, toyHidden, toyExperts)
		b.tensor(p("down"), ggml.Q5_0, toyHidden, toyHidden, toyExperts)
		b.record(l, "up="+p("up"), "down="+p("down"))
		b.buffer(&Buffer{Name: p("kv"), Class: Class_KV, Elem: Elem_F16, PerPos: toyHidden})
		b.buffer(&Buffer{Name: p("ring"), Class: Class_RING, PerPos: toyHidden, Window: toyWindow})
		b.buffer(&Buffer{Name: p("state"), Class: Class_STATE, Fixed: toyHidden})
		b.section(Kind_TRUNK, l)
		b.rows(1, 0)
		b.run(p("mix"), "mix", "x, "+p("scale")+", rope:rope -> h, "+p("kv")+", "+p("ring")+", "+p("state"), grid(perRow(1, 1)), nil)
		b.run(p("r0"), "linear", "h, "+p("router")+" -> rl", grid(perRow(1, 1)), consts{"row0", 0, "rows", 2, "planes", b.planes(p("router"))})
		b.run(p("r1"), "linear", "h, "+p("router#1")+" -> rl", grid(perRow(1, 1)), consts{"row0", 2, "rows", 3, "planes", b.planes(p("router#1"))})
		b.run(p("topk"), "topk", "rl -> PICKS, pw", grid(perRow(1, 1)), nil)
		if l == 0 {
			b.section(Kind_GUESS, 0).GuessOf = 1
			b.rows(1, 0)
			b.run("guess", "guess", "rl -> GUESSES", grid(perRow(1, 1)), nil)
		}
		stride, up, down := int(b.records[l].Stride/16), b.partPlanes(l, "up"), b.partPlanes(l, "down")
		b.section(Kind_EXPERTS, l)
		b.rows(1, 1)
		b.run(p("up"), "expert", "h, bank, PICKS, RESIDENCY -> act", grid(groups(toyTopK)), consts{"type", int(ggml.Q4_1), "shared", 1, "stride", stride, "planes", up})
		b.run(p("down"), "expert", "act, bank, PICKS, RESIDENCY -> rows", grid(groups(toyTopK)), consts{"type", int(ggml.Q5_0), "shared", 0, "stride", stride, "planes", down})
		b.rows(2, 0)
		b.run(p("up"), "expert_tiles", "h, bank, RESIDENCY, PAIRS, TILES -> act", grid(perTile(1, 1)), consts{"type", int(ggml.Q4_1), "shared", 1, "stride", stride, "planes", up})
		b.run(p("down"), "expert_tiles", "act, bank, RESIDENCY, PAIRS, TILES -> rows", grid(perTile(1, 1)), consts{"type", int(ggml.Q5_0), "shared", 0, "stride", stride, "planes", down})
		b.section(Kind_COMBINE, l)
		b.rows(1, 0)
		b.run(p("sum"), "sum", "rows, pw -> x", grid(perRow(1, 1)), nil)
		b.prog.TileRows = 2
	}
	b.section(Kind_HEAD, 0)
	b.rows(1, 0)
	b.run("out", "head", "x, OUTS, out -> LOGITS", grid(perOut(1, 1)), consts{"planes", b.planes("out")})
	return &toy{b, randomTensors(b.header, rand.New(rand.NewPCG(seed, 0)))}
}

// randomTensors fills every tensor with blocks of moderate values: random bits
// for quants, small floats for scales.
func randomTensors(h *Header, r *rand.Rand) map[string][]byte {
	data := map[string][]byte{}
	for _, t := range h.Tensors {
		n := uint64(1)
		for _, d := range t.Dims {
			n *= d
		}
		typ := ggml.Type(t.Type)
		var raw []byte
		half := func() { raw = append(raw, byte(r.Uint32()), byte(0x20+r.Uint32()%8)) } // 2^-7 or so, above 0
		for range n / typ.BlockSize() {
			switch typ {
			case ggml.F32:
				bits := math.Float32bits(float32(0.5 + r.Float64()))
				raw = append(raw, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
				continue
			case ggml.F16:
				half()
				continue
			case ggml.Q4_1:
				half()
			}
			half()
			for uint64(len(raw))%typ.BlockBytes() != 0 {
				raw = append(raw, byte(r.Uint32()))
			}
		}
		data[t.Name] = raw
	}
	return data
}

func (m *toy) source() *TensorSource {
	return &TensorSource{Header: m.header, Plan: m.plan, Placed: m.placed, Records: m.records, Data: func(name string) ([]byte, error) { return m.data[name], nil }}
}

func (m *toy) refs(name string) Ref {
	return map[string]Ref{"mix": toyMix, "linear": toyLinear, "topk": toyTopKRef, "guess": toyGuess, "expert": toyExpert, "expert_tiles": toyTiles, "sum": toySum, "head": toyHead}[name]
}

// toyMix turns x by the rope, scales it, adds it to the caches and the state,
// and is the sum of all keys so far, those in the window once more, and the
// state.
func toyMix(c *Call) {
	const n = toyHidden
	x, scale, rope := c.Values("a0"), c.Values("v1"), c.Values("a2")
	h, ring, state := c.Values("y3"), c.Values("y5"), c.Values("y6")
	rows := int(toyWindow + c.Step.Chunk)
	for t := range int(c.Step.T) {
		pos := int(c.Step.Pos0) + t
		for i := range n {
			v := x[t*n+i] * rope[t*n+i] * scale[i]
			c.Store("y4", pos*n+i, v)
			ring[pos%rows*n+i] = v
			state[i] = 0.5*state[i] + v
			sum := state[i]
			for p := range pos + 1 {
				sum += c.Values("y4")[p*n+i]
				if p > pos-toyWindow {
					sum += ring[p%rows*n+i]
				}
			}
			h[t*n+i] = sum / float64(pos+1)
		}
	}
}

// toyDot is a row of a weight times x.
func toyDot(c *Call, slot, variable string, planes [4]uint32, row int, x []float64) (sum float64) {
	for i, w := range c.Unit(slot, variable, planes, uint64(row)) {
		sum += w * x[i]
	}
	return sum
}

func toyLinear(c *Call) {
	for t := range int(c.Grid[0]) {
		for row := range int(c.U32("rows")) {
			c.Store("y2", t*toyExperts+int(c.U32("row0"))+row, toyDot(c, "w1", "w1", c.Planes("planes"), row, c.Values("a0")[t*toyHidden:][:toyHidden]))
		}
	}
}

func toyTopKRef(c *Call) {
	for t := range int(c.Grid[0]) {
		for i, e := range toyPick(c.Values("a0")[t*toyExperts:][:toyExperts]) {
			c.Store("picks", t*toyTopK+i, float64(e))
			c.Store("y2", t*toyTopK+i, 1/(1+math.Abs(c.Values("a0")[t*toyExperts+e])))
		}
	}
}

// toyGuess guesses that the next layer picks as this one does.
func toyGuess(c *Call) {
	for t := range int(c.Grid[0]) {
		for i, e := range toyPick(c.Values("a0")[t*toyExperts:][:toyExperts]) {
			c.Store("guesses", t*toyTopK+i, float64(e))
		}
	}
}

// toyPick is the experts of the greatest values.
func toyPick(r []float64) []int {
	ids := make([]int, len(r))
	for i := range ids {
		ids[i] = i
	}
	slices.SortStableFunc(ids, func(a, b int) int {
		if r[a] > r[b] {
			return -1
		}
		return 1
	})
	return ids[:toyTopK]
}

// toyProduct writes one pick's row of a part's matrix times its input, which
// is the token's where shared, else the pick's own.
func toyProduct(c *Call, pick, expert int, out string) {
	c.kernel.Types["part"] = c.U32("type") // the toy has one kernel for both parts
	planes, in := c.Planes("planes"), pick
	for i := range planes {
		planes[i] += c.U32("stride") * uint32(c.Values("residency")[expert])
	}
	if c.U32("shared") == 1 {
		in = pick / toyTopK
	}
	for row := range toyHidden {
		c.Store(out, pick*toyHidden+row, math.Tanh(toyDot(c, "part", "bank", planes, row, c.Values("a0")[in*toyHidden:][:toyHidden])))
	}
}

func toyExpert(c *Call) {
	for pick := range int(c.Grid[0]) {
		toyProduct(c, pick, int(c.Values("picks")[pick]), "y4")
	}
}

func toyTiles(c *Call) {
	for g := range int(c.Grid[0]) {
		tile := c.Values("tiles")[4*g:]
		for i := range int(tile[2]) {
			toyProduct(c, int(c.Values("pairs")[int(tile[1])+i]), int(tile[0]), "y5")
		}
	}
}

func toySum(c *Call) {
	for t := range int(c.Grid[0]) {
		for i := range toyHidden {
			for k := range toyTopK {
				pick := t*toyTopK + k
				c.Values("y2")[t*toyHidden+i] += c.Values("a1")[pick] * c.Values("a0")[pick*toyHidden+i]
			}
		}
	}
}

func toyHead(c *Call) {
	for o := range int(c.Grid[0]) {
		x := c.Values("a0")[int(c.Values("outs")[o])*toyHidden:][:toyHidden]
		for row := range toyVocab {
			c.Store("logits", o*toyVocab+row, toyDot(c, "w2", "w2", c.Planes("planes"), row, x))
		}
	}
}
