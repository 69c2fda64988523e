package program_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
	"github.com/sluicehost/sluice/sdk/rpc"
)

const planFormat = "../../docs/plan-format.md"

var definition = regexp.MustCompile("^\\| `(\\w+)` \\|")

// planFormatRows reads docs/plan-format.md: the rows that define a field or a
// value by message.field, the text of each ## section by its heading, and the
// ### headings, which name messages and enums.
func planFormatRows(t *testing.T) (rows map[string]string, sections map[string]string, messages []string) {
	t.Helper()
	rows, sections = map[string]string{}, map[string]string{}
	section, message := "", ""
	for i, line := range strings.Split(read(t, planFormat), "\n") {
		switch m := definition.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "## "):
			section, message = line, ""
		case strings.HasPrefix(line, "### "):
			message = strings.TrimPrefix(line, "### ")
			if slices.Contains(messages, message) {
				t.Errorf("%s:%d: a second heading %s", planFormat, i+1, message)
			}
			messages = append(messages, message)
		case m != nil:
			name := message + "." + m[1]
			if _, twice := rows[name]; twice {
				t.Errorf("%s:%d: defines %s twice", planFormat, i+1, name)
			}
			rows[name] = line
		}
		sections[section] += line + "\n"
	}
	return rows, sections, messages
}

// Every message, field, enum and value of the contract is defined once, and nothing else is.
func TestPlanFormatDefinesEveryField(t *testing.T) {
	rows, _, messages := planFormatRows(t)
	wanted := map[string]bool{}
	want := func(message string, fields ...protoreflect.Name) {
		if !slices.Contains(messages, message) {
			t.Errorf("%s has no heading ### %s", planFormat, message)
		}
		wanted[message] = true
		for _, f := range fields {
			name := message + "." + string(f)
			wanted[name] = true
			if rows[name] == "" {
				t.Errorf("%s: under ### %s no row defines `%s`", planFormat, message, f)
			}
		}
	}
	for prefix, file := range map[string]protoreflect.FileDescriptor{"": program.File_sdk_program_program_proto, "rpc.": rpc.File_sdk_rpc_architecture_proto} {
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			var fields []protoreflect.Name
			for j := range m.Fields().Len() {
				fields = append(fields, m.Fields().Get(j).Name())
			}
			want(prefix+string(m.Name()), fields...)
		}
		for i := range file.Enums().Len() {
			e := file.Enums().Get(i)
			var values []protoreflect.Name
			for j := range e.Values().Len() {
				values = append(values, e.Values().Get(j).Name())
			}
			want(prefix+string(e.Name()), values...)
		}
	}
	for name := range rows {
		if !wanted[name] {
			t.Errorf("%s defines %s, which the schema does not have", planFormat, name)
		}
	}
	for _, m := range messages {
		if !wanted[m] {
			t.Errorf("%s has a heading ### %s, which the schema does not have", planFormat, m)
		}
	}
}

// The numbers are those that the validator uses.
func TestPlanFormatLimits(t *testing.T) {
	rows, sections, _ := planFormatRows(t)
	for name, limits := range program.DocLimits {
		text := rows[name]
		if strings.HasPrefix(name, "## ") {
			text = sections[name]
		}
		for _, n := range limits {
			if !regexp.MustCompile(`(^|[^\d,])` + thousands(n) + `($|[^\d,]|, )`).MatchString(text) {
				t.Errorf("%s: %s: have %q, want %s in it", planFormat, name, text, thousands(n))
			}
		}
	}
	process := sections["## The process"]
	for _, want := range []string{rpc.Handshake().MagicCookieKey, rpc.Handshake().MagicCookieValue, rpc.EnvLog, rpc.EnvStdin,
		fmt.Sprintf("%d MiB", rpc.MessageLimit>>20), string(rpc.File_sdk_rpc_architecture_proto.Services().Get(0).FullName())} {
		if !strings.Contains(process, want) {
			t.Errorf("%s: ## The process lacks %s", planFormat, want)
		}
	}
}

// thousands writes 65536 as 65,536.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// The table of GPU forms is that of sdk/ggml: every type, the size of every plane.
func TestPlanFormatPlanes(t *testing.T) {
	_, sections, _ := planFormatRows(t)
	var types []string
	for _, line := range strings.Split(sections["## GPU forms"], "\n") {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if len(cells) != 7 {
			continue
		}
		id, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue // the heading
		}
		name, form := strings.TrimSpace(cells[0]), planesOf(t, ggml.Type(id))
		types = append(types, name)
		if name != ggml.Type(id).String() {
			t.Errorf("type %d: have %s, want %v", id, name, ggml.Type(id))
		}
		for i := range 4 {
			have, _, _ := strings.Cut(strings.TrimSpace(cells[2+i]), ":")
			if have != form[i] {
				t.Errorf("%s, plane %d: have %q bytes, want %q", name, i, have, form[i])
			}
		}
	}
	if have := strings.Join(types, ", "); have != ggml.FormNames() {
		t.Errorf("types: have %s\nwant %s", have, ggml.FormNames())
	}
}

// planesOf is the size of each plane of a type as the table has it: bytes a
// unit, or 4/8 for bytes a superblock.
func planesOf(t *testing.T, typ ggml.Type) (cells [4]string) {
	t.Helper()
	form, ok := ggml.Form(typ)
	if !ok {
		t.Fatalf("%v has no GPU form", typ)
	}
	spans, err := form.Spans(1, 8*ggml.UnitSize, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range spans {
		if cells[i] = fmt.Sprint(s.Len / 8); s.Len < 8 {
			cells[i] = fmt.Sprintf("%d/8", s.Len)
		}
	}
	return cells
}

// The kernel in the document is one that the host reads.
func TestPlanFormatKernel(t *testing.T) {
	_, sections, _ := planFormatRows(t)
	_, rest, _ := strings.Cut(sections["## Kernels"], "```wgsl\n")
	src, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatalf("%s has no kernel under ## Kernels", planFormat)
	}
	d, err := program.ParseWGSL(src)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for i, s := range d.Slots {
		have = append(have, fmt.Sprintf("%s %v %s", s.Name, s.Access, d.Types[i]))
	}
	want := "step UNIFORM Step, c UNIFORM Constants, w READ array<vec4<u32>>, x READ array<f32>, y READ_WRITE array<f32>"
	if strings.Join(have, ", ") != want || d.Workgroup != [3]uint32{64, 1, 1} || d.ConstantBytes != 32 {
		t.Errorf("have %v, workgroup %v, %d bytes of constants, want %s", have, d.Workgroup, d.ConstantBytes, want)
	}
	if step := read(t, "../kernels/lib/step.wgsl"); !strings.Contains(step, strings.SplitN(src, "\n", 2)[0]) {
		t.Errorf("the library's Step is another:\n%s", step)
	}
}
