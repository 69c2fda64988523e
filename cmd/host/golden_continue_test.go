package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/registry"
)

// TestGoldenContinue: of every architecture a session that goes on from where it is, or from a snapshot, leaves its
// states as a fresh one does, wherever chunks are cut.
func TestGoldenContinue(t *testing.T) {
	needGPU(t)
	for _, arch := range goldenArchitectures {
		t.Run(arch, func(t *testing.T) {
			a := &app{ctx: t.Context(), err: new(bytes.Buffer), log: hclog.NewNullLogger()}
			r := registryFlags{registryPath: registryPath{filepath.Join(install(t), registry.FileName)}}
			l, err := a.load(modelFlags{Model: "../../testdata/models/tiny-" + arch + ".gguf"}, r, engineFlags{KV: "f32", Chunk: 7, Ctx: 64}, engine.Options{Snapshots: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer l.close()
			prompt := make([]int32, 40)
			for i := range prompt {
				prompt[i] = int32(100 + 37*i%1000)
			}
			to := func(n int) (last []float32, kept int) {
				kept, err := l.session.Continue(t.Context(), prompt[:n], 1, func(_ int, x *engine.Logits) error {
					last = slices.Clone(x.All)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				return last, kept
			}
			want := map[int][]float32{}
			for _, n := range []int{12, 25, 40} {
				if err := l.session.Reset(); err != nil {
					t.Fatal(err)
				}
				want[n], _ = to(n)
			}
			if err := l.session.Reset(); err != nil {
				t.Fatal(err)
			}
			for i, step := range []struct{ n, kept int }{{9, 0}, {12, 9}, {25, 12}, {40, 25}, {25, 12}, {40, 25}} {
				have, kept := to(step.n)
				if step.n == 12 {
					if err := l.session.Snapshot(); err != nil {
						t.Fatal(err)
					}
				}
				if kept < step.kept || step.kept == 0 && kept > 0 {
					t.Errorf("step %d, %d tokens: kept %d, want %d or more", i, step.n, kept, step.kept)
				}
				if step.n == 9 {
					continue
				}
				for id, v := range want[step.n] {
					if d := have[id] - v; !(d <= 1e-3 && d >= -1e-3) {
						t.Fatalf("step %d, %d tokens: logit %d: have %v, want %v", i, step.n, id, have[id], v)
					}
				}
			}
		})
	}
}
