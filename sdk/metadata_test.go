package sdk

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/layer"
	"github.com/sluicehost/sluice/sdk/program"
)

func integer(n int64) *program.Value { return &program.Value{Is: &program.Value_Int{Int: n}} }

func integers(all ...int64) *program.Value {
	a := &program.Array{}
	for _, n := range all {
		a.Values = append(a.Values, integer(n))
	}
	return &program.Value{Is: &program.Value_Array{Array: a}}
}

func text(s string) *program.Value { return &program.Value{Is: &program.Value_String_{String_: s}} }

func header(values map[string]*program.Value) *program.Header {
	h := &program.Header{Metadata: []*program.KeyValue{{Key: "general.architecture", Value: text("lfm2moe")}}}
	for key, v := range values {
		h.Metadata = append(h.Metadata, &program.KeyValue{Key: "lfm2moe." + key, Value: v})
	}
	return h
}

// An array is read as it is, or the file is refused with the value that is wrong.
func TestInts(t *testing.T) {
	for name, c := range map[string]struct {
		value *program.Value
		n     int
		want  string // the list, or a part of the refusal
	}{
		"as many":       {integers(1, 0, 3), 3, "[1 0 3]"},
		"one for all":   {integer(2), 3, "[2 2 2]"},
		"for MTP, too":  {integers(1, 2, 3, 4), 3, "[1 2 3]"},
		"too few":       {integers(1, 2), 3, "key lfm2moe.list: have an array of 2, want 3 integers from 0 to 2147483647, or one for all"},
		"none":          {integers(), 3, "have an array of 0, want 3"},
		"too many":      {integers(1, 2, 3, 4, 5), 3, "have an array of 5, want 3"},
		"negative":      {integers(1, -2, 3), 3, "have -2 as value 1, want 3 integers from 0"},
		"large":         {integers(1, 1<<31, 3), 3, "have 2147483648 as value 1"},
		"negative one":  {integer(-2), 3, "have -2, want 3"},
		"of texts":      {&program.Value{Is: &program.Value_Array{Array: &program.Array{Values: []*program.Value{text("a")}}}}, 1, `have the string "a" as value 0`},
		"a text":        {text("a"), 3, `have the string "a", want 3`},
		"missing":       {nil, 3, "key lfm2moe.list is missing: want 3"},
		"for too many":  {integers(1, 2, 3), 1 << 30, "have an array of 3, want 1073741824"},
		"for none":      {integers(), 0, "[]"},
		"for less":      {integers(), -1, "[]"},
		"one for none":  {integer(1), 0, "[]"},
		"array in it":   {&program.Value{Is: &program.Value_Array{Array: &program.Array{Values: []*program.Value{integers(1)}}}}, 1, "have an array of 1 as value 0"},
		"empty message": {&program.Value{}, 1, "have nothing, want 1"},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]*program.Value{"block_count": integer(4)}
			if c.value != nil {
				values["list"] = c.value
			}
			m := NewMetadata(header(values))
			have := m.Ints("list", c.n)
			if len(have) != max(0, min(c.n, maxList)) {
				t.Errorf("have %d values of %d", len(have), c.n)
			}
			if err := m.Err(); err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("have refusal %v, want %s", err, c.want)
				}
			} else if fmt.Sprint(have) != c.want {
				t.Errorf("have %v, want %s", have, c.want)
			}
			if c.value != nil {
				return
			}
			m = NewMetadata(header(values))
			if have := m.Ints("list", c.n, 7); m.Err() != nil || !slices.Equal(have, []int{7, 7, 7}) {
				t.Errorf("with a default: have %v, %v", have, m.Err())
			}
		})
	}
}

// A check of what could not be read gives no second reason, one before does.
func TestRefuse(t *testing.T) {
	m := NewMetadata(header(map[string]*program.Value{"a": text("x"), "b": integer(3)}))
	m.Refuse("key lfm2moe.b: have %d, want 4", m.Int("b"))
	m.Refuse("key lfm2moe.a: have %d, want 4", m.Int("a"))
	m.Int("c")
	const want = "key lfm2moe.b: have 3, want 4; key lfm2moe.a: have the string \"x\", want an integer from 0 to 2147483647; key lfm2moe.c is missing: want an integer from 0 to 2147483647"
	if have := strings.ReplaceAll(fmt.Sprint(m.Err()), "\n", "; "); have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
}

// nothing is a family whose model has no weights.
type nothing struct{ described }

func (nothing) Configure(*Metadata) (Model, error) { return nothing{}, nil }
func (nothing) Facts() Facts                       { return Facts{} }
func (nothing) Encode(*layer.Encoder)              {}

// A file with more blocks than it says is refused, not run without the last ones.
func TestBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		blocks  int64
		tensors []string
		refused string
	}{
		"all":      {3, []string{"token_embd.weight", "blk.0.a", "blk.2.nextn.eh_proj.weight"}, ""},
		"one more": {3, []string{"blk.0.a", "blk.3.attn_q.weight"}, "key lfm2moe.block_count: have 3, and tensor blk.3.attn_q.weight: want"},
		"many":     {3, []string{"blk.18446744073709551615.a"}, "tensor blk.18446744073709551615.a"},
		"others":   {3, []string{"blk.x.a", "blk.9", "v.blk.9.a", "blk..a", "blk.-9.a"}, ""},
		"negative": {-1, []string{"blk.0.a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := header(map[string]*program.Value{"block_count": integer(c.blocks)})
			for _, name := range c.tensors {
				h.Tensors = append(h.Tensors, &program.Tensor{Name: name, Dims: []uint64{1}})
			}
			_, err := Plan(nothing{}, h)
			const refusal = "block_count"
			switch {
			case c.refused == "" && err != nil && strings.Contains(err.Error(), refusal):
				t.Errorf("have error %v, want none of blocks", err)
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("have error %v, want %s", err, c.refused)
			}
		})
	}
}
