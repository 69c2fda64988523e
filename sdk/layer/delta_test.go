package layer_test

import (
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/layer"
	"github.com/sluicehost/sluice/sdk/plugintest"
	"github.com/sluicehost/sluice/sdk/program"
)

// recurrentFile has a block with 2 key heads and 4 value heads of 32, its convolution in one tensor and in two.
func recurrentFile() *plugintest.File {
	f := file()
	f.Add("blk.0.qkvz", ggml.Q8_0, hidden, 384).Add("blk.0.gates", ggml.Q8_0, hidden, 8).Add("blk.0.f", ggml.Q8_0, hidden, 128)
	f.Add("blk.0.conv", ggml.F32, 4, 256).Add("blk.0.conv_a", ggml.F32, 4, 1, 128).Add("blk.0.conv_b", ggml.F16, 4, 1, 128)
	f.Add("blk.0.ssm_a", ggml.F32, 4).Add("blk.0.dt", ggml.F32, 4).Add("blk.0.dt_channel", ggml.F32, 128)
	f.Add("blk.0.head_norm", ggml.F32, 32).Add("blk.0.out", ggml.Q8_0, 128, hidden)
	return f
}

var (
	recurrentConv  = layer.Conv{Width: 256, Taps: 4, Tensors: []string{"conv"}}
	recurrentDelta = layer.DeltaRule{Heads: 4, KeyHeads: 2, HeadDim: 32, Eps: 1e-6, A: "ssm_a", Bias: "dt"}
	recurrentNorm  = layer.GatedNorm{HeadDim: 32, Weight: "head_norm", Eps: 1e-6}
)

// recurrent is a model with such a block, changed.
func recurrent(change func(*layer.Conv, *layer.DeltaRule, *layer.GatedNorm)) func(*layer.Encoder) {
	return func(e *layer.Encoder) {
		x := e.Embed("embd", 1)
		l := e.Layer(0)
		h := l.RMSNorm(x, "norm", 1e-5)
		qkvz, gates := l.Linear(h, 384, "qkvz"), l.Linear(h, 8, "gates")
		c, d, n := recurrentConv, recurrentDelta, recurrentNorm
		d.Beta, d.Decay = layer.Columns{Of: gates}, layer.Columns{Of: gates, Offset: 4}
		n.Gate = layer.Columns{Of: qkvz, Offset: 256}
		change(&c, &d, &n)
		if d.PerChannel {
			d.Decay = layer.Columns{Of: l.Linear(h, 128, "f")}
		}
		y := l.GatedNorm(l.DeltaRule(l.Conv(qkvz, c), d), n)
		finish(e, l.Add(x, l.Linear(y, hidden, "out")))
	}
}

// Both forms of the recurrence run, one token or many at a time, and keep two states.
func TestRecurrent(t *testing.T) {
	for name, change := range map[string]func(*layer.Conv, *layer.DeltaRule, *layer.GatedNorm){
		"head": func(*layer.Conv, *layer.DeltaRule, *layer.GatedNorm) {},
		"channel": func(c *layer.Conv, d *layer.DeltaRule, n *layer.GatedNorm) {
			c.Tensors = []string{"conv_a", "conv_b"}
			d.PerChannel, d.LowerBound, d.Bias = true, -5, "dt_channel"
			n.Sigmoid = true
		},
	} {
		p := encodeFile(t, recurrentFile(), recurrent(change))
		var states []string
		for _, b := range p.Buffers {
			if b.Class == program.Class_STATE {
				states = append(states, b.Name)
			}
		}
		want(t, "states", states, "blk.0.conv_state", "blk.0.delta_state")
		for _, rows := range []uint32{1, 9} {
			if have := strings.Join(kernelsOf(p, program.Kind_TRUNK, rows), " "); !strings.Contains(have, "conv delta_rule."+name+" gated_norm ") {
				t.Errorf("%s, %d rows: have kernels %s", name, rows, have)
			}
		}
	}
}

func TestRecurrentErrors(t *testing.T) {
	for want, change := range map[string]func(*layer.Conv, *layer.DeltaRule, *layer.GatedNorm){
		"convolution: have 1 taps":                                  func(c *layer.Conv, _ *layer.DeltaRule, _ *layer.GatedNorm) { c.Taps = 1 },
		"tensor blk.0.conv: have shape [4, 256], want [3, …]":       func(c *layer.Conv, _ *layer.DeltaRule, _ *layer.GatedNorm) { c.Taps = 3 },
		"convolution: have rows of 384 values, want 256 from value": func(c *layer.Conv, _ *layer.DeltaRule, _ *layer.GatedNorm) { c.Offset = 129 },
		"tensor blk.0.conv_a: have shape [4, 1, 128], want 1024":    func(c *layer.Conv, _ *layer.DeltaRule, _ *layer.GatedNorm) { c.Tensors = []string{"conv_a"} },
		"tensors blk.0.conv_a, blk.0.conv_a: have 1024 values in all, want 1040": func(c *layer.Conv, _ *layer.DeltaRule, _ *layer.GatedNorm) {
			c.Tensors, c.Width = []string{"conv_a", "conv_a"}, 260
		},
		"tensor blk.0.none is missing":                            func(c *layer.Conv, _ *layer.DeltaRule, _ *layer.GatedNorm) { c.Tensors = []string{"none"} },
		"delta rule: have head size 48, want a multiple of 32":    func(_ *layer.Conv, d *layer.DeltaRule, _ *layer.GatedNorm) { d.HeadDim = 48 },
		"delta rule: have head size 160":                          func(_ *layer.Conv, d *layer.DeltaRule, _ *layer.GatedNorm) { d.HeadDim = 160 },
		"delta rule: have 4 value heads, 3 key heads":             func(_ *layer.Conv, d *layer.DeltaRule, _ *layer.GatedNorm) { d.KeyHeads = 3 },
		"delta rule: beta: have rows of 8 values, want 4 from":    func(_ *layer.Conv, d *layer.DeltaRule, _ *layer.GatedNorm) { d.Beta.Offset = 5 },
		"delta rule: decay: have rows of 0 values":                func(_ *layer.Conv, d *layer.DeltaRule, _ *layer.GatedNorm) { d.Decay.Of = nil },
		"tensor blk.0.dt_channel: have shape [128], want 4 valu":  func(_ *layer.Conv, d *layer.DeltaRule, _ *layer.GatedNorm) { d.Bias = "dt_channel" },
		"gated norm: have rows of 128 values, want heads of 48":   func(_ *layer.Conv, _ *layer.DeltaRule, n *layer.GatedNorm) { n.HeadDim = 48 },
		"gated norm: gate: have rows of 384 values, want 128 fro": func(_ *layer.Conv, _ *layer.DeltaRule, n *layer.GatedNorm) { n.Gate.Offset = 300 },
	} {
		err := layer.Plan(recurrentFile().Header(), facts(), recurrent(change))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("have error %v, want one with %q", err, want)
		}
	}
}
