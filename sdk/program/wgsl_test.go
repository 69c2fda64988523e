package program

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const matvecWGSL = `
// y = W·x; @binding(9) in a comment does not count
/* nor /* nested */ var<storage> nothing: u32; */
override W: u32 = 64u;
const LANES: u32 = W / 8u;
const L2 = (LANES + 1u) * 2u;
alias Quad = vec4<u32>;
alias Words = array<Quad>;

struct Step { T: u32, pos0: u32, S: u32, row0: u32, O: u32, G: u32, chunk: u32, pad: u32 }
struct Constants {
  rows: u32,
  cols: u32, // in values
  planes: vec4<u32>,
  eps: f32,
  pair: vec2f,
  rest: array<vec4<u32>, 2>,
  last: i32,
}

@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(0) var<storage, read> w: Words;
@binding(1) @group(0) var<storage> x: array<vec4f>;
@group(0) @binding(3) var<uniform> step: Step;
@group(0) @binding(4) var<uniform> c: Constants;
var<workgroup> part: array<array<f32, 4>, W>;
var<workgroup> total: atomic<u32>;
var<private> scratch: array<f32, 4> = array<f32, 4>();

fn dot4(a: vec4<f32>, b: vec4<f32>) -> f32 { if (a.x < b.x) { return 0.0; } return dot(a, b); }

@compute @workgroup_size(W, L2)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) li: u32) {
  for (var i = 0u; i < 4u; i++) { y[i] = x[i].x; }
}
`

func TestParseWGSL(t *testing.T) {
	d, err := ParseWGSL(matvecWGSL)
	if err != nil {
		t.Fatal(err)
	}
	wantSlots := "w READ array<vec4<u32>>, x READ array<vec4<f32>>, y READ_WRITE array<f32>, step UNIFORM Step, c UNIFORM Constants"
	var slots []string
	for i, s := range d.Slots {
		slots = append(slots, fmt.Sprintf("%s %v %s", s.Name, s.Access, d.Types[i]))
	}
	if have := strings.Join(slots, ", "); have != wantSlots {
		t.Errorf("slots:\nhave %s\nwant %s", have, wantSlots)
	}
	wantFields := []Field{
		{"rows", "u32", 0, 4},
		{"cols", "u32", 4, 4},
		{"planes", "vec4<u32>", 16, 16},
		{"eps", "f32", 32, 4},
		{"pair", "vec2<f32>", 40, 8},
		{"rest", "array<vec4<u32>,2>", 48, 32},
		{"last", "i32", 80, 4},
	}
	if !reflect.DeepEqual(d.Constants, wantFields) {
		t.Errorf("constants:\nhave %v\nwant %v", d.Constants, wantFields)
	}
	if d.ConstantBytes != 96 {
		t.Errorf("constant bytes: have %d, want 96", d.ConstantBytes)
	}
	if want := [3]uint32{64, 18, 1}; d.Workgroup != want {
		t.Errorf("workgroup: have %v, want %v", d.Workgroup, want)
	}
	if want := uint32(64*16 + 4); d.WorkgroupBytes != want {
		t.Errorf("workgroup bytes: have %d, want %d", d.WorkgroupBytes, want)
	}
	if d.NumWorkgroups {
		t.Error("num_workgroups: have true, want false")
	}
}

func TestParseWGSLWithoutEntry(t *testing.T) {
	d, err := ParseWGSL("fn f() {}")
	if err != nil || d.Workgroup != [3]uint32{} || d.Slots != nil || d.Constants != nil || d.ConstantBytes != 0 {
		t.Errorf("have %+v, %v, want an empty Decl", d, err)
	}
}

func TestParseWGSLSeesNumWorkgroups(t *testing.T) {
	d, err := ParseWGSL("@compute @workgroup_size(1) fn main(@builtin(num_workgroups) n: vec3<u32>) {}")
	if err != nil || !d.NumWorkgroups {
		t.Errorf("have %+v, %v, want NumWorkgroups", d, err)
	}
}

func TestParseWGSLRefuses(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"gap in bindings":      {"@group(0) @binding(1) var<storage> x: array<u32>;", "binding 1, want 0"},
		"binding twice":        {"@group(0) @binding(0) var<storage> x: array<u32>; @group(0) @binding(0) var<storage> y: array<u32>;", "variable y: have binding 0, want 1"},
		"another group":        {"@group(1) @binding(0) var<storage> x: array<u32>;", "have group 1, want 0"},
		"no group":             {"@binding(0) var<storage> x: array<u32>;", "both @group and @binding"},
		"binding no number":    {"@group(0) @binding(N) var<storage> x: array<u32>;", "@binding(N)"},
		"binding too large":    {"@group(0) @binding(65) var<storage> x: array<u32>;", "numbers up to 64"},
		"write-only storage":   {"@group(0) @binding(0) var<storage, write> x: array<u32>;", "var<storage, write>"},
		"bound private":        {"@group(0) @binding(0) var<private> x: u32;", "want uniform or storage"},
		"constant of bool":     {"struct Constants { a: bool }", "Constants.a: have type bool"},
		"constant array":       {"struct Constants { a: array<u32, 4> }", "Constants.a: have type array<u32,4>"},
		"constant with align":  {"struct Constants { @align(16) a: u32 }", "no @align"},
		"constants without":    {"struct Constants { }", "no fields"},
		"constant of length 0": {"struct Constants { a: array<vec4<u32>, 0> }", "Constants.a"},
		"constants too large":  {"struct Constants { a: array<vec4<u32>, 4097> }", "want at most 65536"},
		"struct twice":         {"struct A { a: u32 } struct A { a: u32 }", "struct A is declared twice"},
		"two mains":            {"@compute @workgroup_size(1) fn main() {} @compute @workgroup_size(1) fn main() {}", "two entry points"},
		"workgroup of nothing": {"@compute @workgroup_size() fn main() {}", "no arguments"},
		"workgroup of zero":    {"@compute @workgroup_size(0) fn main() {}", "@workgroup_size(0)"},
		"workgroup unknown":    {"@compute @workgroup_size(N) fn main() {}", "@workgroup_size(N)"},
		"workgroup recursive":  {"const A = B; const B = A; @compute @workgroup_size(A) fn main() {}", "@workgroup_size(A)"},
		"workgroup overflows":  {"const A = 0xffffffffffffffff + 2; @compute @workgroup_size(A) fn main() {}", "@workgroup_size(A)"},
		"workgroup below zero": {"@compute @workgroup_size(1 - 2) fn main() {}", "@workgroup_size(1-2)"},
		"workgroup by zero":    {"@compute @workgroup_size(1 / 0) fn main() {}", "@workgroup_size(1/0)"},
		"four dimensions":      {"@compute @workgroup_size(1,1,1,1) fn main() {}", "4 arguments"},
		"source too long":      {strings.Repeat(" ", maxWGSL+1), "bytes of source"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseWGSL(c.src)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have error %v, want one with %q", err, c.want)
			}
		})
	}
}

// Aliases that double at each step must not double the work.
func TestParseWGSLBoundsAliases(t *testing.T) {
	var b strings.Builder
	for i := range 64 {
		fmt.Fprintf(&b, "alias A%d = array<A%d, A%d>; const C%d = C%d + C%d;\n", i, i+1, i+1, i, i+1, i+1)
	}
	b.WriteString("const C64 = 1; var<workgroup> s: A0; var<workgroup> t: array<f32, C0>; @group(0) @binding(0) var<storage> x: A0;")
	if _, err := ParseWGSL(b.String()); err != nil {
		t.Fatal(err)
	}
}

func FuzzParseWGSL(f *testing.F) {
	f.Add(matvecWGSL)
	f.Add("@group(0) @binding(0) var<storage, read_write> x : array<vec4<u32>>;\r\n@compute @workgroup_size(64)fn main(){}")
	f.Add("struct Constants{a:vec3<f32>,b:f32,};alias X=Y;alias Y=X;const A=(A);var<workgroup> s:X;")
	f.Add("/* open @ ( < { \" '")
	f.Fuzz(func(t *testing.T, src string) {
		d, err := ParseWGSL(src)
		if err != nil {
			return
		}
		if len(d.Slots) != len(d.Types) {
			t.Fatalf("have %d slots and %d types", len(d.Slots), len(d.Types))
		}
		var end uint32
		for _, c := range d.Constants {
			if c.Offset < end || c.Size == 0 {
				t.Fatalf("field %s overlaps or is empty: %+v", c.Name, d.Constants)
			}
			end = c.Offset + c.Size
		}
		if end > d.ConstantBytes || d.ConstantBytes%16 != 0 {
			t.Fatalf("fields end at %d of %d bytes", end, d.ConstantBytes)
		}
	})
}

// TestParseWGSLMemory: types that drivers choke on are refused wherever they are named, those of buffers and of the library are not.
func TestParseWGSLMemory(t *testing.T) {
	const main = "\n@compute @workgroup_size(64) fn main() { %s }"
	for name, c := range map[string]struct {
		module, body string
		fails        bool
	}{
		"small":            {"", "var a: array<f32, 256>; var b = array<vec4<f32>, 64>();", false},
		"variable":         {"", "var a: array<array<u32, 65536>, 16383>;", true},
		"overflow":         {"", "var a: array<array<array<array<u32, 65536>, 65536>, 65536>, 65536>;", true},
		"value":            {"", "let a = array<u32, 65536>()[i];", true},
		"many":             {"", strings.Repeat("{ var a: array<u32, 1024>; }", 9), true},
		"parameter":        {"fn f(a: array<u32, 65536>) {}", "", true},
		"private":          {"var<private> a: array<u32, 65536>;", "", true},
		"constant":         {"const a = array<u32, 65536>();", "", true},
		"alias":            {"alias A = array<u32, N>; const N = 65536;", "var a: A;", true},
		"struct":           {"struct A { a: array<u32, 4096>, b: array<u32, 8192> }", "var a: A;", true},
		"structs":          {"struct A { a: B, b: B } struct B { a: C, b: C } struct C { a: array<u32, 4096> }", "var a: A;", true},
		"struct in itself": {"struct A { a: A, b: array<A, 9> }", "var a: A;", false}, // the compiler's to refuse
		"buffer":           {"@group(0) @binding(0) var<storage> a: array<array<u32, 65536>, 9>; struct B { a: array<u32, 65536> } @group(0) @binding(1) var<storage> b: B;", "", false},
		"workgroup":        {"var<workgroup> a: array<u32, 8192>; fn f(a: ptr<workgroup, array<u32, 8192>>) {}", "f(&a);", false},
	} {
		_, err := ParseWGSL(c.module + fmt.Sprintf(main, c.body))
		if have := err != nil && strings.Contains(err.Error(), "32768 bytes in all"); have != c.fails || !c.fails && err != nil {
			t.Errorf("%s: have %v", name, err)
		}
	}
	if _, err := ParseWGSL("var<workgroup> a: array<array<array<array<u32, 65536>, 65536>, 65536>, 65536>;" + fmt.Sprintf(main, "")); err == nil {
		t.Error("a workgroup's memory that overflows passes")
	}
}
