package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/routing"
	"github.com/sluicehost/sluice/core/simulate"
	"github.com/sluicehost/sluice/tools/synthgguf/synth"
)

// TestTraceOut: the trace has what the simulation picks.
func TestTraceOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t")
	args := []string{"--arch", "lfm2moe", "--shape", "tiny", "--type", "q4_k_m", "--trace-tokens", "200", "--recall", "0.9,0.2", "--trace-out", path}
	var out, errs bytes.Buffer
	if err := run(t.Context(), args, &out, &errs); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	have, err := routing.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	m, err := synth.New(synth.Options{Arch: "lfm2moe", Shape: "tiny", Type: "q4_k_m", Seed: 1, Locality: synth.DefaultLocality, Dwell: synth.DefaultDwell})
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.Trace(t.Context(), 1, 200, m.MoELayers())
	if err != nil {
		t.Fatal(err)
	}
	h := have.Header
	if h.Experts != 32 || h.TopK != 4 || len(h.Layers) != len(want) || len(h.Sum) != 64 || len(have.Steps) != 200 || h.Layers[0].RecordBytes < 3*1024*256/2 {
		t.Fatalf("have %+v with %d steps", h, len(have.Steps))
	}
	for pos, s := range have.Steps {
		for i := range want {
			var picks []int32
			for _, p := range s.Layer(i, h.TopK) {
				picks = append(picks, int32(p))
			}
			if !s.Decode || s.Pos != pos || !slices.Equal(picks, want[i].Picks[pos]) {
				t.Fatalf("position %d, layer %d: have %v, want %v", pos, i, picks, want[i].Picks[pos])
			}
		}
	}
	if r := simulate.Recall(have); len(r) != 2 || math.Abs(r[0]-0.9) > 0.05 || math.Abs(r[1]-0.2) > 0.05 {
		t.Errorf("have recall %.3f, want 0.9 and 0.2", r)
	}
	if err := run(t.Context(), args, &out, &errs); err == nil {
		t.Error("overwrites a file without --force")
	}
}
