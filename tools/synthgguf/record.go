package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/routing"
	"github.com/sluicehost/sluice/core/simulate"
	"github.com/sluicehost/sluice/tools/synthgguf/synth"
)

// record writes what the routers pick along a simulated continuation, as host run --trace would for the file.
func record(ctx context.Context, progress io.Writer, m *synth.Model, seed uint64, tokens int, recall []float64, path string, force bool) error {
	header, err := traceHeader(m)
	if err != nil {
		return err
	}
	return replace(path, force, func(f *os.File) error {
		layers, err := simulated(ctx, progress, m, seed, tokens, header)
		if err != nil {
			return err
		}
		trace := &routing.Trace{Header: header}
		for pos := range tokens {
			s := routing.Step{Decode: true, Pos: pos, Tokens: 1}
			for _, t := range layers {
				for _, e := range t.Picks[pos] {
					s.Picks = append(s.Picks, uint16(e))
				}
			}
			trace.Steps = append(trace.Steps, s)
		}
		simulate.Foretell(trace, recall, seed)
		return routing.Write(f, trace)
	})
}

// simulated is what the routers of a trace's layers pick.
func simulated(ctx context.Context, progress io.Writer, m *synth.Model, seed uint64, tokens int, header *routing.Header) (layers []synth.Trace, err error) {
	told := time.Now()
	for i, l := range header.Layers {
		t, err := m.Trace(ctx, seed, tokens, []int{l.Layer})
		if err != nil {
			return nil, err
		}
		layers = append(layers, t...)
		if time.Since(told) > time.Second {
			told = time.Now()
			fmt.Fprintf(progress, "synthgguf: layer %d of %d\n", i+1, len(header.Layers))
		}
	}
	return layers, nil
}

// DefaultRecall is the share of picks that are guessed one MoE layer ahead, two, and so on: the mean of the four shipped
// models, which have learned their routing, up to five, and a straight line from there (docs/streaming.md).
const DefaultRecall = "0.80,0.72,0.66,0.54,0.49,0.44,0.39,0.34"

// recalls reads shares of picks, nearest layer first.
func recalls(text string) (out []float64, err error) {
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(x >= 0 && x <= 1) {
			return nil, fmt.Errorf("--recall: have %q, want shares from 0 to 1 with commas between", part)
		}
		out = append(out, x)
	}
	return out, nil
}

// traceHeader describes the model. Record sizes are those of the file's tensors: what a slot pads is not counted.
func traceHeader(m *synth.Model) (*routing.Header, error) {
	data := m.Header()
	var size uint64
	for i := range m.Tensors {
		size += synth.Padded(m.Tensors[i].Size())
	}
	f, err := gguf.Read(beginning(data), int64(size)+int64(len(data)), "the synthetic model")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data[:f.Parts[0].HeaderSize])
	h := &routing.Header{Model: m.Shape.Arch + " " + m.Shape.Name + " (synthetic)", Architecture: m.Shape.Arch, Sum: hex.EncodeToString(sum[:]),
		Experts: m.Shape.Experts, TopK: m.Shape.TopK}
	groups := map[string]int{}
	for _, layer := range m.MoELayers() {
		l, layout := routing.Layer{Layer: layer}, ""
		for i := range m.Tensors {
			t := &m.Tensors[i]
			if part, ok := strings.CutPrefix(t.Name, fmt.Sprintf("blk.%d.", layer)); ok && strings.Contains(part, "_exps.weight") {
				l.RecordBytes += int64(t.Size()) / int64(m.Shape.Experts)
				layout += fmt.Sprint(part, t.Type, t.Dims, ";")
			}
		}
		if _, ok := groups[layout]; !ok {
			groups[layout] = len(groups)
		}
		l.Group = groups[layout]
		h.Layers = append(h.Layers, l)
	}
	return h, nil
}

// beginning is a file of which only the first bytes are known; zeros follow.
type beginning []byte

func (b beginning) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(b)) {
		copy(p, b[off:])
	}
	return len(p), nil
}
