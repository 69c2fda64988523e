package layer

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// op is a dispatch whose buffers are not chosen yet.
type op struct {
	number int // counts the operations of a run from 1
	label  string
	spec   opSpec
	consts consts
	binds  binds
	grid   []*program.Term
}

// consts are the fields of the kernel's Constants: uint32, float64 (stored as f32) or [4]uint32.
type consts map[string]any

// binds gives each WGSL variable its operand. c and step bind themselves.
type binds map[string]operand

// operand is a value, or something with a place already.
type operand struct {
	value   *Value
	writes  bool
	binding *program.Binding
}

func read(v *Value) operand         { return operand{value: v} }
func write(v *Value) operand        { return operand{value: v, writes: true} }
func at(b *program.Binding) operand { return operand{binding: b} }
func table(t program.Table) operand {
	return at(&program.Binding{At: &program.Binding_Table{Table: t}})
}
func bank() operand                   { return at(&program.Binding{At: &program.Binding_Bank{Bank: true}}) }
func one(n int) *program.Term         { return &program.Term{Mul: uint32(n)} }
func perRow() *program.Term           { return &program.Term{N: program.Var_T} }
func perRows(n int) *program.Term     { return &program.Term{Div: uint32(n), N: program.Var_T} }
func groups(n, per int) *program.Term { return one((n + per - 1) / per) }

// opSpec is a kernels.Spec in the making.
type opSpec struct{ kernels.Spec }

func spec(name string) opSpec {
	return opSpec{kernels.Spec{Name: name, Choices: map[string]string{}, Types: map[string]ggml.Type{}, Params: map[string]uint32{}}}
}

func (s opSpec) with(param string, v uint32) opSpec {
	s.Params[param] = v
	return s
}

// tiled chooses a many-token kernel's tile.
func (s opSpec) tiled(t kernels.Tile) opSpec {
	maps.Copy(s.Params, t.Params)
	return s.choose("tile", t.Choice)
}

func (s opSpec) choose(what, which string) opSpec {
	s.Choices[what] = which
	return s
}

func (s opSpec) typed(slot string, t uint32) opSpec {
	s.Types[slot] = ggml.Type(t)
	return s
}

// emit appends an operation to the open section; the first one opens a trunk.
func (e *Encoder) emit(o *op) {
	if e.section == nil {
		e.open(program.Kind_TRUNK, -1)
	}
	e.emitted++
	o.number = e.emitted
	for _, b := range o.binds {
		switch {
		case b.value == nil:
		case b.writes:
			b.value.made = o.number
		default:
			b.value.reads++
		}
	}
	e.section.ops = append(e.section.ops, o)
}

// input binds x, or what its lazy norm is of, to a kernel that has lib/x_*. On a GPU a norm is computed once, for each
// of a reader's workgroups would wait for its own; on a software device, whose workgroups are few, that spares a dispatch.
func (e *Encoder) input(o *op, x *Value) *op {
	if !e.limits.GetCpu() {
		x = e.plain(x)
	}
	if x.norm == nil {
		o.binds["x"] = read(x)
		o.consts["eps"] = 0.0
		return o
	}
	o.spec.choose("x", "norm")
	o.binds["x"], o.binds["nw"] = read(x.norm.of), at(x.norm.weight)
	o.consts["eps"] = x.norm.eps
	return o
}

// pack lays constants out as the kernel's struct.
func pack(k *program.Kernel, decl program.Decl, values consts) ([]byte, error) {
	out := make([]byte, k.ConstantBytes)
	left := maps.Clone(values)
	for _, f := range decl.Constants {
		v, ok := values[f.Name]
		if !ok {
			return nil, fmt.Errorf("kernel %s: constant %s has no value", k.Name, f.Name)
		}
		delete(left, f.Name)
		put := func(i int, w uint32) { binary.LittleEndian.PutUint32(out[int(f.Offset)+4*i:], w) }
		switch v := v.(type) {
		case uint32:
			put(0, v)
		case float64:
			put(0, math.Float32bits(float32(v)))
		case [4]uint32:
			for i, w := range v {
				put(i, w)
			}
		default:
			return nil, fmt.Errorf("kernel %s: constant %s: have a %T", k.Name, f.Name, v)
		}
	}
	delete(left, "eps") // kernels that take x as it is have no use for it, and may have no field
	if len(left) > 0 {
		return nil, fmt.Errorf("kernel %s has no constants %v", k.Name, slices.Sorted(maps.Keys(left)))
	}
	return out, nil
}
