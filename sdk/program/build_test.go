package program

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// builder writes headers, plans and programs by hand: a dispatch is one line,
// much like its line in the text form. Its kernels are stubs: declarations
// that fit what is bound, and an empty main.
type builder struct {
	t       testing.TB
	header  *Header
	plan    *Plan
	placed  []*Placed
	records []*PlacedRecord
	prog    *Program
	things  map[string]*Binding // what a name binds
	current *Section            // to which rows adds variants
	variant *Variant            // to which run adds dispatches
}

func newBuilder(t testing.TB, m *Model) *builder {
	t.Helper()
	b := &builder{t: t, header: &Header{Vocab: uint64(m.Vocab)}, plan: &Plan{Model: m}, prog: &Program{Version: 1}}
	b.things = map[string]*Binding{"bank": {At: &Binding_Bank{Bank: true}}}
	for _, x := range []Table{Table_PICKS, Table_RESIDENCY, Table_PAIRS, Table_TILES, Table_OUTS, Table_GUESSES, Table_LOGITS} {
		b.things[x.String()] = &Binding{At: &Binding_Table{Table: x}}
	}
	return b
}

// tensor adds a tensor to the file.
func (b *builder) tensor(name string, t ggml.Type, dims ...uint64) {
	b.header.Tensors = append(b.header.Tensors, &Tensor{Name: name, Type: uint32(t), Dims: dims})
}

// find is a tensor of the file.
func (b *builder) find(name string) *Tensor {
	b.t.Helper()
	for _, t := range b.header.Tensors {
		if t.Name == name {
			return t
		}
	}
	b.t.Fatalf("the test has no tensor %s", name)
	return nil
}

// embed declares the embedding table.
func (b *builder) embed(name string, t ggml.Type, scale float32) {
	b.tensor(name, t, uint64(b.plan.Model.Hidden), uint64(b.plan.Model.Vocab))
	b.plan.Embed = &Embed{Tensor: name, Scale: scale}
}

// matrix declares a tensor of that name and type and the MATRIX of it.
func (b *builder) matrix(name string, t ggml.Type, dims ...uint64) {
	b.tensor(name, t, dims...)
	b.stack(name, name)
}

// stack declares a MATRIX of tensors that exist.
func (b *builder) stack(name string, tensors ...string) {
	bands, rows, cols, _ := b.bands(tensors, false, 0)
	b.weight(&Weight{Name: name, Tensors: tensors}, &Placed{Name: name, Rows: rows, Cols: cols, Bands: bands})
}

// vector declares an F32 tensor and the VECTOR of it.
func (b *builder) vector(name string, dims ...uint64) {
	b.tensor(name, ggml.F32, dims...)
	b.vectors(name, name)
}

// vectors declares a VECTOR of tensors that exist, of equal row length.
func (b *builder) vectors(name string, tensors ...string) {
	p := &Placed{Name: name}
	for _, x := range tensors {
		cols, rows, _ := shapeOf(b.find(x).Dims)
		p.Cols, p.Rows = cols, p.Rows+rows
	}
	p.Bands = []*Band{{Rows: p.Rows, Bytes: 4 * p.Rows * p.Cols}}
	b.weight(&Weight{Name: name, Tensors: tensors, Use: Use_VECTOR}, p)
}

func (b *builder) weight(w *Weight, p *Placed) {
	b.plan.Weights = append(b.plan.Weights, w)
	b.placed = append(b.placed, p)
	for i := range p.Bands {
		name := w.Name
		if i > 0 {
			name = fmt.Sprintf("%s#%d", name, i)
		}
		b.name(name, &Binding{At: &Binding_Weight{Weight: &WeightBand{Weight: uint32(len(b.placed) - 1), Band: uint32(i)}}})
	}
}

func (b *builder) name(name string, at *Binding) {
	if b.things[name] != nil {
		b.t.Fatalf("the test has two things named %s", name)
	}
	b.things[name] = at
}

// bands lays out a stack of tensors as the host would, one band for each run
// of a type; those of a record's part follow each other from byte start on. It
// is the stack's rows, cols and last byte too.
func (b *builder) bands(tensors []string, part bool, start uint64) (bands []*Band, rows, cols, end uint64) {
	b.t.Helper()
	for _, name := range tensors {
		t := b.find(name)
		dims := t.Dims
		if part {
			dims = dims[:2]
		}
		c, r, ok := shapeOf(dims)
		if !ok {
			b.t.Fatalf("the test's tensor %s has shape %v", name, t.Dims)
		}
		cols = c
		if n := len(bands); n > 0 && bands[n-1].Type == t.Type {
			bands[n-1].Rows += r
		} else {
			bands = append(bands, &Band{Type: t.Type, Row0: rows, Rows: r})
		}
		rows += r
	}
	end = start
	for _, band := range bands {
		form, _ := ggml.Form(ggml.Type(band.Type))
		planes, size, err := form.Planes(band.Rows, cols)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, p := range planes {
			band.Planes = append(band.Planes, uint32((end+p)/ggml.PlaneAlign))
		}
		band.Bytes = size
		if part {
			end += size
		}
	}
	return bands, rows, cols, end
}

// record declares a MoE layer's record: parts name their tensors, joined by |.
func (b *builder) record(layer uint32, parts ...string) {
	r, p := &Record{Layer: layer}, &PlacedRecord{Layer: layer}
	var end uint64
	for _, part := range parts {
		name, list, _ := strings.Cut(part, "=")
		tensors := strings.Split(list, "|")
		placed := &Placed{Name: name}
		placed.Bands, placed.Rows, placed.Cols, end = b.bands(tensors, true, end)
		r.Parts = append(r.Parts, &Weight{Name: name, Tensors: tensors})
		p.Parts = append(p.Parts, placed)
	}
	p.Stride = roundUp(end, 256)
	b.plan.Records = append(b.plan.Records, r)
	b.records = append(b.records, p)
}

func (b *builder) rope(r *Rope) {
	b.plan.Ropes = append(b.plan.Ropes, r)
	b.name("rope:"+r.Name, &Binding{At: &Binding_Rope{Rope: uint32(len(b.plan.Ropes) - 1)}})
}

func (b *builder) buffer(x *Buffer) {
	b.prog.Buffers = append(b.prog.Buffers, x)
	b.name(x.Name, &Binding{At: &Binding_Buffer{Buffer: uint32(len(b.prog.Buffers) - 1)}})
}

// scratch declares F32 buffers of so many values a row.
func (b *builder) scratch(perRow uint64, names ...string) {
	for _, n := range names {
		b.buffer(&Buffer{Name: n, PerRow: perRow})
	}
}

// section starts a section; the variants that follow are its.
func (b *builder) section(kind Kind, layer uint32) *Section {
	s := &Section{Kind: kind, Layer: layer}
	b.prog.Sections = append(b.prog.Sections, s)
	b.current = s
	return s
}

// rows starts a variant of the current section.
func (b *builder) rows(least, most uint32) {
	b.variant = &Variant{Min: least, Max: most}
	b.current.Variants = append(b.current.Variants, b.variant)
}

// consts are the fields of a Constants struct: names, each before its value,
// an int (u32), a float64 (f32) or a [4]uint32.
type consts []any

// run adds a dispatch: label, kernel and "inputs -> outputs" by name.
func (b *builder) run(label, kernel, flow string, grid []*Term, c consts) *Dispatch {
	b.t.Helper()
	d := &Dispatch{Label: label, Grid: grid}
	in, out, _ := strings.Cut(flow, "->")
	k := &stub{types: map[string]uint32{}}
	for access, list := range []string{in, out} {
		for _, name := range strings.Split(list, ",") {
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			at := b.things[name]
			if at == nil {
				b.t.Fatalf("%s: the test has nothing named %s", label, name)
			}
			k.slot(b, at, Access(access))
			d.Bindings = append(d.Bindings, at)
		}
	}
	d.Constants = k.uniforms(c)
	d.Bindings = append(d.Bindings, &Binding{At: &Binding_Table{Table: Table_STEP}})
	if len(c) > 0 {
		d.Bindings = append(d.Bindings, &Binding{At: &Binding_Table{Table: Table_CONSTANTS}})
	}
	d.Kernel = b.kernel(kernel, k, uint32(len(d.Constants)))
	b.variant.Dispatches = append(b.variant.Dispatches, d)
	return d
}

// kernelName is the name by which programs list a kernel: its base name, then
// in brackets the ggml types it reads, in order of their slots' names, and its
// override constants, as in matvec_norm[q4_0 L=8 W=64].
func kernelName(base string, types, params map[string]uint32) string {
	var what []string
	for _, slot := range sortedKeys(types) {
		if t := typeName(types[slot]); !slices.Contains(what, t) {
			what = append(what, t)
		}
	}
	for _, p := range sortedKeys(params) {
		what = append(what, fmt.Sprintf("%s=%d", p, params[p]))
	}
	if len(what) == 0 {
		return base
	}
	return base + "[" + strings.Join(what, " ") + "]"
}

// kernel is the index of the kernel of that name and those types, which is
// made where it is new.
func (b *builder) kernel(base string, s *stub, constantBytes uint32) uint32 {
	b.t.Helper()
	k := &Kernel{Name: kernelName(base, s.types, nil), Ref: base, Types: s.types, ConstantBytes: constantBytes, Wgsl: s.source(), Slots: s.slots}
	for i, have := range b.prog.Kernels {
		if have.Name == k.Name {
			if have.Wgsl != k.Wgsl {
				b.t.Fatalf("the test has two kernels %s:\n%s\n%s", k.Name, have.Wgsl, k.Wgsl)
			}
			return uint32(i)
		}
	}
	b.prog.Kernels = append(b.prog.Kernels, k)
	return uint32(len(b.prog.Kernels) - 1)
}

// stub is a kernel that declares its slots and does nothing.
type stub struct {
	slots  []*Slot
	decls  []string
	types  map[string]uint32
	fields []string
}

// slot declares a variable for what at binds. Its name tells its kind.
func (s *stub) slot(b *builder, at *Binding, access Access) {
	name, typ := "a", "array<f32>"
	switch x := at.At.(type) {
	case *Binding_Buffer:
		if b.prog.Buffers[x.Buffer].Elem != Elem_F32 {
			typ = "array<u32>"
		}
	case *Binding_Weight:
		name = "v"
		if b.plan.Weights[x.Weight.Weight].Use == Use_MATRIX {
			name, typ = "w", "array<vec4<u32>>"
		}
	case *Binding_Bank:
		name, typ = "bank", "array<vec4<u32>>"
	case *Binding_Table:
		name = strings.ToLower(x.Table.String())
		if x.Table != Table_LOGITS {
			typ = "array<u32>"
		}
	}
	if name == "a" && access == Access_READ_WRITE {
		name = "y"
	}
	if len(name) == 1 {
		name = fmt.Sprintf("%s%d", name, len(s.slots))
	}
	if x, ok := at.At.(*Binding_Weight); ok && name[0] == 'w' {
		s.types[name] = b.placed[x.Weight.Weight].Bands[x.Weight.Band].Type
	}
	mode := map[Access]string{Access_READ: "read", Access_READ_WRITE: "read_write"}[access]
	s.decls = append(s.decls, fmt.Sprintf("@group(0) @binding(%d) var<storage, %s> %s: %s;", len(s.slots), mode, name, typ))
	s.slots = append(s.slots, &Slot{Name: name, Access: access})
}

// uniforms declares the step and the constants, and is the latter's bytes.
func (s *stub) uniforms(c consts) []byte {
	s.uniform("step", "Step")
	if len(c) == 0 {
		return nil
	}
	s.uniform("c", "Constants")
	var raw []byte
	for i := 0; i < len(c); i += 2 {
		switch v := c[i+1].(type) {
		case int:
			raw = binary.LittleEndian.AppendUint32(raw, uint32(v))
			s.fields = append(s.fields, fmt.Sprintf("%s: u32", c[i]))
		case float64:
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
			s.fields = append(s.fields, fmt.Sprintf("%s: f32", c[i]))
		case [4]uint32:
			for len(raw)%16 != 0 {
				raw = append(raw, 0)
			}
			for _, w := range v {
				raw = binary.LittleEndian.AppendUint32(raw, w)
			}
			s.fields = append(s.fields, fmt.Sprintf("%s: vec4<u32>", c[i]))
		}
	}
	for len(raw)%16 != 0 {
		raw = append(raw, 0)
	}
	return raw
}

func (s *stub) uniform(name, typ string) {
	s.decls = append(s.decls, fmt.Sprintf("@group(0) @binding(%d) var<uniform> %s: %s;", len(s.slots), name, typ))
	s.slots = append(s.slots, &Slot{Name: name, Access: Access_UNIFORM})
}

func (s *stub) source() string {
	lines := []string{"struct Step { T: u32, pos0: u32, S: u32, row0: u32, O: u32, G: u32, chunk: u32, pad: u32 }"}
	if len(s.fields) > 0 {
		lines = append(lines, "struct Constants { "+strings.Join(s.fields, ", ")+" }")
	}
	return strings.Join(slices.Concat(lines, s.decls, []string{"@compute @workgroup_size(64) fn main() {}", ""}), "\n")
}

// grid is a dispatch's grid.
func grid(terms ...*Term) []*Term { return terms }

// Terms: ceil(mul·n/div).
func perRow(mul, div uint32) *Term  { return &Term{Mul: mul, Div: div, N: Var_T} }
func perOut(mul, div uint32) *Term  { return &Term{Mul: mul, Div: div, N: Var_O} }
func perTile(mul, div uint32) *Term { return &Term{Mul: mul, Div: div, N: Var_G} }
func perPos(mul, div uint32) *Term  { return &Term{Mul: mul, Div: div, N: Var_S} }
func groups(n uint32) *Term         { return &Term{Mul: n, N: Var_ONE} }
func inWindow(div, window uint32) *Term {
	return &Term{Div: div, N: Var_SW, Window: window}
}

// planes is where the planes of a weight's first band, or of a part of a
// layer's record, start: what a program passes to its kernels.
func (b *builder) planes(name string) (p [4]uint32) {
	b.t.Helper()
	at, ok := b.things[name].GetAt().(*Binding_Weight)
	if !ok {
		b.t.Fatalf("the test has no weight %s", name)
	}
	copy(p[:], b.placed[at.Weight.Weight].Bands[at.Weight.Band].Planes)
	return p
}

func (b *builder) partPlanes(layer uint32, part string) (p [4]uint32) {
	b.t.Helper()
	for _, r := range b.records {
		for _, x := range r.Parts {
			if r.Layer == layer && x.Name == part {
				copy(p[:], x.Bands[0].Planes)
				return p
			}
		}
	}
	b.t.Fatalf("the test has no part %s of layer %d", part, layer)
	return p
}
