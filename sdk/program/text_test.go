package program

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func shown(t *testing.T, b *builder) string {
	t.Helper()
	var out bytes.Buffer
	if err := Text(&out, b.plan, b.placed, b.records, b.prog); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTextIsStable(t *testing.T) {
	want := shown(t, small(t))
	for range 10 { // map order would show
		if have := shown(t, small(t)); have != want {
			t.Fatalf("the same program has two texts:\n%s\n%s", have, want)
		}
	}
	for i, line := range strings.Split(want, "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %d ends in blanks: %q", i+1, line)
		}
	}
}

func TestTextSaysEverything(t *testing.T) {
	b := small(t)
	b.plan.Ropes[0].Magnitude = 1.25
	b.plan.Ropes = append(b.plan.Ropes, &Rope{Name: "listed", Pairs: 2, Freqs: []float64{1, 0.5}})
	b.kern("split").Ref = ""
	b.kern("merge").Params = map[string]uint32{"W": 64, "HD": 32}
	k := b.kern("merge")
	k.Wgsl = strings.Replace(k.Wgsl, "@workgroup_size(64)", "@workgroup_size(8, 8)", 1)
	b.buf("part").Fixed = 3
	b.buf("part").PerOut = 1
	b.buf("part").PerRowPos = 5
	have := shown(t, b)
	for _, want := range []string{
		"model tiny: 2 layers, hidden 64, vocab 256, context 128\nexperts: 4, top 2, in layers 0-1\n",
		"unused: blk.2.mtp.weight\n",
		"q4_0 0..96, q8_0 96..128  = blk.0.attn_q.weight | blk.0.attn_k.weight | blk.0.attn_v.weight\n",
		"  layer 0: ",
		"    gate_up  128 x 64  q4_0  = blk.0.ffn_gate_exps.weight | blk.0.ffn_up_exps.weight\n",
		"rope    16 pairs  base 1e+06 over 32 dims, divided by rope_freqs.weight, times 1.25\n",
		"listed  2 pairs   2 freqs 1..0.5\n",
		"part         scratch  f32  3 + outs + 68*ceil(context/16) + 5*chunk*ceil(context/16)\n",
		"x            scratch  f32  64*chunk  ", "  (input)\n  h  ",
		"blk.0.v      ring     f16  32*(16 + chunk)\n",
		"split               own                     lanes 64\n",
		"merge               ref merge               lanes 8x8  HD=32 W=64\n",
		"expert tiles of 8 rows\n",
		"trunk of layer 0\n rows 1: 7 dispatches\n",
		"  blk.0.split        split         h, blk.0.k, blk.0.v -> part  grid 2, ceil(S/16)\n",
		"  blk.0.attn_v       matvec[q8_0]  x, blk.0.attn_norm.weight, blk.0.attn_qkv#1 -> qkv  grid ceil(T*32/8)  row0=96 planes=0,128,0,0\n",
		"  blk.0.flash        flash         h, blk.0.k, blk.0.v -> att  grid 2, ceil(T/8), ceil(min(S, 16)/16)\n",
		"  blk.0.router       router[f32]   y, blk.0.ffn_gate_inp.weight -> PICKS, pw  grid T  experts=4 scale=0.5\n",
		"combine of layer 1\n rows 1: 0 dispatches\n rows 2..: 1 dispatch\n",
		"guess in layer 0 at layer 1\n rows 1..: 1 dispatch\n",
		"head\n rows 1..: 1 dispatch\n",
	} {
		if !strings.Contains(have, want) {
			t.Errorf("the text lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log("\n" + have)
	}
}

func TestTextOfAPlan(t *testing.T) {
	b := small(t)
	var out bytes.Buffer
	if err := Text(&out, b.plan, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); !strings.Contains(s, "\nweights\n") || strings.Contains(s, "buffers") {
		t.Errorf("have\n%s\nwant weights and no program", s)
	}
}

// Names come from a plugin: they must not reach a terminal as commands.
func TestTextShowsNoControls(t *testing.T) {
	b := small(t)
	b.plan.Model.Architecture, b.plan.Weights[0].Name, b.plan.Unused[0] = "a\x1b[2J", "b\nc", "d\r"
	b.prog.Kernels[0].Name, b.buf("h").Name = "e\x07", "f\x1b"
	if s := shown(t, b); strings.ContainsAny(s, "\x1b\x07\r") || strings.Contains(s, "b\nc") {
		t.Errorf("the text has control characters: %q", s)
	}
}

func TestTextOfBrokenConstants(t *testing.T) {
	b := small(t)
	b.disp(Kind_TRUNK, 0, 0, "blk.0.router").Constants = []byte{1, 2}
	b.kern("split").Wgsl = "struct Constants { a: bool }"
	b.disp(Kind_TRUNK, 0, 0, "blk.0.split").Constants = []byte{3, 4}
	if s := shown(t, b); !strings.Contains(s, "grid T  0102\n") || !strings.Contains(s, "ceil(S/16)  0304\n") {
		t.Errorf("the text lacks the bytes:\n%s", s)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestTextReportsTheWriter(t *testing.T) {
	b := small(t)
	if err := Text(brokenWriter{}, b.plan, b.placed, b.records, b.prog); err == nil {
		t.Error("have no error from a broken writer")
	}
}
