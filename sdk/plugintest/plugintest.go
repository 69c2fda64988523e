// Package plugintest is the conformance kit for architecture plugins: Run holds one
// to every rule that can be checked without weights and without a GPU. An
// author calls it from a test with the header of a small file of the family.
package plugintest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/place"
	"github.com/sluicehost/sluice/sdk/program"
	"google.golang.org/protobuf/proto"
)

// Run checks a plugin with the header of a file that it runs. Each subtest is
// one rule and says, where it fails, why the rule is there:
//
//   - describe: name and version are there
//   - plan: valid, the same each time, every tensor accounted for
//   - encode: valid on a CPU device, on a GPU, and where bindings are so small that
//     weights are cut into bands; the same each time, in both cache types, and every block names
//     its result
//   - interpret: in float64 over random weights, logits are finite, the same however a prompt is cut
//     into chunks, and the same after a reset
//   - keys, tensors: a missing or broken one gives a refusal that names it, or does not matter
func Run(t *testing.T, a sdk.Architecture, f *File) {
	t.Run("describe", func(t *testing.T) { describe(t, a) })
	t.Run("plan", func(t *testing.T) { plan(t, a, f) })
	t.Run("encode", func(t *testing.T) { encode(t, a, f) })
	t.Run("interpret", func(t *testing.T) { interpret(t, a, f) })
	t.Run("keys", func(t *testing.T) { keys(t, a, f) })
	t.Run("tensors", func(t *testing.T) { tensors(t, a, f) })
}

var semver = regexp.MustCompile(`^\d+\.\d+\.\d+`)

func describe(t *testing.T, a sdk.Architecture) {
	d := a.Describe()
	if d.Name == "" || !semver.MatchString(d.Version) {
		t.Errorf("have name %q and version %q, want both, the version as in 1.2.3: the registry and error messages show them", d.Name, d.Version)
	}
}

// mustPlan plans the file in process, through the wire format.
func mustPlan(t *testing.T, a sdk.Architecture, h *program.Header) *program.Plan {
	t.Helper()
	p, err := sdk.InProcess(a).Plan(context.Background(), h)
	if err != nil {
		t.Fatalf("the plugin refuses the file: %v", err)
	}
	return p
}

func plan(t *testing.T, a sdk.Architecture, f *File) {
	h := f.Header()
	p := mustPlan(t, a, h)
	if err := program.ValidatePlan(h, p); err != nil {
		t.Errorf("the plan is not valid: the host would refuse it: %v", err)
	}
	if !proto.Equal(p, mustPlan(t, a, h)) {
		t.Error("two plans of one file differ: the host asks once and relies on the answer")
	}
	if len(p.Unused) > 0 {
		t.Errorf("tensors %v are not used: the test's file should hold none that the forward pass ignores", p.Unused)
	}
}

// device is a kind of device that programs must run on.
type device struct {
	name   string
	limits *program.Limits
}

var devices = []device{
	{"cpu", &program.Limits{MaxBinding: 128 << 20, MaxBindings: 32, MaxInvocations: 1024, WorkgroupBytes: 32 << 10, MaxGroups: 65535, LoopLimit: 65535, Cpu: true}},
	{"gpu", &program.Limits{MaxBinding: 2 << 30, MaxBindings: 1000, MaxInvocations: 1024, WorkgroupBytes: 48 << 10, MaxGroups: 65535}},
	{"small gpu", &program.Limits{MaxBinding: 128 << 20, MaxBindings: 8, MaxInvocations: 256, WorkgroupBytes: 16 << 10, MaxGroups: 65535}},
}

func encode(t *testing.T, a sdk.Architecture, f *File) {
	for _, d := range devices {
		for _, kvF32 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s f32 cache %v", d.name, kvF32), func(t *testing.T) { Encode(t, a, f, d.limits, kvF32) })
		}
	}
	t.Run("bands", func(t *testing.T) {
		small := proto.CloneOf(devices[0].limits)
		small.MaxBinding = smallestBinding(t, a, f)
		p, _, _, _ := Encode(t, a, f, small, true)
		t.Logf("%d weights in bindings of %d bytes", len(p.Weights), small.MaxBinding)
	})
}

// smallestBinding holds the records and the largest row of any weight four times: most
// matrices need several bands.
func smallestBinding(t *testing.T, a sdk.Architecture, f *File) uint64 {
	h := f.Header()
	p := mustPlan(t, a, h)
	records, err := place.Records(h, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(16 << 10)
	for _, r := range records {
		n = max(n, r.Stride*uint64(p.Model.TopK))
	}
	return n
}

// Encode plans, places and encodes a file and checks that the program is valid for steps of up to
// 64 tokens, and the same each time.
func Encode(t *testing.T, a sdk.Architecture, f *File, limits *program.Limits, kvF32 bool) (*program.Plan, []*program.Placed, []*program.PlacedRecord, *program.Program) {
	t.Helper()
	h := f.Header()
	p := mustPlan(t, a, h)
	weights, err := place.Weights(h, p, limits.MaxBinding)
	if err != nil {
		t.Fatal(err)
	}
	records, err := place.Records(h, p, limits.MaxBinding)
	if err != nil {
		t.Fatal(err)
	}
	req := &program.EncodeRequest{Header: h, Plan: p, Limits: limits, KvF32: kvF32, Weights: weights, Records: records}
	prog, err := sdk.InProcess(a).Encode(context.Background(), req)
	if err != nil {
		t.Fatalf("the plugin refuses weights that it asked for: %v", err)
	}
	if err := program.Validate(p, weights, records, prog, boundsFor(limits, prog)); err != nil {
		t.Errorf("the program is not valid: the host would refuse it: %v", err)
	}
	for _, rows := range []uint32{1, uint32(boundsFor(limits, prog).Chunk)} {
		results(t, p, prog, rows)
	}
	again, err := sdk.InProcess(a).Encode(context.Background(), req)
	if err != nil || !proto.Equal(prog, again) {
		t.Errorf("two programs for one file differ (%v): a result could not be reproduced", err)
	}
	return p, weights, records, prog
}

// boundsFor is what programs must be good for: long contexts and chunks, or short ones where
// longer can't fit the device's bindings.
func boundsFor(l *program.Limits, p *program.Program) program.Bounds {
	b := program.Bounds{Limits: l, StorageAlign: 256, UniformAlign: 256, Chunk: 64, Outs: 1, Context: 4096, MaxBuffer: 1 << 31}
	if l.MaxBinding < 64<<20 {
		b.Chunk, b.Context = 8, 64
	}
	for _, s := range p.Sections {
		if s.Kind != program.Kind_HEAD && s.Pick(2) == nil {
			b.Chunk = 1 // a program that takes one token at a time
		}
	}
	return b
}

// refusal plans a changed header: it gives the refusal's text, or "" where the plugin can do without.
func refusal(t *testing.T, a sdk.Architecture, h *program.Header) string {
	t.Helper()
	p, err := sdk.InProcess(a).Plan(context.Background(), h)
	if err != nil {
		if strings.Contains(err.Error(), "panic") {
			t.Errorf("the plugin panics: %v", err)
		}
		return err.Error()
	}
	if err := program.ValidatePlan(h, p); err != nil {
		t.Errorf("the plan is not valid, and the plugin did not notice: %v", err)
	}
	return ""
}

func keys(t *testing.T, a sdk.Architecture, f *File) {
	prefix := f.values["general.architecture"].(string) + "."
	for _, key := range f.keys {
		for name, change := range map[string]func(h *program.Header, i int){
			"missing":      func(h *program.Header, i int) { h.Metadata = append(h.Metadata[:i], h.Metadata[i+1:]...) },
			"a string":     func(h *program.Header, i int) { h.Metadata[i].Value = value("x") },
			"huge":         func(h *program.Header, i int) { h.Metadata[i].Value = value(1 << 40) },
			"zero":         func(h *program.Header, i int) { h.Metadata[i].Value = value(0) },
			"negative":     func(h *program.Header, i int) { h.Metadata[i].Value = value(-1.5) },
			"a short list": func(h *program.Header, i int) { h.Metadata[i].Value = value([]int{1}) },
		} {
			h := f.Header()
			for i := range h.Metadata {
				if h.Metadata[i].Key == key {
					change(h, i)
					break
				}
			}
			text := refusal(t, a, h)
			// A key with a default may be missed only through tensors that then don't fit.
			if text != "" && strings.HasPrefix(key, prefix) && !strings.Contains(text, key) && !strings.Contains(text, "tensor") {
				t.Errorf("key %s, %s: the refusal names neither it nor a tensor: %s", key, name, text)
			}
		}
	}
}

func tensors(t *testing.T, a sdk.Architecture, f *File) {
	for i, x := range f.tensors {
		for name, change := range map[string]func(h *program.Header){
			"missing":      func(h *program.Header) { h.Tensors = append(h.Tensors[:i], h.Tensors[i+1:]...) },
			"wider":        func(h *program.Header) { h.Tensors[i].Dims[0] += 256 },
			"another dim":  func(h *program.Header) { h.Tensors[i].Dims = append(h.Tensors[i].Dims, 2) },
			"type I32":     func(h *program.Header) { h.Tensors[i].Type = uint32(ggml.I32) },
			"unknown type": func(h *program.Header) { h.Tensors[i].Type = 9999 },
		} {
			h := f.Header()
			change(h)
			text := refusal(t, a, h)
			if text == "" && name != "missing" {
				t.Errorf("tensor %s, %s: the plugin takes it", x.Name, name)
			}
			if text != "" && !strings.Contains(text, x.Name) {
				t.Errorf("tensor %s, %s: the refusal does not name it: %s", x.Name, name, text)
			}
		}
	}
}

// Refused checks that the plugin refuses a file with an error that contains want.
func Refused(t *testing.T, a sdk.Architecture, f *File, want string) {
	t.Helper()
	if text := refusal(t, a, f.Header()); !strings.Contains(text, want) {
		t.Errorf("have refusal %q, want one with %q", text, want)
	}
}
