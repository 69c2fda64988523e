// Package layer is the library that an architecture's Encode is written with:
// its verbs emit the dispatches of a program, fuse neighbours, and pick kernels
// by type and device. An author never names a section, a buffer or a grid.
//
// The main starting point is the Encoder type.
package layer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/sdk/program"
)

// regime is a range of T that one run of the author's Encode serves: the forms
// for one token and for many differ in fusion and buffers.
type regime struct{ min, max uint32 }

// regimes are those that the library has kernels for, in ascending order.
var regimes = []regime{{1, 1}, {2, 0}}

// Encoder writes a program. Its errors are sticky, so that an author writes
// straight lines; they are reported together at the end.
type Encoder struct {
	source   source // tensors, plan and placement
	limits   *program.Limits
	kvF32    bool
	regime   regime
	out      *output // shared by the regimes
	section  *section
	flow     []*section     // of this regime, in order
	hidden   *Value         // what the head reads
	routings []routed       // MoE layers so far
	emitted  int            // operations so far
	results  map[*Value]int // blocks' results, to the blocks' numbers
	errs     []error
}

// Layer is an Encoder at one block of the model: tensor names are relative to blk.<number>.
type Layer struct {
	*Encoder
	number int
	prefix string
}

// planningLimits are any device's: what is asked for does not depend on them.
var planningLimits = &program.Limits{WorkgroupBytes: 32 << 10}

// Plan runs encode without placed weights and fills p's weights, records,
// embedding, ropes, MoE layers and unused tensors from what it asked for.
// The errors name tensors of the file.
func Plan(h *program.Header, p *program.Plan, encode func(*Encoder)) error {
	s := newPlanning(h, p)
	if _, err := run(s, planningLimits, false, encode); err != nil {
		return err
	}
	s.finish()
	return nil
}

// Encode runs encode over placed weights, once per regime, and returns the
// finished program.
func Encode(req *program.EncodeRequest, encode func(*Encoder)) (*program.Program, error) {
	s, err := newPlaced(req)
	if err != nil {
		return nil, err
	}
	return run(s, req.GetLimits(), req.GetKvF32(), encode)
}

func run(s source, limits *program.Limits, kvF32 bool, encode func(*Encoder)) (*program.Program, error) {
	out := newOutput()
	for _, r := range regimes {
		e := &Encoder{source: s, limits: limits, kvF32: kvF32, regime: r, out: out}
		encode(e)
		if err := e.close(); err != nil {
			return nil, err
		}
	}
	return out.program, nil
}

// many reports whether this run writes the forms for several tokens at once.
func (e *Encoder) many() bool { return e.regime.max != 1 }

// fail remembers an error, once; the author's Encode goes on with placeholder values.
func (e *Encoder) fail(format string, args ...any) {
	const enough = 20
	err := fmt.Errorf(format, args...)
	if len(e.errs) < enough && !slices.ContainsFunc(e.errs, func(x error) bool { return x.Error() == err.Error() }) {
		e.errs = append(e.errs, err)
	}
}

// close lowers what was recorded into the program.
func (e *Encoder) close() error {
	if e.hidden == nil && len(e.errs) == 0 {
		e.fail("encode ended without Logits")
	}
	if len(e.errs) == 0 {
		e.out.lower(e)
	}
	return errors.Join(e.errs...)
}

// Layer starts block number i of the model.
func (e *Encoder) Layer(i int) *Layer {
	if e.section != nil && e.section.kind == program.Kind_COMBINE {
		e.section = nil
	}
	return &Layer{Encoder: e, number: i, prefix: fmt.Sprintf("blk.%d.", i)}
}

// Has reports whether the file has a tensor of that name.
func (e *Encoder) Has(tensor string) bool { return e.source.tensor(tensor) != nil }

// Has reports whether the block has a tensor of that name.
func (l *Layer) Has(tensor string) bool { return l.Encoder.Has(l.prefix + tensor) }

// First is the first of the names that the file has, or the first name where it
// has none: the error then names that.
func (e *Encoder) First(tensors ...string) string {
	for _, t := range tensors {
		if e.Has(t) {
			return t
		}
	}
	return tensors[0]
}

// First is the first of the names that the block has, or the first name.
func (l *Layer) First(tensors ...string) string {
	for _, t := range tensors {
		if l.Has(t) {
			return t
		}
	}
	return tensors[0]
}
