package gpu

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/cogentcore/webgpu/wgpu"
)

// BindingType is how a kernel uses one binding.
type BindingType uint8

// The binding types.
const (
	Uniform     BindingType = iota // var<uniform>
	ReadStorage                    // var<storage, read>: weights, banks, tables
	Storage                        // var<storage, read_write>
)

// String is the WGSL form.
func (t BindingType) String() string {
	switch t {
	case Uniform:
		return "uniform"
	case ReadStorage:
		return "storage, read"
	case Storage:
		return "storage, read_write"
	}
	return fmt.Sprintf("BindingType(%d)", uint8(t))
}

// PipelineSpec is what a Pipeline is made of.
type PipelineSpec struct {
	Label    string        // names the kernel in errors
	WGSL     string        // one compute entry point named main
	Bindings []BindingType // of group 0, in the order of @binding
}

// Pipeline is a compiled kernel with its bind group layout.
type Pipeline struct {
	d        *Device
	label    string
	bindings []BindingType
	ref      handle // of p

	// The rest belongs to the owner goroutine.
	layout   *wgpu.BindGroupLayout
	p        *wgpu.ComputePipeline
	released bool
}

// Label is the name given in the spec.
func (p *Pipeline) Label() string { return p.label }

// Bindings are the types given in the spec.
func (p *Pipeline) Bindings() []BindingType { return p.bindings }

// NewPipeline compiles one kernel. An error names the label, and for a fault in the WGSL its line and that line's text. The
// layout is the bindings as given: a shader that uses one differently (writes a ReadStorage) is refused.
func (d *Device) NewPipeline(label, wgsl string, bindings []BindingType) (*Pipeline, error) {
	p, err := d.NewPipelines([]PipelineSpec{{label, wgsl, bindings}})
	if err != nil {
		return nil, err
	}
	return p[0], nil
}

// NewPipelines compiles kernels on all CPUs at once, in the order of specs. All errors are joined; with any, there are no
// pipelines.
func (d *Device) NewPipelines(specs []PipelineSpec) ([]*Pipeline, error) {
	out := make([]*Pipeline, len(specs))
	var bad []error
	for i, s := range specs {
		out[i] = &Pipeline{d: d, label: s.Label, bindings: append([]BindingType(nil), s.Bindings...)}
		if err := d.checkSpec(s); err != nil {
			bad = append(bad, err)
		}
	}
	if len(bad) > 0 {
		return nil, errors.Join(bad...)
	}
	if err := d.do(func() error { return d.compile(specs, out) }); err != nil {
		return nil, err
	}
	return out, nil
}

func (d *Device) checkSpec(s PipelineSpec) error {
	var uniforms, storages uint32
	for i, b := range s.Bindings {
		switch b {
		case Uniform:
			uniforms++
		case ReadStorage, Storage:
			storages++
		default:
			return fmt.Errorf("gpu: kernel %s: binding %d: have %s, want Uniform, ReadStorage or Storage", s.Label, i, b)
		}
	}
	if err := checkWGSL(s); err != nil {
		return err
	}
	l := d.limits
	switch {
	case uint64(len(s.Bindings)) > uint64(l.MaxBindingsPerGroup):
		return fmt.Errorf("gpu: kernel %s: have %d bindings, want at most %d", s.Label, len(s.Bindings), l.MaxBindingsPerGroup)
	case storages > l.MaxStorageBuffersPerStage:
		return fmt.Errorf("gpu: kernel %s: have %d storage bindings, want at most %d", s.Label, storages, l.MaxStorageBuffersPerStage)
	case uniforms > l.MaxUniformBuffersPerStage:
		return fmt.Errorf("gpu: kernel %s: have %d uniform bindings, want at most %d", s.Label, uniforms, l.MaxUniformBuffersPerStage)
	}
	return nil
}

// compile makes all pipelines at once. While it runs nothing else uses the library, but among its goroutines an error may
// land in the wrong one's scope (scopes are one stack per device): so after any error all are made again one by one.
func (d *Device) compile(specs []PipelineSpec, out []*Pipeline) error {
	if len(specs) > 1 && d.created(func() error { return compileParallel(d, specs, out) }) == nil {
		d.adopt(out)
		return nil
	}
	var bad []error
	for i, s := range specs {
		out[i].drop()
		if err := d.created(func() error { return out[i].build(s) }); err != nil {
			bad = append(bad, kernelError(s, err))
			out[i].drop()
		}
	}
	if len(bad) == 0 {
		d.adopt(out)
		return nil
	}
	for _, p := range out {
		p.drop()
	}
	return errors.Join(bad...)
}

func compileParallel(_ *Device, specs []PipelineSpec, out []*Pipeline) error {
	var wg sync.WaitGroup
	errs := make([]error, len(specs))
	next := make(chan int, len(specs))
	for i := range specs {
		next <- i
	}
	close(next)
	for range min(runtime.GOMAXPROCS(0), len(specs)) {
		wg.Go(func() {
			for i := range next {
				errs[i] = out[i].build(specs[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (d *Device) adopt(ps []*Pipeline) {
	for _, p := range ps {
		p.ref = pipelineRef(p.p)
		d.live[p] = struct{}{}
	}
}

var layoutTypes = [...]wgpu.BufferBindingType{
	Uniform: wgpu.BufferBindingTypeUniform, ReadStorage: wgpu.BufferBindingTypeReadOnlyStorage, Storage: wgpu.BufferBindingTypeStorage,
}

// build makes layout, module and pipeline; on an error drop cleans up.
func (p *Pipeline) build(s PipelineSpec) error {
	dev := p.d.n.device
	entries := make([]wgpu.BindGroupLayoutEntry, len(s.Bindings))
	for i, b := range s.Bindings {
		entries[i] = wgpu.BindGroupLayoutEntry{
			Binding: uint32(i), Visibility: wgpu.ShaderStageCompute, Buffer: wgpu.BufferBindingLayout{Type: layoutTypes[b]},
		}
	}
	module, err := dev.CreateShaderModule(&wgpu.ShaderModuleDescriptor{
		Label: s.Label, WGSLDescriptor: &wgpu.ShaderModuleWGSLDescriptor{Code: s.WGSL},
	})
	if err != nil {
		return err
	}
	defer module.Release()
	p.layout, err = dev.CreateBindGroupLayout(&wgpu.BindGroupLayoutDescriptor{Label: s.Label, Entries: entries})
	if err != nil {
		return err
	}
	layout, err := dev.CreatePipelineLayout(&wgpu.PipelineLayoutDescriptor{Label: s.Label, BindGroupLayouts: []*wgpu.BindGroupLayout{p.layout}})
	if err != nil {
		return err
	}
	defer layout.Release()
	p.p, err = dev.CreateComputePipeline(&wgpu.ComputePipelineDescriptor{
		Label: s.Label, Layout: layout, Compute: wgpu.ProgrammableStageDescriptor{Module: module, EntryPoint: "main"},
	})
	return err
}

// kernelError names the kernel, and the WGSL line where the message has one.
func kernelError(s PipelineSpec, err error) error {
	line, text, why := wgslError(s.WGSL, err.Error())
	if line == 0 {
		return fmt.Errorf("gpu: kernel %s: %s", s.Label, why)
	}
	return fmt.Errorf("gpu: kernel %s: line %d: %q: %s", s.Label, line, text, why)
}

// drop frees what build made.
func (p *Pipeline) drop() {
	if p.p != nil {
		p.p.Release()
	}
	if p.layout != nil {
		p.layout.Release()
	}
	p.p, p.layout = nil, nil
}

// Release frees the pipeline. Submitting it afterwards is refused. Releasing twice, or after Close, is fine.
func (p *Pipeline) Release() {
	_ = p.d.do(func() error { p.release(); return nil }) // ErrClosed: Close has released it
}

func (p *Pipeline) release() {
	if p.released {
		return
	}
	p.released = true
	p.drop()
	delete(p.d.live, p)
}
