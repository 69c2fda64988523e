package kernels

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluicehost/sluice/sdk/program"
)

// Iterations is the most loop iterations that one invocation of a library
// kernel makes in a dispatch: its worst case for a step and the dispatch's
// constants. lavapipe silently ends an invocation after Limits.loop_limit of
// them; it also counts the pass that finds a loop at its end, and so does this.
// It counts for the eight or so invocations that it runs in step together: a
// loop that any of them goes through counts. (What the driver unrolls costs
// nothing there, so this is an upper bound.)
// It fails for kernels that are not of this library.
func Iterations(k *program.Kernel, step program.StepUniform, constants []byte) (uint64, error) {
	return new(LoopCounter).Iterations(k, step, constants)
}

// LoopCounter is Iterations for many dispatches: it reads the source of each kernel once. The zero value is ready.
type LoopCounter struct {
	fields map[*program.Kernel]fieldsOf
}

// fieldsOf are the constants that a kernel declares.
type fieldsOf struct {
	list []program.Field
	err  error
}

// Iterations is what the function of that name gives.
func (c *LoopCounter) Iterations(k *program.Kernel, step program.StepUniform, constants []byte) (uint64, error) {
	f, ok := loopsOf[k.GetRef()]
	if !ok {
		return 0, fmt.Errorf("kernels: %s: have ref %q, want a kernel of the library", k.GetName(), k.GetRef())
	}
	fields, err := c.of(k)
	if err != nil {
		return 0, fmt.Errorf("kernels: %s: %w", k.GetName(), err)
	}
	l := &loops{kernel: k, step: step, fields: fields, constants: constants}
	n := f(l)
	if l.err != nil {
		return 0, fmt.Errorf("kernels: %s: %w", k.GetName(), l.err)
	}
	return uint64(min(n, math.MaxInt64)), nil
}

func (c *LoopCounter) of(k *program.Kernel) ([]program.Field, error) {
	known, ok := c.fields[k]
	if !ok {
		decl, err := program.ParseWGSL(k.GetWgsl())
		known = fieldsOf{decl.Constants, err}
		if c.fields == nil {
			c.fields = map[*program.Kernel]fieldsOf{}
		}
		c.fields[k] = known
	}
	return known.list, known.err
}

// CheckLoops fails where Iterations are over the device's loop limit.
func CheckLoops(k *program.Kernel, step program.StepUniform, constants []byte, limits *program.Limits) error {
	n, err := Iterations(k, step, constants)
	if err != nil {
		return err
	}
	return WithinLoops(k, n, step, limits)
}

// WithinLoops fails where n iterations, which a dispatch of a kernel makes, are over the device's loop limit.
func WithinLoops(k *program.Kernel, n uint64, step program.StepUniform, limits *program.Limits) error {
	if most := uint64(limits.GetLoopLimit()); most > 0 && n > most {
		return fmt.Errorf("kernels: %s: have %d loop iterations in an invocation, want at most %d: "+
			"the dispatch is too large for this device (S=%d, T=%d)", k.GetName(), n, most, step.S, step.T)
	}
	return nil
}

// loops reads what a formula is made of, in floats, which can't overflow.
type loops struct {
	kernel    *program.Kernel
	step      program.StepUniform
	fields    []program.Field
	constants []byte
	err       error
}

// p is an override constant, at least 1.
func (l *loops) p(name string) float64 {
	v, ok := l.kernel.GetParams()[name]
	if (!ok || v == 0) && l.err == nil {
		l.err = fmt.Errorf("param %s: have %d, want at least 1", name, v)
	}
	return max(1, float64(v))
}

// c is a field of the constants.
func (l *loops) c(name string) float64 {
	for _, f := range l.fields {
		if f.Name == name && int(f.Offset)+4 <= len(l.constants) {
			return float64(binary.LittleEndian.Uint32(l.constants[f.Offset:]))
		}
	}
	if l.err == nil {
		l.err = fmt.Errorf("constants: have %d bytes, want a field %s in them", len(l.constants), name)
	}
	return 0
}

// has reports whether the kernel has a variable.
func (l *loops) has(name string) bool {
	for _, s := range l.kernel.GetSlots() {
		if s.GetName() == name {
			return true
		}
	}
	return false
}

// seen is how many positions an attention kernel reads.
func (l *loops) seen() float64 {
	s := float64(l.step.S)
	if w := l.c("window"); w > 0 {
		return min(s, w)
	}
	return s
}

// loop is n passes of a body and the one that ends it.
func loop(n, body float64) float64 { return n*(1+body) + 1 }

// shared is a loop over n that workers share.
func shared(n, workers, body float64) float64 { return loop(math.Ceil(n/workers), body) }

// fours is a loop over n that goes by fours, and one over what is left.
func fours(n, body float64) float64 { return loop(math.Floor(n/4), body) + loop(math.Mod(n, 4), body) }

// loopsOf has each kernel's formula, in the order of its code.
var loopsOf = map[string]func(l *loops) float64{
	"matmul":             tileLoops(1),
	"matmul_pair":        tileLoops(2),
	"expert_matmul":      tileLoops(1),
	"expert_matmul_pair": tileLoops(2),
	"moe_sum": func(l *loops) float64 {
		return loop(math.Floor(l.c("top_k")/8), 0) + fours(math.Mod(l.c("top_k"), 8), 0)
	},
	"attn_chunk": attnChunkLoops,
	"conv":       convLoops,
	"delta_rule": deltaLoops,
	"gated_norm": func(l *loops) float64 {
		return 2*shared(max(0, l.c("d")-l.p("W")), l.p("W"), 0) + l.all()
	},
	"latent":        latentLoops,
	"matvec_heads":  matvecLoops,
	"matmul_heads":  matmulHeadsLoops,
	"matvec":        matvecLoops,
	"pair":          pairLoops,
	"expert_pair":   pairLoops,
	"expert_matvec": matvecLoops,
	"expert_down": func(l *loops) float64 {
		return loop(l.c("top_k"), l.dots()+l.gather()+l.teamSums(1)) + shared(l.p("R"), l.p("L"), 0)
	},
	"heads": func(l *loops) float64 {
		pairs, w := math.Floor(l.p("HD")/2), l.p("W")
		return 2*shared(pairs, w, 0) + l.all() + shared(max(0, pairs-w), w, 0)
	},
	"attn_split": attnSplitLoops,
	"attn_merge": attnMergeLoops,
	"shortconv": func(l *loops) float64 {
		move := loop(l.p("TAPS")-1, 0)
		return loop(l.p("TAPS"), 0) + move + loop(float64(l.step.T), loop(l.p("TAPS"), 0)+move) + move
	},
	"topk":  topKLoops,
	"add":   func(*loops) float64 { return 0 },
	"gate":  func(*loops) float64 { return 0 },
	"scale": func(*loops) float64 { return 0 },
	"rmsnorm": func(l *loops) float64 {
		n := math.Ceil(l.c("n") / l.p("VALUES"))
		return 2*shared(max(0, n-4*l.p("W")), l.p("W"), 0) + l.all()
	},
	"resolve": func(l *loops) float64 {
		depth := shared(l.c("depth")*l.c("top_k"), l.p("W"), 0)
		return loop(l.c("top_k"), 0) + shared(l.c("top_k"), l.p("W"), 0) + depth + shared(max(0, l.c("last")-l.c("first")), l.p("W"), 0)
	},
	"topn": func(l *loops) float64 {
		n := min(l.c("chunk"), l.c("vocab"))
		return l.rounds(n) + shared(n, l.p("W"), 0) + l.tree()
	},
	"topn_merge": func(l *loops) float64 {
		chunks := math.Ceil(l.c("vocab") / max(1, l.c("chunk")))
		return l.rounds(chunks*l.p("N")) + shared(chunks, l.p("W"), 0) + l.tree()
	},
}

func matvecLoops(l *loops) float64 { return l.begin() + l.dots() + l.gather() + l.teamSums(1) }

func pairLoops(l *loops) float64 { return l.begin() + l.dots() + l.gather() + l.teamSums(2) }

// begin is x_begin of lib/x_*.wgsl.
func (l *loops) begin() float64 {
	switch {
	case l.has("nw"):
		return shared(8*l.c("units"), l.p("W"), 0) + l.all()
	case l.kernel.GetParams()["XL"] > 0: // staged
		return shared(8*l.c("units"), l.p("W")*l.p("XL"), 0)
	}
	return 0
}

// all is sum_all or max_all of lib/sum.wgsl, which has no loop where the workgroup is wide.
func (l *loops) all() float64 {
	w := l.p("W")
	if w <= 32 {
		return loop(w, 0)
	}
	return 0
}

// dots is a lane's part of its rows.
func (l *loops) dots() float64 { return shared(l.c("units"), l.p("L")*l.p("K"), 0) }

// gather is team_gather.
func (l *loops) gather() float64 {
	lanes := l.p("L")
	if lanes <= 8 {
		return 0
	}
	return shared(l.p("RW")/lanes*8, l.p("W"), loop(lanes/8-1, 0))
}

// teamSums is what a lane does of the team's R rows, of so many sums each.
func (l *loops) teamSums(sums float64) float64 {
	return shared(l.p("R"), l.p("L"), sums*loop(min(l.p("L"), 8)-1, 0))
}

// topKLoops are the scores, the first round, over the 32 experts of a run, and where there are several the second, over what they sent.
func topKLoops(l *loops) float64 {
	e, k, w := l.p("E"), l.p("K"), l.p("W")
	scores := shared(e, w, 0)
	if !l.has("bias") { // softmax
		scores = 3*shared(e, w, 0) + 2*l.all()
	}
	rounds := shared(e, w, 0)
	if runs := math.Ceil(e / 32); runs > 1 {
		sent := runs * min(k, 32)
		rounds += shared(sent, w, loop(math.Ceil(sent/32), 0))
	}
	weight := 0.0
	if l.kernel.GetParams()["NORM"] == 1 {
		weight = loop(math.Ceil(k/4), 0)
	}
	return scores + l.groups() + rounds + shared(k, w, weight)
}

// groups is lib/groups.wgsl, nothing where there is one group.
func (l *loops) groups() float64 {
	e, n, w := l.p("E"), l.p("GROUPS"), l.p("W")
	if n == 1 {
		return 0
	}
	return shared(n, w, loop(e/n, 0)) + shared(n, w, loop(n, 0)) + shared(e, w, 0)
}

// rounds is N times the best of a workgroup's candidates, with every candidate better than those before it.
func (l *loops) rounds(candidates float64) float64 {
	n, keep := l.p("N"), l.p("KEEP")
	fill := loop(keep, 0) + shared(candidates, l.p("W"), loop(keep, 0))
	return fill + loop(n, l.tree()+loop(keep-1, 0)) + math.Floor((n-1)/keep)*fill
}

// tree is a halving loop over the workgroup: lib/best.wgsl.
func (l *loops) tree() float64 { return loop(math.Floor(math.Log2(l.p("W"))), 0) }
