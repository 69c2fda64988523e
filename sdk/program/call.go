package program

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// StepUniform is what the host writes once per step into the uniform that
// kernels declare as
//
//	struct Step { T: u32, pos0: u32, S: u32, row0: u32, O: u32, G: u32, chunk: u32, pad: u32 }
//
// T tokens start at position Pos0 of their session, which holds S = Pos0 + T
// positions afterwards; their activations are the rows from Row0. O rows of
// logits are wanted, G expert tiles are in the wave, Chunk is the session's
// chunk length (a ring has window + Chunk rows).
type StepUniform struct{ T, Pos0, S, Row0, O, G, Chunk uint32 }

// Ref is a kernel's float64 reference: it does to the memory of a Call what
// the whole dispatch does on the GPU, with plain loops over the grid.
type Ref func(c *Call)

// Memory is what one WGSL variable is bound to.
type Memory struct {
	Elem   Elem      // of Values
	Values []float64 // the elements of a buffer, table, rope or VECTOR weight; u32 values are exact
	Form   []byte    // the GPU form of a MATRIX band, or a whole bank
}

// Call is one dispatch as its reference sees it.
type Call struct {
	Step   StepUniform
	Grid   [3]uint32
	kernel *Kernel
	fields map[string]Field
	consts []byte
	memory map[string]*Memory
}

// NewCall prepares a dispatch of k. Every storage slot of k needs an entry in
// memory by its WGSL name.
func NewCall(k *Kernel, step StepUniform, grid [3]uint32, constants []byte, memory map[string]*Memory) (*Call, error) {
	decl, err := ParseWGSL(k.Wgsl)
	if err != nil {
		return nil, fmt.Errorf("program: kernel %s: %w", k.Name, err)
	}
	c := &Call{Step: step, Grid: grid, kernel: k, consts: constants, memory: memory, fields: map[string]Field{}}
	for _, f := range decl.Constants {
		c.fields[f.Name] = f
	}
	for _, s := range k.Slots {
		if s.Access != Access_UNIFORM && memory[s.Name] == nil {
			return nil, fmt.Errorf("program: kernel %s: nothing is bound to %s", k.Name, s.Name)
		}
	}
	return c, nil
}

// Param is the value of an override constant.
func (c *Call) Param(name string) uint32 {
	v, ok := c.kernel.Params[name]
	if !ok {
		panic(fmt.Sprintf("BUG: kernel %s has no param %s", c.kernel.Name, name))
	}
	return v
}

func (c *Call) word(name string, i int) uint32 {
	f, ok := c.fields[name]
	if !ok {
		panic(fmt.Sprintf("BUG: kernel %s has no constant %s", c.kernel.Name, name))
	}
	return binary.LittleEndian.Uint32(c.consts[int(f.Offset)+4*i:])
}

// U32 is a u32 field of the dispatch's constants.
func (c *Call) U32(name string) uint32 { return c.word(name, 0) }

// F32 is an f32 field of the dispatch's constants.
func (c *Call) F32(name string) float64 { return float64(math.Float32frombits(c.word(name, 0))) }

// Planes is a vec4<u32> field of the dispatch's constants.
func (c *Call) Planes(name string) [4]uint32 {
	return [4]uint32{c.word(name, 0), c.word(name, 1), c.word(name, 2), c.word(name, 3)}
}

// Values are the elements behind a WGSL variable, to read or write in place.
func (c *Call) Values(name string) []float64 { return c.memory[name].Values }

// Store writes v as the variable's element type holds it: F16 rounds; F32 and
// U32 keep the float64.
func (c *Call) Store(name string, i int, v float64) {
	m := c.memory[name]
	switch m.Elem {
	case Elem_F16:
		v = ggml.RoundF16(v)
	}
	m.Values[i] = v
}

// Unit dequantizes unit g (32 values, see sdk/ggml) of the weight slot whose
// GPU form lies in the named variable, its planes starting at p (in 16 bytes).
func (c *Call) Unit(slot, variable string, p [4]uint32, g uint64) [32]float64 {
	t := ggml.Type(c.kernel.Types[slot])
	return ggml.Unit(t, c.memory[variable].Form, p, g)
}

// Has reports whether the kernel has a variable of that name: which of its
// library choices it was built with shows in its bindings.
func (c *Call) Has(name string) bool { return c.memory[name] != nil }
