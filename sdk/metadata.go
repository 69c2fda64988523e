package sdk

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

// Metadata reads a GGUF header. Its readers are sticky: a missing or mistyped
// key yields a zero value and is remembered, so a plugin reads all it needs in
// straight lines and asks Err once. Keys are given without the architecture's
// prefix: U32("block_count") reads lfm2moe.block_count in an lfm2moe file.
type Metadata struct {
	arch    string
	vocab   uint64
	values  map[string]*program.Value
	tensors map[string]Tensor
	reasons []string
	failed  bool // a reader has: what it returned is no value of the file
}

// Tensor is one row of the file's tensor table.
type Tensor struct {
	Name string
	Type ggml.Type
	Dims []uint64 // ne0, the contiguous one, first
}

// NewMetadata reads the header as it came from the host.
func NewMetadata(h *program.Header) *Metadata {
	m := &Metadata{values: map[string]*program.Value{}, tensors: map[string]Tensor{}, vocab: h.GetVocab()}
	for _, kv := range h.GetMetadata() {
		m.values[kv.GetKey()] = kv.GetValue()
	}
	for _, t := range h.GetTensors() {
		m.tensors[t.GetName()] = Tensor{Name: t.GetName(), Type: ggml.Type(t.GetType()), Dims: t.GetDims()}
	}
	m.arch = m.values["general.architecture"].GetString_()
	return m
}

// Architecture is the file's general.architecture.
func (m *Metadata) Architecture() string { return m.arch }

// Vocab is the number of the tokenizer's tokens.
func (m *Metadata) Vocab() int { return int(min(m.vocab, math.MaxInt32)) }

// Tensor looks a tensor up by its GGUF name.
func (m *Metadata) Tensor(name string) (Tensor, bool) {
	t, ok := m.tensors[name]
	return t, ok
}

// Has reports whether the file has the architecture's key.
func (m *Metadata) Has(key string) bool {
	_, ok := m.values[m.arch+"."+key]
	return ok
}

// Refuse remembers a reason why the file can't be run; it should name a key or tensor.
// Where a reader has failed already it does nothing: what the caller looked at may be
// the zero in place of a value, and one cause should give one reason.
func (m *Metadata) Refuse(format string, args ...any) {
	if !m.failed {
		m.reasons = append(m.reasons, fmt.Sprintf(format, args...))
	}
}

// unreadable is the reason of a reader that fails.
func (m *Metadata) unreadable(format string, args ...any) {
	m.failed = true
	m.reasons = append(m.reasons, fmt.Sprintf(format, args...))
}

// Err is nil where everything read so far was there and nothing was refused,
// else a *Refusal with every reason.
func (m *Metadata) Err() error {
	if len(m.reasons) == 0 {
		return nil
	}
	return &Refusal{Reasons: slices.Clone(m.reasons)}
}

// read finds a key and converts it; a missing one is a reason unless optional.
func read[T any](m *Metadata, key string, want string, optional bool, convert func(*program.Value) (T, bool)) (T, bool) {
	var zero T
	full := m.arch + "." + key
	v, ok := m.values[full]
	if !ok {
		if !optional {
			m.unreadable("key %s is missing: want %s", full, want)
		}
		return zero, false
	}
	out, ok := convert(v)
	if !ok {
		m.unreadable("key %s: have %s, want %s", full, describe(v), want)
		return zero, false
	}
	return out, true
}

// scalar makes a reader with and without a default from a conversion.
func scalar[T any](m *Metadata, key, want string, def []T, convert func(*program.Value) (T, bool)) T {
	if v, ok := read(m, key, want, len(def) > 0, convert); ok || len(def) == 0 {
		return v
	}
	return def[0]
}

// Int reads a non-negative integer that fits 31 bits; with a default the key may be absent.
func (m *Metadata) Int(key string, def ...int) int {
	return scalar(m, key, "an integer from 0 to 2147483647", def, asInt)
}

// Size reads an integer from 1 on that fits 31 bits; with a default the key may be absent.
func (m *Metadata) Size(key string, def ...int) int {
	return scalar(m, key, "an integer from 1 to 2147483647", def, func(v *program.Value) (int, bool) {
		n, ok := asInt(v)
		return n, ok && n > 0
	})
}

// Trunk reads how many blocks the forward pass has: those that predict more tokens (MTP, nextn_predict_layers) lie behind
// it, and block_count counts them too.
func (m *Metadata) Trunk() int {
	blocks, mtp := m.Size("block_count"), m.Int("nextn_predict_layers", 0)
	if mtp > 0 && mtp >= blocks {
		m.Refuse("key %s.nextn_predict_layers: have %d of %d blocks, want fewer", m.arch, mtp, blocks)
		return 0
	}
	return blocks - mtp
}

// Facts reads a model's dimensions from the keys that every mixture-of-experts family has them in. layers is how many run.
func (m *Metadata) Facts(layers int) Facts {
	return Facts{
		Layers:  layers,
		Hidden:  m.Size("embedding_length"),
		Vocab:   m.Size("vocab_size", m.Vocab()),
		Experts: m.Size("expert_count"),
		TopK:    m.Size("expert_used_count"),
		Context: m.Size("context_length"),
	}
}

// sigmoidGating is the expert_gating_func of a sigmoid router, llama.cpp's
// LLAMA_EXPERT_GATING_FUNC_TYPE_SIGMOID.
const sigmoidGating = 2

// SigmoidGating refuses a file whose router is not the sigmoid, by its key expert_gating_func.
func (m *Metadata) SigmoidGating() {
	if g := m.Int("expert_gating_func"); g != sigmoidGating {
		m.Refuse("key %s.expert_gating_func: have %d, want %d (sigmoid)", m.arch, g, sigmoidGating)
	}
}

// Positive reads a finite number above 0; with a default the key may be absent.
func (m *Metadata) Positive(key string, def ...float64) float64 {
	return scalar(m, key, "a finite number above 0", def, func(v *program.Value) (float64, bool) {
		x, ok := asFloat(v)
		return x, ok && x > 0
	})
}

// Float reads a finite number; with a default the key may be absent.
func (m *Metadata) Float(key string, def ...float64) float64 {
	return scalar(m, key, "a finite number", def, asFloat)
}

// Bool reads a boolean; with a default the key may be absent.
func (m *Metadata) Bool(key string, def ...bool) bool {
	return scalar(m, key, "true or false", def, asBool)
}

// Ints reads an array of n non-negative integers that fit 31 bits, or one integer for all n.
func (m *Metadata) Ints(key string, n int, def ...int) []int {
	return list(m, key, "integers from 0 to 2147483647", n, def, asInt)
}

// Floats reads an array of n numbers, or one number for all n.
func (m *Metadata) Floats(key string, n int, def ...float64) []float64 {
	return list(m, key, "numbers", n, def, asFloat)
}

// Bools reads an array of n booleans, or one boolean for all n.
func (m *Metadata) Bools(key string, n int, def ...bool) []bool {
	return list(m, key, "booleans", n, def, asBool)
}

// list reads an array of n values, or a scalar repeated n times. It always returns
// n values. An array may have a value for each block of the file instead, of which
// the first n count: blocks that predict further tokens lie behind those that run.
func list[T any](m *Metadata, key, what string, n int, def []T, convert func(*program.Value) (T, bool)) []T {
	full, want := m.arch+"."+key, fmt.Sprintf("%d %s, or one for all", n, what)
	if n > maxList {
		m.unreadable("key %s: want %d values, one a layer: have room for %d", full, n, maxList)
	}
	n = max(0, min(n, maxList))
	fallback := make([]T, n)
	if len(def) > 0 {
		fallback = slices.Repeat(def[:1], n)
	}
	v, ok := m.values[full]
	if !ok {
		if len(def) == 0 {
			m.unreadable("key %s is missing: want %s", full, want)
		}
		return fallback
	}
	if one, ok := convert(v); ok {
		return slices.Repeat([]T{one}, n)
	}
	values := v.GetArray().GetValues()
	if blocks, _ := asInt(m.values[m.arch+".block_count"]); v.GetArray() == nil || len(values) != n && (len(values) < n || len(values) != blocks) {
		m.unreadable("key %s: have %s, want %s", full, describe(v), want)
		return fallback
	}
	out := make([]T, n)
	for i := range out {
		if out[i], ok = convert(values[i]); !ok {
			m.unreadable("key %s: have %s as value %d, want %s", full, describe(values[i]), i, want)
			return fallback
		}
	}
	return out
}

// maxList bounds the arrays that a hostile block_count can make us allocate.
const maxList = 1 << 16

func asInt(v *program.Value) (int, bool) {
	switch is := v.GetIs().(type) {
	case *program.Value_Uint:
		return int(is.Uint), is.Uint <= math.MaxInt32
	case *program.Value_Int:
		return int(is.Int), is.Int >= 0 && is.Int <= math.MaxInt32
	}
	return 0, false
}

func asFloat(v *program.Value) (float64, bool) {
	switch is := v.GetIs().(type) {
	case *program.Value_Float:
		return is.Float, !math.IsNaN(is.Float) && !math.IsInf(is.Float, 0)
	case *program.Value_Uint:
		return float64(is.Uint), true
	case *program.Value_Int:
		return float64(is.Int), true
	}
	return 0, false
}

func asBool(v *program.Value) (bool, bool) {
	switch is := v.GetIs().(type) {
	case *program.Value_Bool:
		return is.Bool, true
	case *program.Value_Uint:
		return is.Uint == 1, is.Uint <= 1
	case *program.Value_Int:
		return is.Int == 1, is.Int == 0 || is.Int == 1
	}
	return false, false
}

// describe says what a value is, shortly, for an error.
func describe(v *program.Value) string {
	switch is := v.GetIs().(type) {
	case *program.Value_Uint:
		return fmt.Sprint(is.Uint)
	case *program.Value_Int:
		return fmt.Sprint(is.Int)
	case *program.Value_Float:
		return fmt.Sprint(is.Float)
	case *program.Value_Bool:
		return fmt.Sprint(is.Bool)
	case *program.Value_String_:
		return fmt.Sprintf("the string %.40q", is.String_)
	case *program.Value_Array:
		return fmt.Sprintf("an array of %d", len(is.Array.GetValues()))
	}
	return "nothing"
}
