package program

import (
	"math"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// Rules about sizes: placed weights, records, buffers, memory in all.
func TestValidateRefusesSizes(t *testing.T) {
	qkv := func(f func(*Placed)) func(*builder) {
		return func(b *builder) { f(b.placed[b.things["blk.0.attn_qkv"].GetWeight().Weight]) }
	}
	vector := func(f func(*Placed)) func(*builder) {
		return func(b *builder) { f(b.placed[b.things["output_norm.weight"].GetWeight().Weight]) }
	}
	record := func(f func(*PlacedRecord)) func(*builder) { return func(b *builder) { f(b.records[0]) } }
	buf := func(name string, f func(*Buffer)) func(*builder) { return func(b *builder) { f(b.buf(name)) } }
	for name, c := range map[string]fault{
		"too few placed":       {func(b *builder) { b.placed = b.placed[1:] }, "placed weights: have"},
		"placed in disorder":   {func(b *builder) { b.placed[0], b.placed[1] = b.placed[1], b.placed[0] }, "placed weight output_norm.weight: want token_embd.weight, as weight 0"},
		"bands with a gap":     {qkv(func(p *Placed) { p.Bands[1].Row0 = 97 }), "placed weight blk.0.attn_qkv: band 1: have 32 rows from 97, want some from 96"},
		"bands that overlap":   {qkv(func(p *Placed) { p.Bands[1].Row0 = 95 }), "band 1: have 32 rows from 95"},
		"band of no rows":      {qkv(func(p *Placed) { p.Bands[0].Rows = 0 }), "band 0: have 0 rows"},
		"bands past the rows":  {qkv(func(p *Placed) { p.Bands[1].Rows = 33 }), "band 1: have 33 rows from 96"},
		"bands short of rows":  {qkv(func(p *Placed) { p.Bands = p.Bands[:1] }), "have bands over 96 rows, want all of 128"},
		"weight without cols":  {vector(func(p *Placed) { p.Cols = 0 }), "placed weight output_norm.weight: have bands over 1 rows, want all of 1 rows x 0 cols"},
		"band of no type":      {qkv(func(p *Placed) { p.Bands[0].Type = 999 }), "band 0: have type type 999, want one with a GPU form"},
		"band of odd cols":     {qkv(func(p *Placed) { p.Cols = 63 }), "band 0: ggml: Q4_0: have rows of 63 values"},
		"band without planes":  {qkv(func(p *Placed) { p.Bands[0].Planes = nil }), "band 0: have 0 planes, want 2 as the form of Q4_0"},
		"plane past the band":  {qkv(func(p *Placed) { p.Bands[0].Planes[1]++ }), "band 0: plane ends at byte"},
		"band of few bytes":    {qkv(func(p *Placed) { p.Bands[0].Bytes -= 16 }), "band 0: plane ends at byte"},
		"band over a binding":  {qkv(func(p *Placed) { p.Bands[0].Bytes = 1<<31 + 16 }), "want at most 2147483648, the largest binding"},
		"vector of few bytes":  {vector(func(p *Placed) { p.Bands[0].Bytes = 252 }), "band 0: have 252 bytes, want at least 1 x 64 f32"},
		"vector overflows":     {vector(func(p *Placed) { p.Cols = math.MaxUint64 }), "band 0: have 256 bytes"},
		"too many bands":       {qkv(func(p *Placed) { p.Bands = make([]*Band, maxBands) }), "bands: have"},
		"too few records":      {func(b *builder) { b.records = nil }, "placed records: have 0, want 2"},
		"record of a layer":    {record(func(r *PlacedRecord) { r.Layer = 9 }), "placed record of layer 9: have 2 parts, want layer 0 with 2"},
		"record of fewer":      {record(func(r *PlacedRecord) { r.Parts = r.Parts[:1] }), "have 1 parts, want layer 0 with 2"},
		"part of a name":       {record(func(r *PlacedRecord) { r.Parts[1].Name = "up" }), "part up: want down, as in the plan"},
		"stride of zero":       {record(func(r *PlacedRecord) { r.Stride = 0 }), "have stride 0, want a multiple of 256"},
		"stride unaligned":     {record(func(r *PlacedRecord) { r.Stride += 128 }), "want a multiple of 256"},
		"stride over binding":  {record(func(r *PlacedRecord) { r.Stride = 1<<30 + 256 }), "have 2 experts of 1073742080 bytes a token"},
		"parts overlap":        {record(func(r *PlacedRecord) { r.Parts[1].Bands[0].Planes[0]-- }), "part down: plane starts at byte"},
		"part past stride":     {record(func(r *PlacedRecord) { r.Stride -= 256 }), "want within the stride of"},
		"part in disorder":     {record(func(r *PlacedRecord) { r.Parts[0].Bands[0].Row0 = 1 }), "part gate_up: band 0: have 128 rows from 1"},
		"part without planes":  {record(func(r *PlacedRecord) { r.Parts[0].Bands[0].Planes = nil }), "have 0 planes"},
		"buffer without name":  {buf("h", func(x *Buffer) { x.Name = "" }), "buffer: have no name"},
		"buffer name twice":    {buf("h", func(x *Buffer) { x.Name = "att" }), "buffer: have the name att twice"},
		"buffer of no class":   {buf("h", func(x *Buffer) { x.Class = 9 }), "buffer h: have class 9"},
		"buffer of no elem":    {buf("h", func(x *Buffer) { x.Elem = 9 }), "buffer h: have elem 9"},
		"window without ring":  {buf("h", func(x *Buffer) { x.Window = 8 }), "buffer h: have class SCRATCH with window 8"},
		"ring without window":  {buf("blk.0.v", func(x *Buffer) { x.Window = 0 }), "buffer blk.0.v: have class RING with window 0"},
		"KV without positions": {buf("blk.0.k", func(x *Buffer) { x.PerPos, x.Fixed = 0, 8 }), "buffer blk.0.k: have class KV without per_pos"},
		"state with positions": {buf("blk.0.state", func(x *Buffer) { x.PerPos = 1 }), "buffer blk.0.state: have class STATE with per_pos 1"},
		"session by rows":      {buf("blk.0.k", func(x *Buffer) { x.PerRow = 1 }), "buffer blk.0.k: have class KV with per_row 1"},
		"session by outputs":   {buf("blk.0.state", func(x *Buffer) { x.PerOut = 1 }), "per_out 1 and per_row_pos 0, want 0"},
		"session by both":      {buf("blk.0.k", func(x *Buffer) { x.PerRowPos = 1 }), "per_row_pos 1, want 0"},
		"rows by positions":    {buf("h", func(x *Buffer) { x.PerRowPos = 1 << 30 }), "buffer h: have"},
		"rows by positions of": {buf("h", func(x *Buffer) { x.PerRowPos = 1 << 60 }), "buffer h: the size at chunk 64"},
		"buffer of nothing":    {buf("h", func(x *Buffer) { x.PerRow = 0 }), "buffer h: have 0 bytes"},
		"buffer overflows":     {buf("h", func(x *Buffer) { x.PerRow = math.MaxUint64 }), "buffer h: the size at chunk 64, outs 8, context 128 overflows"},
		"buffer over binding":  {buf("h", func(x *Buffer) { x.Fixed = 1 << 29 }), "buffer h: have 2147500032 bytes"},
		"input out of range":   {func(b *builder) { b.prog.Input = 99 }, "input: have buffer 99, want below"},
		"input of other width": {buf("x", func(x *Buffer) { x.PerRow = 65 }), "input: buffer x: have SCRATCH F32 with 65 per row, want SCRATCH F32 with 64"},
		"input of halves":      {buf("x", func(x *Buffer) { x.Elem = Elem_F16 }), "input: buffer x: have SCRATCH F16"},
		"input of a session":   {func(b *builder) { b.prog.Input = b.bufferIndex("blk.0.k") }, "input: buffer blk.0.k: have KV"},
		"budget overdrawn": {func(b *builder) {
			for _, n := range []string{"a", "b", "c", "d", "e"} {
				b.buffer(&Buffer{Name: n, Fixed: 1<<29 - 1})
			}
		}, "buffers and tables: have 1073"},
		"logits over binding": {func(b *builder) { b.plan.Model.Vocab = 1 << 27 }, "table LOGITS: have 4294967296 bytes"},
		"sum overflows": {func(b *builder) {
			for _, n := range []string{"a", "b", "c", "d"} {
				b.buffer(&Buffer{Name: n, Fixed: 1 << 60})
			}
		}, "buffers and tables: have"},
		"plan not validated": {func(b *builder) { b.plan.Model.TopK = math.MaxUint32 }, "run ValidatePlan first"},
		"rope not validated": {func(b *builder) { b.plan.Ropes[0].Pairs = math.MaxUint32 }, "plan: rope rope: have 4294967295 pairs"},
		"version":            {func(b *builder) { b.prog.Version = 2 }, "version: have 2, want 1"},
		"message too large":  {func(b *builder) { b.prog.Kernels[0].Wgsl = strings.Repeat(" ", MaxMessage) }, "have a message of"},
		"too many buffers":   {func(b *builder) { b.prog.Buffers = make([]*Buffer, maxBuffers+1) }, "buffers: have 16385, want at most 16384"},
		"too many kernels":   {func(b *builder) { b.prog.Kernels = make([]*Kernel, maxKernels+1) }, "kernels: have 2049"},
		"too many sections":  {func(b *builder) { b.prog.Sections = make([]*Section, maxSections+1) }, "sections: have 4097"},
		"too many variants":  {func(b *builder) { b.sect(Kind_HEAD, 0).Variants = make([]*Variant, maxVariants+1) }, "(HEAD): variants: have 17"},
		"too many dispatches": {func(b *builder) { b.sect(Kind_HEAD, 0).Variants[0].Dispatches = make([]*Dispatch, maxDispatches) },
			"dispatches: have"},
		"too many bindings": {func(b *builder) {
			b.sect(Kind_HEAD, 0).Variants[0].Dispatches[0].Bindings = make([]*Binding, maxBindings+1)
		}, "bindings: have"},
		"too many slots":  {func(b *builder) { b.kern("split").Slots = make([]*Slot, maxBound+1) }, "kernel split: slots: have 65"},
		"too much source": {func(b *builder) { b.kern("split").Wgsl = strings.Repeat(" ", maxSource) }, "bytes of WGSL in all kernels"},
		"too many params": {func(b *builder) {
			b.kern("split").Params = map[string]uint32{}
			for _, n := range names(maxParams + 1) {
				b.kern("split").Params[n] = 1
			}
		}, "kernel split: params and types: have 65"},
	} {
		t.Run(name, func(t *testing.T) {
			b := small(t)
			c.mutate(b)
			wantFault(t, b.validate(testBounds()), c.want)
		})
	}
}

// Without limits of a device, sizes are checked for overflow alone.
func TestValidateWithoutLimits(t *testing.T) {
	b := small(t)
	b.buf("h").Fixed = 1 << 40
	if err := b.validate(Bounds{Chunk: 64, Outs: 8, Context: 128}); err != nil {
		t.Error(err)
	}
}

func TestValidateRefusesBounds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Bounds)
		want   string
	}{
		"no chunk":            {func(b *Bounds) { b.Chunk = 0 }, "bounds: have chunk 0"},
		"no outs":             {func(b *Bounds) { b.Outs = 0 }, "bounds: have outs 0"},
		"endless context":     {func(b *Bounds) { b.Context = 1 << 32 }, "bounds: have context 4294967296"},
		"odd alignment":       {func(b *Bounds) { b.UniformAlign = 48 }, "have an alignment of 48"},
		"largest buffer":      {func(b *Bounds) { b.MaxBuffer = 1000 }, "buffer x: have 16384 bytes"},
		"alignment of slots":  {func(b *Bounds) { b.StorageAlign = 4096 }, "want a multiple of 4096"},
		"budget of a session": {func(b *Bounds) { b.Budget = 1000 }, "want at most 1000: lower the context or the chunk"},
		"ropes over binding":  {func(b *Bounds) { b.Limits.MaxBinding = 8000 }, "rope rope: have 8192 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			x := testBounds()
			c.change(&x)
			wantFault(t, small(t).validate(x), c.want)
		})
	}
}

// A band's planes are judged by its own type's form.
func TestValidateKnowsForms(t *testing.T) {
	b := small(t)
	p := b.placed[b.things["blk.0.attn_qkv"].GetWeight().Weight]
	p.Bands[0].Type = uint32(ggml.F32)
	wantFault(t, b.validate(testBounds()), "band 0: have 2 planes, want 1 as the form of F32")
}
