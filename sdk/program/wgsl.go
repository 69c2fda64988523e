package program

import (
	"fmt"
	"sort"
	"strings"
)

// maxWGSL is the longest kernel source that ParseWGSL reads, in bytes.
const maxWGSL = 1 << 20

// Decl is what a kernel's WGSL declares, as far as the host has to know it.
type Decl struct {
	Slots          []*Slot   // the bindings of group 0, in order: Slots[i] is @binding(i)
	Types          []string  // the WGSL type of each slot, without spaces and with aliases resolved
	Constants      []Field   // the fields of struct Constants, in order; nil without one
	ConstantBytes  uint32    // size of struct Constants in the uniform address space
	Workgroup      [3]uint32 // invocations of fn main's workgroup; zeros where there is no compute entry point main
	WorkgroupBytes uint32    // memory of the var<workgroup> declarations, about, where their sizes are not plain
	NumWorkgroups  bool      // uses @builtin(num_workgroups), which a folded grid makes wrong
}

// Field is one member of struct Constants.
type Field struct {
	Name   string
	Type   string // u32, i32, f32, vec2<T>, vec3<T>, vec4<T>, or array<vec4<T>,N>
	Offset uint32 // bytes from the start of the struct, by the uniform address space's layout
	Size   uint32 // bytes
}

// The names by which kernels declare their two uniforms.
const (
	stepType      = "Step"
	constantsType = "Constants"
)

// ParseWGSL reads the declarations of a kernel: its bindings, its constants
// struct and the shape of its workgroup. It is no compiler: function bodies
// and whatever else it does not know are passed over, and the device judges
// them. It fails where a declaration can't be one of a kernel (docs: Kernel in
// program.proto), say a binding outside group 0 or a gap in the numbers.
func ParseWGSL(src string) (Decl, error) {
	if len(src) > maxWGSL {
		return Decl{}, fmt.Errorf("wgsl: have %d bytes of source, want at most %d", len(src), maxWGSL)
	}
	m, err := scanModule(lexWGSL(src))
	if err != nil {
		return Decl{}, err
	}
	d := Decl{NumWorkgroups: m.numWorkgroups}
	if err := m.bindings(&d); err != nil {
		return Decl{}, err
	}
	if err := m.constants(&d); err != nil {
		return Decl{}, err
	}
	if err := m.workgroup(&d); err != nil {
		return Decl{}, err
	}
	if err := m.own(); err != nil {
		return Decl{}, err
	}
	return d, nil
}

// bindings fills in the slots.
func (m *wgslModule) bindings(d *Decl) error {
	sort.SliceStable(m.bound, func(i, j int) bool { return m.bound[i].binding < m.bound[j].binding })
	for i, v := range m.bound {
		if v.group != 0 {
			return fmt.Errorf("wgsl: variable %s: have group %d, want 0", clip(v.name), v.group)
		}
		if v.binding != uint64(i) {
			return fmt.Errorf("wgsl: variable %s: have binding %d, want %d (each once, without gaps)", clip(v.name), v.binding, i)
		}
		access, err := v.access()
		if err != nil {
			return err
		}
		d.Slots = append(d.Slots, &Slot{Name: v.name, Access: access})
		d.Types = append(d.Types, m.resolve(v.typ).String())
	}
	return nil
}

// access is the variable's address space and mode as an Access.
func (v *wgslVar) access() (Access, error) {
	switch strings.Join(v.space, ",") {
	case "uniform":
		return Access_UNIFORM, nil
	case "storage", "storage,read":
		return Access_READ, nil
	case "storage,read_write":
		return Access_READ_WRITE, nil
	}
	return 0, fmt.Errorf("wgsl: variable %s: have var<%s>, want uniform or storage", clip(v.name), clip(strings.Join(v.space, ", ")))
}

// constants lays out struct Constants.
func (m *wgslModule) constants(d *Decl) error {
	s, ok := m.structs[constantsType]
	if !ok {
		return nil
	}
	var end uint64
	for _, f := range s {
		l, ok := m.uniformLayout(m.resolve(f.typ))
		if !ok {
			return fmt.Errorf("wgsl: Constants.%s: have type %s, want u32, i32, f32, a vector of them or an array of vec4",
				clip(f.name), clip(f.typ.String()))
		}
		at := roundUp(end, l.align)
		end = at + l.size
		if end > maxUniform {
			return fmt.Errorf("wgsl: Constants.%s ends at byte %d, want at most %d", clip(f.name), end, maxUniform)
		}
		d.Constants = append(d.Constants, Field{Name: f.name, Type: m.resolve(f.typ).String(), Offset: uint32(at), Size: uint32(l.size)})
	}
	if end == 0 {
		return fmt.Errorf("wgsl: struct Constants has no fields")
	}
	d.ConstantBytes = uint32(roundUp(end, 16))
	return nil
}

// workgroup fills in the shape of fn main's workgroup and its memory.
func (m *wgslModule) workgroup(d *Decl) error {
	if m.entry == nil {
		return nil
	}
	d.Workgroup = [3]uint32{1, 1, 1}
	if len(m.entry) > 3 {
		return fmt.Errorf("wgsl: @workgroup_size has %d arguments, want 1 to 3", len(m.entry))
	}
	for i, e := range m.entry {
		n, ok := m.eval(e)
		if !ok || n == 0 || n > 1<<16 {
			return fmt.Errorf("wgsl: @workgroup_size(%s): want a number from 1 to 65536 or a const of one", clip(joinTokens(e)))
		}
		d.Workgroup[i] = uint32(n)
	}
	var total uint64
	for _, t := range m.shared {
		r := m.resolve(t)
		if l, ok := m.layout(r, 0); ok {
			total = roundUp(total, l.align) + l.size
		} else {
			total += m.footprint(r, 0)
		}
		if total > 1<<31 {
			return fmt.Errorf("wgsl: workgroup memory is over %d bytes", uint32(1)<<31)
		}
	}
	d.WorkgroupBytes = uint32(total)
	return nil
}
