package program_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/sluicehost/sluice/sdk/program"
	"github.com/sluicehost/sluice/sdk/rpc"
)

// protoFile is a schema, what was generated from it, and its descriptor in this binary.
type protoFile struct {
	source    string
	generated []string
	built     protoreflect.FileDescriptor
}

var protoFiles = []protoFile{
	{"program.proto", []string{"program.pb.go"}, program.File_sdk_program_program_proto},
	{"../rpc/architecture.proto", []string{"../rpc/architecture.pb.go", "../rpc/architecture_grpc.pb.go"}, rpc.File_sdk_rpc_architecture_proto},
}

const regenerate = "run make proto and commit what it writes"

// What was generated declares what the schemas declare, field by field.
func TestGeneratedCodeIsOfTheSchemas(t *testing.T) {
	for _, f := range protoFiles {
		want := parseProto(t, f.source)
		have := describe(f.built)
		for i := range max(len(want), len(have)) {
			w, h := "nothing more", "nothing more"
			if i < len(want) {
				w = want[i]
			}
			if i < len(have) {
				h = have[i]
			}
			if w != h {
				t.Errorf("%s says\n\t%s\nthe generated code\n\t%s\n%s", f.source, w, h, regenerate)
				break
			}
		}
	}
}

// The service that gRPC serves is the one in the schema.
func TestGeneratedServiceIsOfTheSchema(t *testing.T) {
	have := rpc.Architecture_ServiceDesc
	want := rpc.File_sdk_rpc_architecture_proto.Services().Get(0)
	if have.ServiceName != string(want.FullName()) || len(have.Methods) != want.Methods().Len() || have.Metadata != want.ParentFile().Path() {
		t.Fatalf("have service %s with %d methods of %v, want %s with %d: %s", have.ServiceName, len(have.Methods), have.Metadata,
			want.FullName(), want.Methods().Len(), regenerate)
	}
	for i, m := range have.Methods {
		if m.MethodName != string(want.Methods().Get(i).Name()) {
			t.Errorf("method %d: have %s, want %s: %s", i, m.MethodName, want.Methods().Get(i).Name(), regenerate)
		}
	}
}

// Comments are generated too: those of a Go author's documentation.
func TestGeneratedCommentsAreOfTheSchemas(t *testing.T) {
	for _, f := range protoFiles {
		var generated string
		for _, name := range f.generated {
			generated += read(t, name)
		}
		for i, line := range strings.Split(read(t, f.source), "\n") {
			_, comment, found := strings.Cut(line, "//")
			comment = strings.TrimSpace(comment)
			if found && !strings.HasPrefix(comment, "----") && !strings.Contains(generated, comment) {
				t.Errorf("%s:%d: the generated code lacks the comment %q: %s", f.source, i+1, comment, regenerate)
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// describe lists the declarations of a descriptor, a line each, as parseProto does.
func describe(f protoreflect.FileDescriptor) []string {
	lines := []string{"package " + string(f.Package())}
	for i := range f.Imports().Len() {
		lines = append(lines, "import "+f.Imports().Get(i).Path())
	}
	lines = append(lines, "go_package "+f.Options().(*descriptorpb.FileOptions).GetGoPackage())
	var messages, enums, services []string
	for i := range f.Messages().Len() {
		messages = append(messages, describeMessage(f.Messages().Get(i))...)
	}
	for i := range f.Enums().Len() {
		e := f.Enums().Get(i)
		enums = append(enums, "enum "+string(e.Name()))
		for j := range e.Values().Len() {
			enums = append(enums, fmt.Sprintf("%s.%s = %d", e.Name(), e.Values().Get(j).Name(), e.Values().Get(j).Number()))
		}
	}
	for i := range f.Services().Len() {
		s := f.Services().Get(i)
		services = append(services, "service "+string(s.Name()))
		for j := range s.Methods().Len() {
			m := s.Methods().Get(j)
			services = append(services, fmt.Sprintf("%s.%s %s %s", s.Name(), m.Name(), m.Input().FullName(), m.Output().FullName()))
		}
	}
	return append(append(append(lines, messages...), enums...), services...)
}

func describeMessage(m protoreflect.MessageDescriptor) []string {
	lines := []string{"message " + string(m.Name())}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		typ := kind(f)
		switch {
		case f.IsMap():
			typ = fmt.Sprintf("map %s %s", kind(f.MapKey()), kind(f.MapValue()))
		case f.IsList():
			typ = "repeated " + typ
		case f.ContainingOneof() != nil:
			typ = "oneof " + string(f.ContainingOneof().Name()) + " " + typ
		}
		lines = append(lines, fmt.Sprintf("%s.%s %s = %d", m.Name(), f.Name(), typ, f.Number()))
	}
	return lines
}

// kind is a field's type without its label.
func kind(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Message() != nil:
		return string(f.Message().FullName())
	case f.Enum() != nil:
		return string(f.Enum().FullName())
	}
	return f.Kind().String()
}

var protoToken = regexp.MustCompile(`//.*|"[^"]*"|[\w.]+|[^\s\w]`)

// protoParser reads the proto3 that our schemas are written in: no nesting but
// of oneofs, no options but go_package.
type protoParser struct {
	t                         *testing.T
	toks                      []string
	pkg                       string
	head                      []string
	messages, enums, services []string
}

// parseProto lists the declarations of a schema, a line each: messages, enums
// and services, in the order of a descriptor.
func parseProto(t *testing.T, file string) []string {
	t.Helper()
	p := &protoParser{t: t}
	for _, tok := range protoToken.FindAllString(read(t, file), -1) {
		if !strings.HasPrefix(tok, "//") {
			p.toks = append(p.toks, tok)
		}
	}
	for len(p.toks) > 0 {
		switch word := p.next(); word {
		case "syntax":
			p.want("=", `"proto3"`, ";")
		case "package":
			p.pkg = p.next()
			p.head = append(p.head, "package "+p.pkg)
			p.want(";")
		case "import":
			p.head = append(p.head, "import "+strings.Trim(p.next(), `"`))
			p.want(";")
		case "option":
			p.want("go_package", "=")
			p.head = append(p.head, "go_package "+strings.Trim(p.next(), `"`))
			p.want(";")
		case "message":
			p.message(p.next())
		case "enum":
			p.enum(p.next())
		case "service":
			p.service(p.next())
		default:
			t.Fatalf("%s: have %q, want a declaration that this test's parser knows", file, word)
		}
	}
	return append(append(append(p.head, p.messages...), p.enums...), p.services...)
}

func (p *protoParser) next() string {
	p.t.Helper()
	if len(p.toks) == 0 {
		p.t.Fatal("the schema ends within a declaration")
	}
	tok := p.toks[0]
	p.toks = p.toks[1:]
	return tok
}

func (p *protoParser) want(toks ...string) {
	p.t.Helper()
	for _, want := range toks {
		if have := p.next(); have != want {
			p.t.Fatalf("have %q in the schema, want %q", have, want)
		}
	}
}

func (p *protoParser) message(name string) {
	p.messages = append(p.messages, "message "+name)
	p.want("{")
	for tok := p.next(); tok != "}"; tok = p.next() {
		if tok != "oneof" {
			p.field(name, tok, "")
			continue
		}
		oneof := "oneof " + p.next() + " "
		p.want("{")
		for tok := p.next(); tok != "}"; tok = p.next() {
			p.field(name, tok, oneof)
		}
	}
}

// field reads a field whose first token is typ.
func (p *protoParser) field(message, typ, label string) {
	switch typ {
	case "repeated":
		typ = "repeated " + p.typ(p.next())
	case "map":
		p.want("<")
		key := p.next()
		p.want(",")
		typ = "map " + key + " " + p.typ(p.next())
		p.want(">")
	default:
		typ = label + p.typ(typ)
	}
	name := p.next()
	p.want("=")
	p.messages = append(p.messages, fmt.Sprintf("%s.%s %s = %s", message, name, typ, p.next()))
	p.want(";")
}

// typ is a type with its package where it is no scalar.
func (p *protoParser) typ(name string) string {
	if strings.ToLower(name[:1]) == name[:1] {
		return name
	}
	return p.pkg + "." + name
}

func (p *protoParser) enum(name string) {
	p.enums = append(p.enums, "enum "+name)
	p.want("{")
	for tok := p.next(); tok != "}"; tok = p.next() {
		p.want("=")
		p.enums = append(p.enums, fmt.Sprintf("%s.%s = %s", name, tok, p.next()))
		p.want(";")
	}
}

func (p *protoParser) service(name string) {
	p.services = append(p.services, "service "+name)
	p.want("{")
	for tok := p.next(); tok != "}"; tok = p.next() {
		method := p.next()
		p.want("(")
		in := p.typ(p.next())
		p.want(")", "returns", "(")
		p.services = append(p.services, fmt.Sprintf("%s.%s %s %s", name, method, in, p.typ(p.next())))
		p.want(")", ";")
	}
}
