// Package kerneltest runs one kernel on the GPU and holds the result against
// its float64 reference. It is for tests: those of sdk/kernels are here,
// because sdk knows no GPU. It is no benchmark and runs no programs (that is
// core/engine).
//
// Start at Run. A Case says what every WGSL variable is bound to. All that a
// kernel has no business with is poison: outputs before the run, the memory
// around each buffer, cache rows that no query sees. An element that the
// reference does not write must still be poison afterwards, and reading poison
// gives a NaN that shows in the result.
package kerneltest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/sdk/program"
)

// Case is one dispatch of a kernel.
type Case struct {
	Kernel    *program.Kernel
	Ref       program.Ref // the kernel's float64 reference
	Step      program.StepUniform
	Grid      [3]uint32
	Constants map[string]any             // uint32, float64 (stored as f32) or [4]uint32, by field of Constants
	Memory    map[string]*program.Memory // by storage variable; see Output for those written
	Bounds    map[string]Bound           // of written variables; without one they must be equal
}

// Run dispatches c and compares every writable variable with what the
// reference leaves there. It returns the errors by variable; faults go to tb.
func Run(tb testing.TB, c Case) map[string]Stat {
	tb.Helper()
	want := Reference(tb, c)
	have := Dispatch(tb, c)
	stats := map[string]Stat{}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		s, err := Compare(have[name], want[name], c.Bounds[name])
		if err != nil {
			tb.Errorf("%s: variable %s: %v\n%s", c.Kernel.Name, name, err, c)
		}
		stats[name] = s
	}
	return stats
}

// String says how the case was dispatched, for messages.
func (c Case) String() string {
	s := fmt.Sprintf("step %+v, grid %v", c.Step, c.Grid)
	for _, k := range slices.Sorted(maps.Keys(c.Constants)) {
		s += fmt.Sprintf(", %s %v", k, c.Constants[k])
	}
	return s
}

// Reference runs the float64 reference on a copy of the case's memory and
// returns the writable variables.
func Reference(tb testing.TB, c Case) map[string]*program.Memory {
	tb.Helper()
	consts, err := Constants(c)
	if err != nil {
		tb.Fatal(err)
	}
	memory := map[string]*program.Memory{}
	maps.Copy(memory, c.Memory)
	out := map[string]*program.Memory{}
	for _, s := range c.Kernel.Slots {
		if m := c.Memory[s.Name]; m != nil && s.Access == program.Access_READ_WRITE {
			out[s.Name] = &program.Memory{Elem: m.Elem, Values: slices.Clone(m.Values)}
			memory[s.Name] = out[s.Name]
		}
	}
	call, err := program.NewCall(c.Kernel, c.Step, c.Grid, consts, memory)
	if err != nil {
		tb.Fatal(err)
	}
	c.Ref(call)
	return out
}

// Dispatch runs c on the GPU and returns the writable variables as they are
// afterwards. A write around a variable goes to tb.
func Dispatch(tb testing.TB, c Case) map[string]*program.Memory {
	tb.Helper()
	var list gpu.Commands
	buffers, release := record(tb, c, &list)
	defer release()
	d := gputest.Open(tb)
	if err := d.Submit(&list); err != nil {
		tb.Fatalf("%s: %v\n%s", c.Kernel.Name, err, c)
	}
	out := map[string]*program.Memory{}
	for i, s := range c.Kernel.Slots {
		if s.Access != program.Access_READ_WRITE {
			continue
		}
		raw := make([]byte, buffers[i].Size())
		if err := d.Read(tb.Context(), buffers[i], 0, raw); err != nil {
			tb.Fatalf("%s: %v", c.Kernel.Name, err)
		}
		m := c.Memory[s.Name]
		if at, ok := guarded(raw, m); !ok {
			tb.Errorf("%s: variable %s: wrote %d bytes from its start of %d\n%s", c.Kernel.Name, s.Name, at, size(m), c)
		}
		out[s.Name] = decode(raw[guard:], m.Elem, len(m.Values))
	}
	return out
}

// Record uploads the memory of c and appends its dispatch to list: for
// benchmarks, which submit the list many times. release frees the memory.
func Record(tb testing.TB, c Case, list *gpu.Commands) (release func()) {
	tb.Helper()
	_, release = record(tb, c, list)
	return release
}

func record(tb testing.TB, c Case, list *gpu.Commands) (buffers []*gpu.Buffer, release func()) {
	tb.Helper()
	d := gputest.Open(tb)
	p, err := pipeline(d, c.Kernel)
	if err != nil {
		tb.Fatal(err)
	}
	if buffers, err = upload(d, c); err != nil {
		releaseAll(buffers)
		tb.Fatalf("%s: %v", c.Kernel.Name, err)
	}
	g, err := bind(d, p, c, buffers)
	if err != nil {
		releaseAll(buffers)
		tb.Fatalf("%s: %v\n%s", c.Kernel.Name, err, c)
	}
	list.Dispatch(p, g, c.Grid[0], c.Grid[1], c.Grid[2])
	return buffers, func() { g.Release(); releaseAll(buffers) }
}

func bind(d *gpu.Device, p *gpu.Pipeline, c Case, buffers []*gpu.Buffer) (*gpu.BindGroup, error) {
	ranges := make([]gpu.Range, len(buffers))
	for i, b := range buffers {
		ranges[i] = gpu.Range{Buffer: b}
		if c.Kernel.Slots[i].Access != program.Access_UNIFORM {
			// The near half of the guard is bound too: WGSL would keep a stray index within the binding.
			ranges[i] = gpu.Range{Buffer: b, Offset: guard, Size: b.Size() - guard - guard/2}
		}
	}
	return d.NewBindGroup(p, "case", ranges)
}

// pipelines keeps what was compiled: many cases run on one kernel.
var pipelines = map[string]*gpu.Pipeline{}

func pipeline(d *gpu.Device, k *program.Kernel) (*gpu.Pipeline, error) {
	if p, ok := pipelines[k.Wgsl]; ok {
		return p, nil
	}
	var bindings []gpu.BindingType
	for _, s := range k.Slots {
		bindings = append(bindings, map[program.Access]gpu.BindingType{program.Access_READ: gpu.ReadStorage,
			program.Access_READ_WRITE: gpu.Storage, program.Access_UNIFORM: gpu.Uniform}[s.Access])
	}
	p, err := d.NewPipeline(k.Name, k.Wgsl, bindings)
	if err == nil {
		pipelines[k.Wgsl] = p
	}
	return p, err
}

// guarded reports whether the poison around a variable's memory is whole, or
// the first byte that is not, counted from the variable's start.
func guarded(raw []byte, m *program.Memory) (at int, ok bool) {
	want := encode(m, false)
	for i, b := range raw {
		if (i < guard || i >= guard+size(m)) && b != want[i] {
			return i - guard, false
		}
	}
	return 0, true
}
