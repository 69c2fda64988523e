package layer

import "github.com/sluicehost/sluice/sdk/program"

// Value is what a layer passes to the next: rows of activations, one per token.
// It is a name for a buffer yet to be chosen.
type Value struct {
	width int
	name  string
	shape *program.Buffer // elements and class; its name is chosen with the buffer
	norm  *norm           // set where the value is an RMS norm that its readers apply themselves
	ops   []*op           // the operations that write it and could add a residual
	sum   *op             // the operation that writes it as a sum and could multiply that by a tensor's value
	fixed string          // a buffer of its own that every regime shares
	reads int
	made  int // the number of the operation that wrote it last
	first int // positions of the operations that first write and last touch it
	last  int
}

// norm is an RMS norm that has not been computed anywhere.
type norm struct {
	of     *Value
	weight *program.Binding
	label  string // its tensor's
	eps    float64
	plain  *Value // where it was computed after all
}

// Width is the number of values per token.
func (v *Value) Width() int { return v.width }

// scratch makes a value of width f32 per token.
func (e *Encoder) scratch(name string, width int) *Value {
	return e.scratchShape(name, width, &program.Buffer{PerRow: uint64(width)})
}

func (e *Encoder) scratchShape(name string, width int, shape *program.Buffer) *Value {
	return &Value{width: width, name: name, shape: shape, first: -1}
}

// session names a buffer that each session has its own of.
func (e *Encoder) session(b *program.Buffer) *program.Binding {
	return e.out.namedBuffer(b)
}

// Embed is the tokens' embedding rows, times scale. The host looks them up itself.
func (e *Encoder) Embed(tensor string, scale float64) *Value {
	hidden := int(e.source.model().GetHidden())
	t := e.source.tensor(tensor)
	switch {
	case t == nil:
		e.fail("tensor %s is missing: want [%d, %d]", tensor, hidden, e.source.model().GetVocab())
	case len(t.Dims) != 2 || t.Dims[0] != uint64(hidden) || t.Dims[1] != uint64(e.source.model().GetVocab()):
		e.fail("tensor %s: have shape %s, want [%d, %d]", tensor, shapeOf(t), hidden, e.source.model().GetVocab())
	case e.rowsOf(t, 1):
		e.source.embed(&program.Embed{Tensor: tensor, Scale: float32(scale)})
	}
	v := e.scratch("input", hidden)
	v.fixed = "input"
	return v
}

// RMSNorm is x / sqrt(mean(x²) + eps) · weight, applied by whoever reads it.
func (l *Layer) RMSNorm(x *Value, weight string, eps float64) *Value {
	return l.Encoder.rmsNorm(x, l.prefix+weight, eps)
}

// FinalNorm is the RMS norm before the head; the first of the tensors that the file has is its weight.
func (e *Encoder) FinalNorm(x *Value, eps float64, weights ...string) *Value {
	return e.rmsNorm(x, e.First(weights...), eps)
}

func (e *Encoder) rmsNorm(x *Value, weight string, eps float64) *Value {
	x = e.plain(x)
	return &Value{width: x.width, name: "norm", first: -1, norm: &norm{of: x, weight: e.vector(x.width, weight), label: stackLabel([]string{weight}), eps: eps}}
}

// plain computes a lazy norm for readers that can't apply it.
func (e *Encoder) plain(x *Value) *Value {
	if x.norm == nil {
		return x
	}
	if x.norm.plain != nil {
		return x.norm.plain
	}
	y := e.scratch("norm", x.width)
	x.norm.plain = y
	if !e.joinNorm(x.norm, y) {
		o := x.norm.op(x.width, y, e.width(256))
		e.emit(o)
		e.section.normed = computed{o, x.norm}
	}
	return y
}

// computed is a norm that a section computes.
type computed struct {
	op   *op
	norm *norm
}

// joinNorm lets the last norm that this section computes write y too, if it is one of the same value, by the weight of m: what
// reads a state by several norms spares dispatches. Many tokens don't wait for dispatches, and results would live longer.
func (e *Encoder) joinNorm(m *norm, y *Value) bool {
	if e.section == nil || e.many() {
		return false
	}
	last := e.section.normed
	if last.op == nil || last.norm.of != m.of || last.norm.eps != m.eps {
		return false
	}
	more := map[string][2]string{"none": {"one", "1"}, "one": {"two", "2"}}[last.op.spec.Choices["more"]]
	if more[0] == "" {
		return false
	}
	last.op.spec.choose("more", more[0])
	last.op.binds["nw"+more[1]], last.op.binds["y"+more[1]] = at(m.weight), write(y)
	last.op.label += stackLabel([]string{last.norm.label, m.label})[len(last.norm.label):]
	y.made = last.op.number
	return true
}

// op computes the norm of rows of n values into y, in workgroups of w.
func (m *norm) op(n int, y *Value, w uint32) *op {
	kernel, _ := spec("rmsnorm").choose("out", "put").choose("rows", "all").choose("more", "none").with("W", w).valued(n)
	return &op{
		label:  m.label,
		spec:   kernel,
		consts: consts{"n": uint32(n), "eps": m.eps},
		binds:  binds{"x": read(m.of), "nw": at(m.weight), "y": write(y)},
		grid:   []*program.Term{perRow()},
	}
}

// Result names x as what this block leaves on the residual stream, and returns it. It computes nothing: host
// verify and eval --dump find the value by it. Every block names its result once, and last.
func (l *Layer) Result(x *Value) *Value {
	x = l.plain(x)
	if l.results == nil {
		l.results = map[*Value]int{}
	}
	l.results[x] = l.number
	return x
}

// Add is x + y. Where y was computed by a kernel that can, and after x, the sum is made there; where y is
// an RMS norm that nothing has computed yet, by the norm's kernel.
func (l *Layer) Add(x, y *Value) *Value {
	x = l.plain(x)
	if y.norm != nil && y.norm.plain == nil && y.width == x.width {
		sum := l.scratch("x", x.width)
		sum.sum = y.norm.op(x.width, sum, l.width(256))
		sum.sum.spec.choose("out", "add")
		sum.sum.binds["res"] = read(x)
		l.emit(sum.sum)
		return sum
	}
	if len(y.ops) > 0 && y.reads == 0 && y.width == x.width && x.made < y.ops[0].number {
		for _, o := range y.ops {
			o.spec.Choices["out"] = "add"
			o.binds["res"] = read(x)
		}
		y.name, y.ops = "x", nil
		return y
	}
	sum := l.scratch("x", x.width)
	w := l.width(64)
	l.emit(&op{
		label:  l.prefix + "add",
		spec:   spec("add").with("W", w),
		consts: consts{"n": uint32(x.width)},
		binds:  binds{"a": read(x), "b": read(l.plain(y)), "y": write(sum)},
		grid:   []*program.Term{groups(x.width, int(w)), perRow()},
	})
	return sum
}

// Scale is x times the one value of a tensor of the block.
func (l *Layer) Scale(x *Value, tensor string) *Value {
	x = l.plain(x)
	factor := at(l.vector(1, l.prefix+tensor))
	if x.sum != nil && x.reads == 0 {
		x.sum.spec.choose("out", "scaled")
		x.sum.binds["factor"] = factor
		x.sum = nil
		return x
	}
	y := l.scratch("scaled", x.width)
	w := l.width(64)
	l.emit(&op{
		label:  stackLabel([]string{l.prefix + tensor}),
		spec:   spec("scale").with("W", w),
		consts: consts{"n": uint32(x.width)},
		binds:  binds{"x": read(x), "factor": factor, "y": write(y)},
		grid:   []*program.Term{groups(x.width, int(w)), perRow()},
	})
	return y
}
