package program

import (
	"io"
	"testing"

	"google.golang.org/protobuf/proto"
)

// FuzzValidate decodes anything as a request and a program and validates it.
// What passes must hold what the host relies on when it replays it.
func FuzzValidate(f *testing.F) {
	for _, b := range []*builder{small(f), newToy(f, 1).builder} {
		req, err := proto.Marshal(&EncodeRequest{Header: b.header, Plan: b.plan, Weights: b.placed, Records: b.records, Limits: testBounds().Limits})
		if err != nil {
			f.Fatal(err)
		}
		prog, err := proto.Marshal(b.prog)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(req, prog, uint16(64), uint16(8))
	}
	f.Fuzz(func(t *testing.T, rawReq, rawProg []byte, chunk, outs uint16) {
		req, prog := &EncodeRequest{}, &Program{}
		if proto.Unmarshal(rawReq, req) != nil || proto.Unmarshal(rawProg, prog) != nil {
			return
		}
		bounds := Bounds{Limits: req.Limits, Chunk: uint64(chunk), Outs: uint64(outs), Context: 128}
		planned := ValidatePlan(req.Header, req.Plan)
		err := Validate(req.Plan, req.Weights, req.Records, prog, bounds)
		if err := Text(io.Discard, req.Plan, req.Weights, req.Records, prog); err != nil {
			t.Fatal(err)
		}
		if planned == nil && err == nil {
			replay(t, prog, bounds)
		}
	})
}

// replay does what the host does with each step's grids.
func replay(t *testing.T, prog *Program, b Bounds) {
	t.Helper()
	most := b.Limits.GetMaxGroups()
	if most == 0 {
		most = FoldWidth
	}
	for rows := range uint32(min(b.Chunk, 4)) {
		step := StepUniform{T: rows + 1, S: 128, O: uint32(b.Outs), G: 1, Chunk: uint32(b.Chunk)}
		for _, s := range prog.Sections {
			n := step.T
			if s.Kind == Kind_HEAD {
				n = step.O
			}
			v := s.Pick(n)
			if v == nil {
				t.Fatalf("%v has no variant for %d rows", s.Kind, n)
			}
			for _, d := range v.Dispatches {
				k := prog.Kernels[d.Kernel]
				if len(d.Bindings) != len(k.Slots) || len(d.Constants) != int(k.ConstantBytes) {
					t.Fatalf("dispatch %s does not fit its kernel", d.Label)
				}
				if _, err := Grid(d.Grid, step, most); err != nil {
					t.Fatalf("dispatch %s: %v", d.Label, err)
				}
			}
		}
	}
}
