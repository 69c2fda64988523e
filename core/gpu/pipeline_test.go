package gpu_test

import (
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

func TestPipelineRefused(t *testing.T) {
	d := gputest.Open(t)
	for _, tt := range []struct {
		name, wgsl string
		types      []gpu.BindingType
		want       []string
	}{
		{"syntax", "@compute @workgroup_size(1)\nfn main() {\n  let a = ;\n}", nil, []string{"line 3", `"let a = ;"`, "expected expression"}},
		{"unknown name", "@compute @workgroup_size(1)\nfn main() { let a = bcx; }", nil, []string{"line 2", "bcx"}},
		{"type", "@compute @workgroup_size(1)\nfn main() {\n let a: u32 = 1.5;\n}", nil, []string{"line 3", "let a: u32 = 1.5;"}},
		{"assigns to read-only", "@group(0) @binding(0) var<storage, read> w: array<u32>;\n@compute @workgroup_size(1)\nfn main() {\n w[0] = 1u;\n}",
			[]gpu.BindingType{gpu.ReadStorage}, []string{"line 4", "w[0] = 1u;", "not permitted"}},
		{"layout says read-only", "@group(0) @binding(0) var<storage, read_write> w: array<u32>;\n@compute @workgroup_size(1)\nfn main() { w[0] = 1u; }",
			[]gpu.BindingType{gpu.ReadStorage}, []string{"binding: 0"}},
		{"layout says uniform", "@group(0) @binding(0) var<storage, read> w: array<u32>;\n@compute @workgroup_size(1)\nfn main() { var a = w[0]; a += 1u; }",
			[]gpu.BindingType{gpu.Uniform}, []string{"binding: 0"}},
		{"binding missing", "@group(0) @binding(1) var<storage, read> w: array<u32>;\n@compute @workgroup_size(1)\nfn main() { var a = w[0]; a += 1u; }",
			[]gpu.BindingType{gpu.ReadStorage}, []string{"binding: 1"}},
		{"no main", "@compute @workgroup_size(1) fn other() {}", nil, []string{"main"}},
		{"workgroup too large", "@compute @workgroup_size(4096) fn main() {}", nil, []string{"4096"}},
		{"empty", "", nil, []string{"main"}},
		{"NUL", "@compute @workgroup_size(1) fn main() {}\x00", nil, []string{"NUL"}},
		{"not UTF-8", "@compute @workgroup_size(1) fn main() {} // \xff", nil, []string{"UTF-8"}},
		{"too long", strings.Repeat("//\n", 1<<19), nil, []string{"at most"}},
		{"too deep", "\nfn f() { var a = " + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000) + "; }", nil, []string{"line 2", "nested"}},
		{"many terms", "\n\nfn f() { var a = 1; a = a" + strings.Repeat(" + a", 20000) + "; }", nil, []string{"line 3", "a statement of over"}},
		{"many signs", "fn f() { let a = " + strings.Repeat("- ", 100000) + "1; }", nil, []string{"a statement of over"}},
		{"deep type", "alias a = " + strings.Repeat("array<", 60000) + "u32" + strings.Repeat(",1>", 60000) + ";", nil, []string{"a statement of over"}},
		{"long chain of else", "fn f() { var a = 1; if a == 2 {} " + strings.Repeat("else if a == 3 {} ", 20000) + "}", nil, []string{"over 1024 times else"}},
		{"unknown binding type", "@compute @workgroup_size(1) fn main() {}", []gpu.BindingType{9}, []string{"binding 0", "BindingType(9)"}},
		{"too many bindings", "@compute @workgroup_size(1) fn main() {}", make([]gpu.BindingType, 1001), []string{"have 1001 bindings"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := d.NewPipeline("matvec.q4_0", tt.wgsl, tt.types)
			if err == nil {
				t.Fatal("have no error, want one")
			}
			t.Log(err)
			for _, want := range append(tt.want, "gpu: kernel matvec.q4_0: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("have %q, want it with %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("have more than one line: %q", err)
			}
		})
	}
}

// TestPipelines compiles many at once, with and without bad ones among them.
func TestPipelines(t *testing.T) {
	d := gputest.Open(t)
	types := []gpu.BindingType{gpu.Storage}
	var specs []gpu.PipelineSpec
	for i := range 12 {
		specs = append(specs, gpu.PipelineSpec{Label: "good" + string(rune('a'+i)), WGSL: tiny(i), Bindings: types})
	}
	ps, err := d.NewPipelines(specs)
	if err != nil {
		t.Fatal(err)
	}
	b := newBuffer(t, d, 256, anyUse)
	for i, p := range ps {
		g, err := d.NewBindGroup(p, "g", []gpu.Range{{Buffer: b}})
		if err != nil {
			t.Fatal(err)
		}
		var c gpu.Commands
		c.Clear(b, 0, 256)
		c.Dispatch(p, g, 1, 1, 1)
		if err := d.Submit(&c); err != nil {
			t.Fatal(err)
		}
		if got := readWords(t, d, b)[0]; got != uint32(i) {
			t.Errorf("kernel %s: have %d, want %d", p.Label(), got, i)
		}
		g.Release()
		p.Release()
		p.Release()
	}
	specs[3] = gpu.PipelineSpec{Label: "broken.one", WGSL: "fn", Bindings: nil}
	specs[8] = gpu.PipelineSpec{Label: "broken.two", WGSL: tiny(1), Bindings: []gpu.BindingType{gpu.ReadStorage}}
	for range 5 {
		_, err = d.NewPipelines(specs)
		if err == nil || !strings.Contains(err.Error(), "broken.one") || !strings.Contains(err.Error(), "broken.two") || strings.Contains(err.Error(), "good") {
			t.Fatalf("have %v, want both broken kernels named and no other", err)
		}
	}
	if ps, err := d.NewPipelines(nil); err != nil || len(ps) != 0 {
		t.Errorf("have %v, %v for no specs, want nothing", ps, err)
	}
}

func TestBindGroupRefused(t *testing.T) {
	d := gputest.Open(t)
	l := d.Limits()
	source := `
@group(0) @binding(0) var<uniform> u: vec4<u32>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read_write> x: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { x[0] = u.x + w[0]; y[0] = x[0]; }`
	p, err := d.NewPipeline("k", source, []gpu.BindingType{gpu.Uniform, gpu.ReadStorage, gpu.Storage, gpu.Storage})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	all := anyUse | gpu.UsageUniform
	u, w, x, y := newBuffer(t, d, 1024, all), newBuffer(t, d, 1024, all), newBuffer(t, d, 1024, all), newBuffer(t, d, 1024, all)
	big := newBuffer(t, d, l.MaxUniformBinding+256, all)
	gone := newBuffer(t, d, 1024, all)
	gone.Release()
	other := own(t)
	foreign := newBuffer(t, other, 1024, all)
	good := []gpu.Range{{Buffer: u}, {Buffer: w}, {Buffer: x}, {Buffer: y}}
	if g, err := d.NewBindGroup(p, "good", good); err != nil {
		t.Fatal(err)
	} else {
		g.Release()
	}
	for _, tt := range []struct {
		name string
		at   int
		r    gpu.Range
		want string
	}{
		{"no buffer", 1, gpu.Range{}, "no buffer"},
		{"usage", 0, gpu.Range{Buffer: newBuffer(t, d, 64, gpu.UsageStorage)}, "want uniform"},
		{"uniform offset", 0, gpu.Range{Buffer: u, Offset: 4}, "multiple of"},
		{"storage offset", 1, gpu.Range{Buffer: w, Offset: 4}, "multiple of"},
		{"offset at end", 1, gpu.Range{Buffer: w, Offset: 1024}, "within the buffer's 1024"},
		{"offset past end", 1, gpu.Range{Buffer: w, Offset: 1 << 40}, "within the buffer's 1024"},
		{"size past end", 1, gpu.Range{Buffer: w, Offset: 512, Size: 516}, "within the buffer's 1024"},
		{"size overflows", 1, gpu.Range{Buffer: w, Offset: 512, Size: ^uint64(0)}, "within the buffer's 1024"},
		{"odd size", 1, gpu.Range{Buffer: w, Size: 6}, "multiple of 4"},
		{"uniform too large", 0, gpu.Range{Buffer: big}, "split it"},
		{"read and written", 1, gpu.Range{Buffer: x}, "use two buffers"},
		{"read and written apart", 1, gpu.Range{Buffer: x, Size: 256}, "use two buffers"},
		{"uniform and written", 0, gpu.Range{Buffer: y, Size: 256}, "use two buffers"},
		{"written twice", 3, gpu.Range{Buffer: x}, "use two buffers"},
		{"released", 1, gpu.Range{Buffer: gone}, "released"},
		{"foreign", 1, gpu.Range{Buffer: foreign}, "another device"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ranges := append([]gpu.Range(nil), good...)
			ranges[tt.at] = tt.r
			if tt.name == "read and written apart" {
				ranges[2] = gpu.Range{Buffer: x, Offset: 512}
			}
			_, err := d.NewBindGroup(p, "blk.0", ranges)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "blk.0") || !strings.Contains(err.Error(), "kernel k") {
				t.Errorf("have %v, want an error with the labels and %q", err, tt.want)
			}
		})
	}
	if _, err := d.NewBindGroup(p, "short", good[:3]); err == nil || !strings.Contains(err.Error(), "3 ranges, want 4") {
		t.Errorf("have %v, want the count refused", err)
	}
	halves := append([]gpu.Range(nil), good...)
	halves[2], halves[3] = gpu.Range{Buffer: x, Size: 512}, gpu.Range{Buffer: x, Offset: 512}
	g, err := d.NewBindGroup(p, "halves", halves)
	if err != nil {
		t.Fatalf("disjoint written halves: %v", err)
	}
	var c gpu.Commands
	c.Dispatch(p, g, 1, 1, 1)
	if err := d.Submit(&c); err != nil {
		t.Error(err)
	}
}
