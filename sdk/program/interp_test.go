package program

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// toyModel is the toy as plain loops over its dequantized tensors: the logits
// after each token.
func toyModel(t *testing.T, m *toy, tokens []uint32) [][]float64 {
	t.Helper()
	w := map[string][]float64{}
	for _, x := range m.header.Tensors {
		n := uint64(1)
		for _, d := range x.Dims {
			n *= d
		}
		w[x.Name] = make([]float64, n)
		if err := ggml.Dequantize(ggml.Type(x.Type), w[x.Name], m.data[x.Name]); err != nil {
			t.Fatal(err)
		}
	}
	matvec := func(w, x []float64) []float64 {
		y := make([]float64, len(w)/len(x))
		for i, v := range w {
			y[i/len(x)] += v * x[i%len(x)]
		}
		return y
	}
	const n = toyHidden
	var exact, halves, state [2][][]float64 // by layer and position
	var logits [][]float64
	for pos, token := range tokens {
		x := make([]float64, n)
		for i, v := range w["embd"][int(token)*n:][:n] {
			x[i] = float64(float32(v * 0.5))
		}
		for l := range 2 {
			p := fmt.Sprintf("%d.", l)
			key, half, st, h := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
			for i := range key {
				angle := float64(pos) * math.Pow(100, -2*float64(i%(n/2))/n) / w["div"][i%(n/2)]
				turn := math.Cos(angle)
				if i >= n/2 {
					turn = math.Sin(angle)
				}
				key[i] = x[i] * float64(float32(1.5*turn)) * w[p+"scale"][i]
				half[i], st[i] = ggml.RoundF16(key[i]), key[i]
				if pos > 0 {
					st[i] += 0.5 * state[l][pos-1][i]
				}
			}
			exact[l], halves[l], state[l] = append(exact[l], key), append(halves[l], half), append(state[l], st)
			for i := range h {
				h[i] = st[i]
				for q := range pos + 1 {
					h[i] += halves[l][q][i]
					if pos-q < toyWindow {
						h[i] += exact[l][q][i]
					}
				}
				h[i] /= float64(pos + 1)
			}
			r := append(matvec(w[p+"r0"], h), matvec(w[p+"r1"], h)...)
			for _, e := range toyPick(r) {
				row := h
				for _, part := range []string{"up", "down"} {
					row = matvec(w[p+part][e*n*n:][:n*n], row)
					for i := range row {
						row[i] = math.Tanh(row[i])
					}
				}
				for i := range x {
					x[i] += row[i] / (1 + math.Abs(r[e]))
				}
			}
		}
		logits = append(logits, matvec(w["out"], x))
	}
	return logits
}

func near(a, b []float64) bool {
	for i := range a {
		if !(math.Abs(a[i]-b[i]) <= 1e-9*(1+math.Abs(b[i]))) {
			return false
		}
	}
	return len(a) == len(b)
}

// Whatever the chunks and the slots, the interpreter is the model.
func TestInterpreter(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := newToy(t, seed)
	if err := m.validatePlan(); err != nil {
		t.Fatal(err)
	}
	tokens := []uint32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}
	want := toyModel(t, m, tokens)
	for _, chunks := range [][]int{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {8, 3}, {4, 1, 6}, {2, 2, 2, 2, 2, 1}} {
		for _, slots := range []int{0, 2, 3} {
			t.Run(fmt.Sprintf("chunks %v slots %d", chunks, slots), func(t *testing.T) {
				in, err := NewInterpreter(m.plan, m.placed, m.records, m.prog, m.source(), m.refs, Options{Chunk: 8, Outs: 8, Context: 16, Slots: slots})
				if err != nil {
					t.Fatal(err)
				}
				s, at := in.NewSession(), 0
				for _, n := range chunks {
					var outs []uint32
					for i := range n {
						outs = append(outs, uint32(n-1-i))
					}
					have, err := s.Step(tokens[at:at+n], outs)
					if err != nil {
						t.Fatal(err)
					}
					for i, row := range outs {
						if !near(have[i], want[at+int(row)]) {
							t.Fatalf("logits after token %d:\nhave %v\nwant %v", at+int(row), have[i], want[at+int(row)])
						}
					}
					at += n
				}
			})
		}
	}
}

func TestInterpreterSessions(t *testing.T) {
	m := newToy(t, 1)
	in, err := NewInterpreter(m.plan, m.placed, m.records, m.prog, m.source(), m.refs, Options{Chunk: 4, Outs: 1, Context: 16})
	if err != nil {
		t.Fatal(err)
	}
	step := func(s *Session, tokens ...uint32) []float64 {
		t.Helper()
		logits, err := s.Step(tokens, []uint32{uint32(len(tokens) - 1)})
		if err != nil {
			t.Fatal(err)
		}
		return logits[0]
	}
	a, b := in.NewSession(), in.NewSession()
	step(a, 1, 2, 3)
	step(b, 7, 7)
	want := step(a, 4)
	step(b, 8)
	a.Reset()
	if a.Pos() != 0 {
		t.Errorf("position after reset: have %d", a.Pos())
	}
	step(a, 1, 2, 3)
	if have := step(a, 4); !near(have, want) {
		t.Errorf("after a reset, beside another session: have %v, want %v", have, want)
	}
	if logits, err := a.Step([]uint32{1, 2}, nil); err != nil || len(logits) != 0 {
		t.Errorf("a step without outputs: have %v, %v", logits, err)
	}
}

func TestInterpreterTraces(t *testing.T) {
	m := newToy(t, 1)
	var lines []string
	in, err := NewInterpreter(m.plan, m.placed, m.records, m.prog, m.source(), m.refs, Options{Chunk: 4, Outs: 1, Context: 16, Slots: 2, Trace: func(x *Trace) {
		line := fmt.Sprintf("%v %d %s %s ->", x.Section.Kind, x.Wave, x.Dispatch.Label, x.Kernel.Name)
		for _, o := range x.Outputs {
			line += " " + o.Name
			if x.Section.Kind != Kind_EXPERTS && math.IsNaN(o.Memory.Values[0]) {
				t.Errorf("%s: nothing was written to %s", line, o.Name)
			}
		}
		lines = append(lines, line)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.NewSession().Step([]uint32{1, 2, 3, 4}, []uint32{0}); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{"TRUNK 0 0.mix mix -> h 0.kv 0.ring 0.state\n", "TRUNK 0 0.topk topk -> PICKS pw\nGUESS 0 guess guess -> GUESSES\nEXPERTS 0 0.up expert_tiles -> act\n", "EXPERTS 1 0.down expert_tiles -> rows\n", "HEAD 0 out head[f16] -> LOGITS"} {
		if !strings.Contains(all, want) {
			t.Errorf("have trace\n%s\nwant %q in it", all, want)
		}
	}
}

// What a guess wrote is gone after it, for the host may leave it out. The
// validator can't tell that the sum adds to x rather than writes it anew.
func TestInterpreterForgetsGuesses(t *testing.T) {
	m := newToy(t, 1)
	m.current = m.sect(Kind_GUESS, 0)
	m.variant = m.current.Variants[0]
	m.run("touch", "touch", "rl -> x", grid(perRow(1, 1)), nil)
	refs := func(name string) Ref {
		if name == "touch" {
			return func(*Call) {}
		}
		return m.refs(name)
	}
	in, err := NewInterpreter(m.plan, m.placed, m.records, m.prog, m.source(), refs, Options{Chunk: 4, Outs: 1, Context: 8})
	if err != nil {
		t.Fatal(err)
	}
	logits, err := in.NewSession().Step([]uint32{1}, []uint32{0})
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(logits[0][0]) {
		t.Errorf("have logits %v, want NaN", logits[0])
	}
}

func TestInterpreterRefuses(t *testing.T) {
	good := func() (*toy, Options) { return newToy(t, 1), Options{Chunk: 4, Outs: 1, Context: 8} }
	for name, c := range map[string]struct {
		change func(m *toy, o *Options)
		want   string
	}{
		"an invalid program":      {func(m *toy, _ *Options) { m.prog.Input = 99 }, "input: have buffer 99"},
		"a kernel without ref":    {func(m *toy, _ *Options) { m.kern("topk").Ref = "none" }, "kernel topk: there is no reference none"},
		"an own kernel without":   {func(m *toy, _ *Options) { m.kern("topk").Ref, m.kern("topk").Name = "", "own" }, "kernel own: there is no reference own"},
		"a missing divisor":       {func(m *toy, _ *Options) { m.header.Tensors = m.header.Tensors[:2] }, "rope rope: tensor div is not in the file"},
		"a short divisor":         {func(m *toy, _ *Options) { m.find("div").Dims[0] = 8; m.data["div"] = m.data["div"][:32] }, "divisor div: have 8 values, want 16"},
		"a truncated divisor":     {func(m *toy, _ *Options) { m.data["div"] = m.data["div"][:32] }, "rope rope: ggml"},
		"bounds that are missing": {func(_ *toy, o *Options) { o.Context = 0 }, "bounds: have context 0"},
	} {
		t.Run(name, func(t *testing.T) {
			m, o := good()
			c.change(m, &o)
			_, err := NewInterpreter(m.plan, m.placed, m.records, m.prog, m.source(), m.refs, o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestStepRefuses(t *testing.T) {
	one := []uint32{1}
	for name, c := range map[string]struct {
		change func(m *toy)
		refs   map[string]Ref
		tokens []uint32
		outs   []uint32
		want   string
		broken bool
	}{
		"no tokens":              {nil, nil, nil, nil, "have 0 tokens, want 1 to 4", false},
		"more than a chunk":      {nil, nil, make([]uint32, 5), nil, "have 5 tokens, want 1 to 4", false},
		"too many outputs":       {nil, nil, one, []uint32{0, 0}, "have 2 output rows, want at most 1", false},
		"output past the tokens": {nil, nil, one, []uint32{1}, "have output row 1, want below 1", false},
		"past the context":       {nil, nil, []uint32{1, 2, 3, 4}, nil, "have 4 tokens at position 2, want them within the context of 5", false},
		"unknown token":          {nil, nil, []uint32{99}, nil, "embedding of token 99: tensor embd has no row 99", true},
		"missing band":           {func(m *toy) { m.data["0.r1"] = nil }, nil, one, nil, "weight 0.router: tensor 0.r1: have 0 bytes", true},
		"missing vector":         {func(m *toy) { m.data["0.scale"] = nil }, nil, one, nil, "weight 0.scale: ggml", true},
		"missing expert":         {func(m *toy) { m.data["1.up"] = nil }, nil, one, nil, "experts of layer 1: tensor 1.up: have 0 bytes", true},
		"index out of range":     {nil, map[string]Ref{"mix": func(c *Call) { _ = c.Values("y3")[1<<20] }}, one, nil, "kernel mix, dispatch 0.mix of TRUNK of layer 0: the reference panics in step {T:1 Pos0:2", true},
		"unknown constant":       {nil, map[string]Ref{"mix": func(c *Call) { c.U32("none") }}, one, nil, "kernel mix has no constant none", true},
		"unknown param":          {nil, map[string]Ref{"mix": func(c *Call) { c.Param("none") }}, one, nil, "kernel mix has no param none", true},
		"picks not written":      {nil, map[string]Ref{"topk": func(*Call) {}}, one, nil, "PICKS of layer 0: row 0, pick 0: have expert NaN, want ids below 5", true},
		"pick of no expert":      {nil, map[string]Ref{"topk": func(c *Call) { c.Store("picks", 0, 5) }}, one, nil, "have expert 5, want ids below 5", true},
		"pick of half":           {nil, map[string]Ref{"topk": func(c *Call) { c.Store("picks", 0, 0.5) }}, one, nil, "have expert 0.5", true},
		"guess of no expert":     {nil, map[string]Ref{"guess": func(c *Call) { c.Store("guesses", 0, 5) }}, one, nil, "GUESSES of layer 0: row 0, pick 0: have expert 5, want ids below 5", true},
		"pick twice":             {nil, map[string]Ref{"topk": func(c *Call) { c.Store("picks", 0, 1); c.Store("picks", 1, 1) }}, one, nil, "row 0, pick 1: have expert 1, want ids below 5, each once", true},
	} {
		t.Run(name, func(t *testing.T) {
			m, ready := newToy(t, 1), false
			refs := func(name string) Ref {
				whole := m.refs(name)
				return func(call *Call) {
					if own := c.refs[name]; own != nil && ready {
						own(call)
					} else {
						whole(call)
					}
				}
			}
			in, err := NewInterpreter(m.plan, m.placed, m.records, m.prog, m.source(), refs, Options{Chunk: 4, Outs: 1, Context: 5})
			if err != nil {
				t.Fatal(err)
			}
			s := in.NewSession()
			if c.change == nil { // else it would read the weights before they change
				if _, err := s.Step([]uint32{1, 2}, nil); err != nil {
					t.Fatal(err)
				}
			} else {
				c.change(m)
			}
			ready = true
			if _, err := s.Step(c.tokens, c.outs); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have error %v, want one with %q", err, c.want)
			}
			ready = false
			if _, err := s.Step(one, nil); errors.Is(err, errBroken) != c.broken {
				t.Errorf("the next step: have %v, want broken %v", err, c.broken)
			}
		})
	}
}

// One token's experts must all be resident at once; a chunk's need not.
func TestStepNeedsSlots(t *testing.T) {
	m := newToy(t, 1)
	for _, l := range []uint32{0, 1} {
		m.sect(Kind_EXPERTS, l).Variants[0].Max = 4
		m.sect(Kind_EXPERTS, l).Variants[1].Min = 5
	}
	few := func(name string) Ref {
		if name != "topk" {
			return m.refs(name)
		}
		return func(c *Call) {
			for i := range int(c.Step.T) * toyTopK {
				c.Store("picks", i, float64(i%toyExperts))
				c.Store("y2", i, 1)
			}
		}
	}
	in, err := NewInterpreter(m.plan, m.placed, m.records, m.prog, m.source(), few, Options{Chunk: 4, Outs: 1, Context: 8, Slots: 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.NewSession().Step([]uint32{1}, nil); err != nil {
		t.Error(err)
	}
	_, err = in.NewSession().Step([]uint32{1, 2}, nil)
	if err == nil || !strings.Contains(err.Error(), "2 tokens pick 4 experts, but there are 3 slots") {
		t.Errorf("have error %v, want one about slots", err)
	}
}
