package program

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

// The four architectures, one layer of each kind: what the schema must be able to say.
var schemas = map[string]func(testing.TB) *builder{
	"qwen35moe":   schemaQwen,
	"gemma4":      schemaGemma4,
	"lfm2moe":     schemaLFM2,
	"bailingmoe3": schemaBailing,
}

func schemaBounds() Bounds {
	b := testBounds()
	b.Chunk, b.Outs, b.Context = 512, 1, 32768
	return b
}

func TestSchemaIsValid(t *testing.T) {
	for name, make := range schemas {
		t.Run(name, func(t *testing.T) {
			b := make(t)
			if err := b.validatePlan(); err != nil {
				t.Error(err)
			}
			if err := b.validate(schemaBounds()); err != nil {
				t.Error(err)
			}
			if u := Unread(b.header, b.plan); len(u) > 0 {
				t.Errorf("unread: have %v, want none", u)
			}
		})
	}
}

func TestSchemaSurvivesTheWire(t *testing.T) {
	for name, make := range schemas {
		t.Run(name, func(t *testing.T) {
			b := make(t)
			for _, m := range []proto.Message{b.plan, b.prog} {
				raw, err := proto.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				back := proto.Clone(m)
				proto.Reset(back)
				if err := proto.Unmarshal(raw, back); err != nil || !proto.Equal(m, back) {
					t.Errorf("%T: does not come back as it was: %v", m, err)
				}
			}
		})
	}
}

func TestSchemaText(t *testing.T) {
	for name, make := range schemas {
		t.Run(name, func(t *testing.T) {
			b := make(t)
			var have bytes.Buffer
			if err := Text(&have, b.plan, b.placed, b.records, b.prog); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, have.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(have.Bytes(), want) {
				t.Errorf("%s differs; review the text below and run go test ./sdk/program -update\n%s", file, have.Bytes())
			}
		})
	}
}

// stubSource has no weights: the stub references read none.
type stubSource struct{ b *builder }

func (s stubSource) Band(int, int) ([]byte, error)      { return nil, nil }
func (s stubSource) Vector(int, int) ([]float64, error) { return nil, nil }
func (s stubSource) Expert(record, _ int) ([]byte, error) {
	return make([]byte, s.b.records[record].Stride), nil
}

func (s stubSource) Embedding(uint32) ([]float64, error) {
	return make([]float64, s.b.plan.Model.Hidden), nil
}

func (s stubSource) Divisor(rope int) ([]float64, error) {
	d := make([]float64, s.b.plan.Ropes[rope].Pairs)
	for i := range d {
		d[i] = 1
	}
	return d, nil
}

// stubRef marks every output as written. PICKS and GUESSES get the experts 0
// to top_k-1, in an order that differs between rows.
func (b *builder) stubRef(string) Ref {
	k := int(b.plan.Model.TopK)
	return func(c *Call) {
		for _, s := range c.kernel.Slots {
			if s.Access != Access_READ_WRITE {
				continue
			}
			pick := s.Name == "picks" || s.Name == "guesses"
			for i := range c.Values(s.Name) {
				if pick {
					c.Store(s.Name, i, float64((i+i/k)%k))
				} else {
					c.Store(s.Name, i, float64(i%7)/8)
				}
			}
		}
	}
}

func TestSchemaRuns(t *testing.T) {
	for name, make := range schemas {
		t.Run(name, func(t *testing.T) {
			b := make(t)
			ran := map[*Dispatch]bool{}
			in, err := NewInterpreter(b.plan, b.placed, b.records, b.prog, stubSource{b}, b.stubRef, Options{
				Chunk: 3, Outs: 1, Context: 8, Slots: int(b.plan.Model.TopK), Trace: func(x *Trace) { ran[x.Dispatch] = true },
			})
			if err != nil {
				t.Fatal(err)
			}
			s := in.NewSession()
			for _, tokens := range [][]uint32{{1}, {2, 3, 4}, {5}} {
				logits, err := s.Step(tokens, []uint32{uint32(len(tokens) - 1)})
				if err != nil {
					t.Fatal(err)
				}
				if len(logits) != 1 || len(logits[0]) != int(b.plan.Model.Vocab) || math.IsNaN(logits[0][0]) {
					t.Fatalf("%d tokens: have %d rows of logits, want one of the vocab", len(tokens), len(logits))
				}
			}
			if s.Pos() != 5 {
				t.Errorf("position: have %d, want 5", s.Pos())
			}
			for _, x := range b.prog.Sections {
				for _, v := range x.Variants {
					for _, d := range v.Dispatches {
						if !ran[d] {
							t.Errorf("%v: dispatch %s did not run", x.Kind, d.Label)
						}
					}
				}
			}
		})
	}
}
