package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/sdk/ggml"
)

// noRegistry makes sure that none is found.
func noRegistry(t *testing.T) {
	t.Helper()
	t.Setenv("SLUICE_REGISTRY", "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
}

// oneSpace undoes the alignment of columns.
func oneSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestInspect(t *testing.T) {
	noRegistry(t)
	code, out, errs := hostIn(t.Context(), "", "inspect", tiny)
	if code != 0 || errs != "" {
		t.Fatalf("have code %d, errors %q", code, errs)
	}
	for _, want := range []string{
		"GGUF v3, 8.27 MB in 1 part, architecture lfm2moe, 13,623,872 parameters",
		"lfm2moe.block_count uint32 8",
		"(4096 values)",
		"blk.2.ffn_down_exps.weight Q4_0 [64 256 32] 295 kB experts",
		"experts 18 tensors 5.31 MB", "embedding 1 tensor 860 kB",
		"Q4_0 46 tensors 7.04 MB supported",
		"plugin: none: registry: no registry.yaml found: looked at:",
	} {
		if !strings.Contains(oneSpace(out), want) {
			t.Errorf("have no %q in\n%s", want, out)
		}
	}
	code, out, _ = hostIn(t.Context(), "", "inspect", tiny, "--registry", "../../registry.yaml")
	if code != 0 || !strings.Contains(out, "plugin: lfm2moe 0.1.0, ") || !strings.Contains(out, "known: looks like tiny-lfm2moe of the registry") {
		t.Errorf("with the registry: have code %d,\n%s", code, out)
	}
}

func TestInspectJSON(t *testing.T) {
	code, out, errs := hostIn(t.Context(), "", "inspect", tiny, "--json", "--registry", "../../registry.yaml")
	if code != 0 {
		t.Fatalf("have code %d, errors %q", code, errs)
	}
	var x struct {
		Architecture string
		Parameters   uint64
		Metadata     map[string]any
		Tensors      []inspectRow
		Kinds, Types []tally
		Supported    bool
		Plugin       *inspectPlugin
		Known        *inspectKnown
	}
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		t.Fatal(err)
	}
	tokens, _ := x.Metadata["tokenizer.ggml.tokens"].([]any)
	var sum int64
	for _, row := range x.Tensors {
		sum += row.Size
	}
	var kinds, types int64
	for _, k := range x.Kinds {
		kinds += k.Bytes
	}
	for _, k := range x.Types {
		types += k.Bytes
	}
	if x.Architecture != "lfm2moe" || x.Parameters != 13623872 || len(tokens) != 4096 || sum != kinds || sum != types || !x.Supported ||
		x.Plugin == nil || x.Plugin.Name != "lfm2moe" || x.Known == nil || x.Known.Name != "tiny-lfm2moe" {
		t.Errorf("have %s, %d parameters, %d tokens, sums %d %d %d, supported %v, plugin %v, known %v",
			x.Architecture, x.Parameters, len(tokens), sum, kinds, types, x.Supported, x.Plugin, x.Known)
	}
	if i, j := strings.Index(out, `"general.architecture"`), strings.Index(out, `"tokenizer.chat_template"`); i < 0 || j < i {
		t.Errorf("metadata: not in the order of the file: at %d and %d", i, j)
	}
}

// TestInspectOdd: values of every type, words that would harm a terminal, a type without kernels.
func TestInspectOdd(t *testing.T) {
	noRegistry(t)
	m := &gguftest.Model{
		Metadata: gguftest.Pairs(
			"u8", uint8(1), "i8", int8(-1), "u16", uint16(2), "i16", int16(-2), "u32", uint32(3), "i32", int32(-3),
			"u64", uint64(math.MaxUint64), "i64", int64(math.MinInt64), "f32", float32(0.5), "f64", 0.25, "nan", math.NaN(), "inf", float32(math.Inf(-1)),
			"bool", true, "string", "a\x1b[2J\nb", "bad utf8", "\xff",
			"a.u8", []uint8{1, 2}, "a.i8", []int8{-1}, "a.u16", []uint16{1}, "a.i16", []int16{1}, "a.u32", []uint32{1}, "a.i32", []int32{1},
			"a.u64", []uint64{1}, "a.i64", []int64{1}, "a.f32", []float32{float32(math.NaN())}, "a.f64", []float64{1}, "a.bool", []bool{true},
			"a.string", []string{"x", "y"}, "a.array", []any{[]int32{1}, []string{"z"}},
		),
		Tensors: []gguftest.Tensor{gguftest.Zeros("odd", ggml.IQ1_S, 256, 2)},
	}
	path := filepath.Join(t.TempDir(), "odd.gguf")
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	code, out, errs := hostIn(t.Context(), "", "inspect", path)
	if code != 0 || strings.ContainsAny(out, "\x1b\a\xff") {
		t.Fatalf("have code %d, errors %q, output %q; want no control characters", code, errs, out)
	}
	for _, want := range []string{"18446744073709551615", "-9223372036854775808", "NaN", "-Inf", `"a\x1b[2J\nb"`, `"\xff"`, "[[1] [\"z\"]]",
		"NOT supported", "plugin: none: registry: no registry.yaml"} {
		if !strings.Contains(out, want) {
			t.Errorf("have no %q in\n%s", want, out)
		}
	}
	code, out, errs = hostIn(t.Context(), "", "inspect", path, "--json")
	var x struct {
		Metadata map[string]json.RawMessage
		Types    []tally
		NoPlugin string `json:"no_plugin"`
	}
	if err := json.Unmarshal([]byte(out), &x); code != 0 || err != nil {
		t.Fatalf("have code %d, errors %q, %v", code, errs, err)
	}
	for key, want := range map[string]string{"u64": "18446744073709551615", "nan": `"NaN"`, "inf": `"-Inf"`, "a.u8": "[1,2]", "a.f32": `["NaN"]`, "a.array": `[[1],["z"]]`} {
		var b bytes.Buffer
		if err := json.Compact(&b, x.Metadata[key]); err != nil || b.String() != want {
			t.Errorf("%s: have %s, %v, want %s", key, &b, err, want)
		}
	}
	if len(x.Types) != 1 || x.Types[0].Supported == nil || *x.Types[0].Supported || x.NoPlugin == "" {
		t.Errorf("have types %+v, no plugin because %q", x.Types, x.NoPlugin)
	}
}

func TestInspectSplit(t *testing.T) {
	noRegistry(t)
	m, err := gguftest.Load(tiny)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	parts, err := gguftest.WriteParts(dir, "x", m.Split(0, 60, len(m.Tensors)-60))
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := hostIn(t.Context(), "", "inspect", parts[2])
	if code != 0 || !strings.Contains(out, "in 3 parts") || !strings.Contains(out, "13,623,872 parameters") {
		t.Errorf("have code %d, errors %q\n%s", code, errs, out)
	}
	if err := os.Remove(parts[1]); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := hostIn(t.Context(), "", "inspect", parts[0]); code != 1 || !strings.Contains(errs, filepath.Base(parts[1])) {
		t.Errorf("part missing: have code %d, errors %q, want the part's name", code, errs)
	}
}

func TestMetadataOrder(t *testing.T) {
	m := &gguftest.Model{Metadata: gguftest.Pairs("z", uint8(1), "a", "<&>")}
	data := m.Encode()
	f, err := gguf.Read(bytes.NewReader(data), int64(len(data)), "x")
	if err != nil {
		t.Fatal(err)
	}
	got, err := metadata{f.Metadata}.MarshalJSON()
	var b bytes.Buffer
	if err == nil {
		err = json.Compact(&b, got)
	}
	if want := `{"z":1,"a":"<&>"}`; err != nil || b.String() != want {
		t.Errorf("have %s, %v, want %s", &b, err, want)
	}
}
