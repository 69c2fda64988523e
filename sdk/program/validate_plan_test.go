package program

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// fault is a mutation of the small program and what its error must say.
type fault struct {
	mutate func(b *builder)
	want   string
}

// wantFault checks that err is a fault that says want.
func wantFault(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("have no error, want one with %q", want)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("have error\n%v\nwant one with %q", err, want)
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		if !strings.HasPrefix(line, "program: ") {
			t.Errorf("line %q does not start with the package", line)
		}
	}
}

// names is that many different names.
func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("name%d", i)
	}
	return out
}

func TestValidatePlanRefuses(t *testing.T) {
	model := func(f func(*Model)) func(*builder) { return func(b *builder) { f(b.plan.Model) } }
	rope := func(f func(*Rope)) func(*builder) { return func(b *builder) { f(b.plan.Ropes[0]) } }
	part := func(f func(*Weight)) func(*builder) { return func(b *builder) { f(b.plan.Records[1].Parts[0]) } }
	long := strings.Repeat("n", maxName+1)
	for name, c := range map[string]fault{
		"no model":          {func(b *builder) { b.plan.Model = nil }, "have layers 0, want 1 to"},
		"no architecture":   {model(func(m *Model) { m.Architecture = "" }), "architecture: have no name"},
		"long architecture": {model(func(m *Model) { m.Architecture = long }), "architecture: have a name of 257 bytes"},
		"wild architecture": {model(func(m *Model) { m.Architecture = "a\x1b[2J" }), "architecture: have the name"},
		"other architecture": {func(b *builder) {
			b.header.Metadata = []*KeyValue{{Key: "general.architecture", Value: &Value{Is: &Value_String_{String_: "other"}}}}
		}, "have architecture tiny, want other"},
		"no layers":            {model(func(m *Model) { m.Layers = 0 }), "have layers 0"},
		"no hidden":            {model(func(m *Model) { m.Hidden = 0 }), "have hidden 0"},
		"no vocab":             {model(func(m *Model) { m.Vocab = 0 }), "have vocab 0"},
		"no experts":           {model(func(m *Model) { m.Experts = 0 }), "have experts 0"},
		"no context":           {model(func(m *Model) { m.Context = 0 }), "have context 0"},
		"top_k over experts":   {model(func(m *Model) { m.TopK = 5 }), "have top_k 5, want 1 to 4"},
		"no MoE layers":        {model(func(m *Model) { m.MoeLayers = nil }), "have no moe_layers"},
		"MoE layer past end":   {model(func(m *Model) { m.MoeLayers[1] = 2 }), "have MoE layer 2, want below layers 2"},
		"MoE layers descend":   {model(func(m *Model) { m.MoeLayers = []uint32{1, 0} }), "have MoE layer 0 after 1"},
		"MoE layer twice":      {model(func(m *Model) { m.MoeLayers = []uint32{0, 0} }), "have MoE layer 0 after 0"},
		"weight without name":  {func(b *builder) { b.plan.Weights[0].Name = "" }, "weight: have no name"},
		"weight name too long": {func(b *builder) { b.plan.Weights[0].Name = long }, "a name of 257 bytes"},
		"weight name controls": {func(b *builder) { b.plan.Weights[0].Name = "a\x1b[2J" }, "no control characters"},
		"weight name twice":    {func(b *builder) { b.plan.Weights[1].Name = b.plan.Weights[0].Name }, "have the name token_embd.weight twice"},
		"too many weights":     {func(b *builder) { b.plan.Weights = make([]*Weight, maxWeights+1) }, "plan: weights: have 65537, want at most 65536"},
		"weight of nothing":    {func(b *builder) { b.plan.Weights[0].Tensors = nil }, "weight token_embd.weight: have no tensors"},
		"weight of too many":   {func(b *builder) { b.plan.Weights[0].Tensors = names(maxStack + 1) }, "tensors: have 1025, want at most 1024"},
		"unknown use":          {func(b *builder) { b.plan.Weights[0].Use = 7 }, "have use 7, want MATRIX or VECTOR"},
		"missing tensor":       {func(b *builder) { b.plan.Weights[0].Tensors[0] = "gone" }, "tensor gone is not in the file"},
		"rows of two lengths":  {func(b *builder) { b.find("blk.0.attn_k.weight").Dims[0] = 128 }, "tensor blk.0.attn_k.weight: have rows of 128 values, want 64"},
		"shape of nothing":     {func(b *builder) { b.find("output_norm.weight").Dims = nil }, "tensor output_norm.weight: have shape [], want 1 to 4 dims"},
		"shape with zero":      {func(b *builder) { b.find("output_norm.weight").Dims = []uint64{0} }, "have shape [0]"},
		"shape overflows":      {func(b *builder) { b.find("output_norm.weight").Dims = []uint64{1 << 40, 1 << 40} }, "want 1 to 4 dims"},
		"VECTOR of Q8_0":       {func(b *builder) { b.find("output_norm.weight").Type = uint32(ggml.Q8_0) }, "have a VECTOR of Q8_0, want F32, F16 or BF16"},
		"MATRIX without form":  {func(b *builder) { b.find("blk.0.attn_output.weight").Type = uint32(ggml.IQ1_S) }, "have type IQ1_S, which no kernel reads"},
		"MATRIX of no type":    {func(b *builder) { b.find("blk.0.attn_output.weight").Type = 999 }, "have type type 999, which no kernel reads"},
		"rows of half a block": {func(b *builder) { b.find("blk.0.attn_output.weight").Dims[0] = 48 }, "tensor blk.0.attn_output.weight: ggml: Q4_0: have rows of 48 values"},
		"too few records":      {func(b *builder) { b.plan.Records = b.plan.Records[:1] }, "have 1 records, want 2: one for each of moe_layers"},
		"record of a layer":    {func(b *builder) { b.plan.Records[1].Layer = 5 }, "record 1: have layer 5, want 1"},
		"record of nothing":    {func(b *builder) { b.plan.Records[0].Parts = nil }, "record of layer 0: have no parts"},
		"record of too many":   {func(b *builder) { b.plan.Records[0].Parts = make([]*Weight, maxParts+1) }, "parts: have 65, want at most 64"},
		"part twice":           {part(func(w *Weight) { w.Name = "down" }), "record: part: have the name down twice"},
		"part as VECTOR":       {part(func(w *Weight) { w.Use = Use_VECTOR }), "part gate_up: have use VECTOR, want MATRIX"},
		"part of a matrix":     {part(func(w *Weight) { w.Tensors[0] = "blk.0.attn_q.weight" }), "want 3 dims, the last of 4 experts"},
		"part of five experts": {func(b *builder) { b.find("blk.0.ffn_up_exps.weight").Dims[2] = 5 }, "tensor blk.0.ffn_up_exps.weight: have shape [64 64 5]"},
		"no embed":             {func(b *builder) { b.plan.Embed = nil }, "embed: have no tensor"},
		"embed not there":      {func(b *builder) { b.plan.Embed.Tensor = "gone" }, "embed: tensor gone is not in the file"},
		"embed of other width": {model(func(m *Model) { m.Hidden = 32 }), "embed: tensor token_embd.weight: have shape [64 256], want [32 256]"},
		"embed of fewer rows":  {func(b *builder) { b.header.Vocab = 257 }, "want [64 257]"},
		"embed of no type":     {func(b *builder) { b.find("token_embd.weight").Type = 999 }, "embed: tensor token_embd.weight: ggml"},
		"embed without scale":  {func(b *builder) { b.plan.Embed.Scale = 0 }, "have scale 0"},
		"embed scale no number": {func(b *builder) { b.plan.Embed.Scale = float32(math.NaN()) },
			"have scale NaN"},
		"rope without name":       {rope(func(r *Rope) { r.Name = "" }), "rope: have no name"},
		"too many ropes":          {func(b *builder) { b.plan.Ropes = make([]*Rope, maxRopes+1) }, "ropes: have 65"},
		"rope without pairs":      {rope(func(r *Rope) { r.Pairs = 0 }), "rope rope: have 0 pairs"},
		"rope of too many pairs":  {rope(func(r *Rope) { r.Pairs = maxPairs + 1 }), "have 65537 pairs"},
		"rope without base":       {rope(func(r *Rope) { r.Base = 0 }), "have base 0 and base_dims 32"},
		"rope base no number":     {rope(func(r *Rope) { r.Base = math.Inf(1) }), "have base +Inf"},
		"rope without base_dims":  {rope(func(r *Rope) { r.BaseDims = 0 }), "base_dims 0"},
		"rope with other freqs":   {rope(func(r *Rope) { r.Freqs = []float64{1} }), "have 1 freqs, want 16"},
		"rope freq no number":     {rope(func(r *Rope) { r.Freqs = make([]float64, 16); r.Freqs[3] = math.NaN() }), "freq 3: have NaN"},
		"rope magnitude negative": {rope(func(r *Rope) { r.Magnitude = -1 }), "have magnitude -1"},
		"rope divisor missing":    {rope(func(r *Rope) { r.Divisor = "gone" }), "divisor gone is not in the file"},
		"rope divisor too short":  {func(b *builder) { b.find("rope_freqs.weight").Dims[0] = 8 }, "have F32 of shape [8], want F32 of at least 16"},
		"rope divisor of halves":  {func(b *builder) { b.find("rope_freqs.weight").Type = uint32(ggml.F16) }, "have F16 of shape"},
		"chat template too long":  {func(b *builder) { b.plan.Chat.Template = strings.Repeat(" ", maxTemplate+1) }, "a template of 1048577 bytes"},
		"too many stops":          {func(b *builder) { b.plan.Chat.Stop = names(maxStops + 1) }, "stop tokens: have 65"},
		"stop of nothing":         {func(b *builder) { b.plan.Chat.Stop = []string{""} }, "stop 0: have nothing"},
		"stop too long":           {func(b *builder) { b.plan.Chat.Stop = []string{long} }, "stop 0: have 257 bytes"},
		"think_open too long":     {func(b *builder) { b.plan.Chat.ThinkOpen = long }, "think_open: have 257 bytes"},
		"think without close":     {func(b *builder) { b.plan.Chat.ThinkClose = "" }, "want both or neither"},
		"unused not there":        {func(b *builder) { b.plan.Unused = []string{"gone"} }, "unused: tensor gone is not in the file"},
		"unused but read":         {func(b *builder) { b.plan.Unused = []string{"output_norm.weight"} }, "unused: tensor output_norm.weight is read"},
		"message too large":       {func(b *builder) { b.plan.Unused = []string{strings.Repeat("x", MaxMessage)} }, "want at most 67108864"},
	} {
		t.Run(name, func(t *testing.T) {
			b := small(t)
			c.mutate(b)
			wantFault(t, b.validatePlan(), c.want)
		})
	}
}

func TestValidatePlanOfNothing(t *testing.T) {
	if ValidatePlan(nil, nil) == nil || ValidatePlan(&Header{}, &Plan{}) == nil {
		t.Error("have no error for nothing")
	}
}

func TestUnread(t *testing.T) {
	b := small(t)
	b.tensor("blk.0.forgotten.bias", ggml.F32, 64)
	b.plan.Unused = nil
	want := "[blk.2.mtp.weight blk.0.forgotten.bias]"
	if have := fmt.Sprint(Unread(b.header, b.plan)); have != want {
		t.Errorf("have %s, want %s", have, want)
	}
}

// However much is wrong, the error stays readable.
func TestFaultsAreFew(t *testing.T) {
	b := small(t)
	for range 1000 {
		b.plan.Weights = append(b.plan.Weights, &Weight{})
	}
	err := b.validatePlan()
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != maxFaults+1 || !strings.Contains(lines[maxFaults], "more") {
		t.Errorf("have %d lines, the last %q, want %d and a count", len(lines), lines[len(lines)-1], maxFaults+1)
	}
}
