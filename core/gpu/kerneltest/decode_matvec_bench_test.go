package kerneltest_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
	"github.com/sluicehost/sluice/core/gpu/kerneltest"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// productShape is a product of one token's decode; picks above 0 tell the routed experts'.
type productShape struct {
	kernel           string
	typ              ggml.Type
	rows, cols, pick int
	forms            []productForm
}

// productForm is a kernel's form: its split, and whether x is staged in workgroup memory.
type productForm struct {
	split
	x string
}

func forms(x string, of ...split) (out []productForm) {
	for _, s := range of {
		out = append(out, productForm{s, x})
	}
	return out
}

// The forms to compare. Names: W_L_R_K of lib/lanes.wgsl.
var (
	wideForms = slices.Concat(forms("plain", split{128, 32, 2, 1}, split{128, 32, 2, 3}),
		forms("staged", split{128, 32, 2, 1}, split{128, 32, 2, 3}, split{128, 32, 2, 4}, split{256, 32, 2, 3}, split{256, 32, 1, 3},
			split{128, 64, 2, 2}, split{64, 64, 2, 2}, split{128, 32, 4, 1}))
	fewWide     = slices.Concat(forms("plain", split{128, 32, 2, 1}), forms("staged", split{128, 32, 2, 1}, split{128, 32, 2, 2}, split{128, 64, 2, 1}))
	pairForms   = slices.Concat(forms("plain", split{128, 32, 1, 3}), forms("staged", split{128, 32, 1, 1}, split{128, 32, 1, 3}, split{128, 32, 2, 1}, split{256, 32, 1, 3}, split{128, 64, 1, 2}, split{64, 64, 1, 2}))
	fewPair     = forms("staged", split{128, 32, 1, 1}, split{128, 32, 1, 2})
	bankForms   = slices.Concat(forms("plain", split{128, 32, 2, 1}), forms("staged", split{128, 32, 1, 3}, split{128, 32, 2, 1}, split{128, 32, 2, 2}, split{128, 32, 2, 3}, split{128, 32, 4, 1}, split{256, 32, 2, 2}, split{128, 16, 2, 2}))
	fewExpert   = forms("staged", split{128, 32, 2, 1}, split{128, 32, 1, 2})
	downForms   = slices.Concat(forms("plain", split{128, 8, 2, 3}), forms("staged", split{128, 8, 2, 1}, split{128, 8, 2, 3}, split{128, 8, 4, 1}, split{64, 8, 2, 3}, split{128, 16, 2, 2}))
	fewDown     = forms("staged", split{128, 8, 2, 1}, split{128, 8, 2, 2})
	headForms   = slices.Concat(forms("plain", split{128, 8, 4, 1}, split{128, 8, 2, 1}), forms("staged", split{128, 8, 4, 1}, split{128, 8, 2, 1}, split{128, 8, 2, 2}, split{128, 16, 4, 1}, split{128, 32, 4, 1}, split{256, 8, 4, 1}))
	fewHead     = forms("staged", split{128, 8, 4, 1}, split{128, 16, 4, 1}, split{128, 32, 2, 2})
	routerForms = slices.Concat(forms("plain", split{64, 64, 2, 1}, split{64, 64, 1, 2}), forms("staged", split{64, 64, 2, 1}, split{64, 64, 1, 1}, split{64, 64, 1, 2}, split{128, 128, 1, 1}))
)

// productShapes are gemma4 26b-a4b's, and then qwen35moe 35b-a3b's.
func productShapes() []productShape {
	out := []productShape{
		{"matvec", ggml.Q4_0, 8192, 2816, 0, wideForms},
		{"matvec", ggml.Q4_0, 2816, 4096, 0, wideForms},
		{"matvec", ggml.Q4_0, 2816, 2112, 0, wideForms},
		{"pair", ggml.Q4_0, 2112, 2816, 0, pairForms},
		{"expert_pair", ggml.Q4_0, 704, 2816, 8, bankForms},
		{"expert_matvec", ggml.Q4_0, 2816, 704, 8, downForms},
		{"matvec", ggml.F32, 128, 2816, 0, routerForms},
		{"matvec", ggml.Q6_K, 262144, 2816, 0, headForms},
		{"matvec", ggml.Q4_0, 262144, 2816, 0, fewHead},
		{"matvec", ggml.Q8_0, 262144, 2816, 0, fewHead},
		{"matvec", ggml.F32, 256, 2048, 0, routerForms[2:]},
		{"matvec", ggml.Q6_K, 248320, 2048, 0, fewHead},
	}
	for _, t := range []ggml.Type{ggml.Q4_0, ggml.Q8_0, ggml.Q4_K, ggml.Q6_K} {
		out = append(out, productShape{"matvec", t, 8192, 2048, 0, fewWide}, productShape{"matvec", t, 2048, 4096, 0, fewWide[1:]},
			productShape{"pair", t, 512, 2048, 0, fewPair}, productShape{"expert_pair", t, 512, 2048, 8, fewExpert},
			productShape{"expert_matvec", t, 2048, 512, 8, fewDown})
	}
	for _, t := range []ggml.Type{ggml.Q5_K, ggml.Q3_K, ggml.MXFP4, ggml.BF16} {
		out = append(out, productShape{"matvec", t, 8192, 2048, 0, fewWide[1:3]})
	}
	return out
}

// BenchmarkDecodeMatvec is the matrix-vector products of one token, each waiting for the one before, on weights that no cache
// holds any more: what a decode meets. us/dispatch is the best turn's. For choosing a split and a form:
// -test.bench DecodeMatvec -test.benchtime 5x. On a software device only its own split runs, on few rows.
func BenchmarkDecodeMatvec(b *testing.B) {
	d := gputest.Open(b)
	blobBytes := uint64(1 << 30)
	if d.Limits().CPU {
		blobBytes = 64 << 20
	}
	blob := weightBlob(b, d, blobBytes)
	defer blob.Release()
	for _, s := range productShapes() {
		if d.Limits().CPU {
			s.rows, s.forms = min(s.rows, 512), forms("plain", splits[0])
		}
		for _, f := range s.forms {
			b.Run(fmt.Sprintf("%s/%v/%dx%d/%s_%d_%d_%d_%d", s.kernel, s.typ, s.rows, s.cols, f.x, f.w, f.l, f.r, f.k), func(b *testing.B) {
				benchProduct(b, d, blob, s, f)
			})
		}
	}
}

// weightBlob is random bytes that all types take for weights.
func weightBlob(b *testing.B, d *gpu.Device, bytes uint64) *gpu.Buffer {
	blob, err := d.NewBuffer(gpu.Scratch, "weights", bytes, gpu.UsageStorage|gpu.UsageCopyDst)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	part := make([]byte, 8<<20)
	for i := 0; i < len(part); i += 8 {
		binary.LittleEndian.PutUint64(part[i:], r.Uint64())
	}
	for at := uint64(0); at < bytes; at += uint64(len(part)) {
		if err := d.Write(blob, at, part); err != nil {
			b.Fatal(err)
		}
	}
	return blob
}

// productCase is a shape's kernel and constants, with the bytes of weights that one dispatch reads.
func productCase(b *testing.B, s productShape, f productForm) (c kerneltest.Case, weights uint64) {
	spec := kernels.Spec{Name: s.kernel, Types: map[string]ggml.Type{}, Choices: map[string]string{"x": f.x}, Params: f.params()}
	packing, _ := ggml.Form(s.typ)
	var planes [2][4]uint32
	for i := range planes {
		offsets, total, err := packing.Planes(uint64(s.rows), uint64(s.cols))
		if err != nil {
			b.Fatal(err)
		}
		for j, o := range offsets {
			planes[i][j] = uint32((weights + o) / 16)
		}
		if weights += (total + 255) &^ 255; s.kernel == "matvec" || s.kernel == "expert_matvec" {
			break
		}
	}
	consts := map[string]any{"rows": uint32(s.rows), "units": uint32(s.cols / 32)}
	switch s.kernel {
	case "matvec":
		spec.Types["w"], spec.Choices["rows"], spec.Choices["out"] = s.typ, "all", "put"
		consts["planes"], consts["y_stride"], consts["y_off"], consts["eps"], consts["cap"] = planes[0], uint32(s.rows), uint32(0), 0.0, 0.0
	case "expert_matvec":
		spec.Types["down"], consts["down"] = s.typ, planes[0]
	default:
		spec.Types["gate"], spec.Types["up"], spec.Choices["act"], spec.Params = s.typ, s.typ, "gelu", f.pairParams()
		consts["gate"], consts["up"], consts["gate_row0"], consts["up_row0"] = planes[0], planes[1], uint32(0), uint32(0)
		consts["eps"], consts["limit"] = 0.0, 0.0
	}
	if s.kernel == "pair" {
		consts["y_stride"], consts["y_off"] = uint32(s.rows), uint32(0)
	}
	if s.pick > 0 {
		consts["stride"], consts["top_k"] = uint32(weights/16), uint32(s.pick)
		weights *= uint64(s.pick)
	}
	if f.x == "staged" {
		room := uint32(s.cols/32+31) / 32 * 32
		spec.Params["XU"], spec.Params["XL"] = room, min(8, (room*8+uint32(f.w)-1)/uint32(f.w))
	}
	c = build(b, spec)
	c.Constants = consts
	c.Grid = [3]uint32{f.groups(s.rows), 1, uint32(max(1, s.pick))}
	return c, weights
}

func benchProduct(b *testing.B, d *gpu.Device, blob *gpu.Buffer, s productShape, f productForm) {
	c, weights := productCase(b, s, f)
	var bindings []gpu.BindingType
	var ranges []gpu.Range
	atWeights := -1
	ids := make([]byte, 0, 32)
	for i := range uint32(8) {
		ids = binary.LittleEndian.AppendUint32(ids, i)
	}
	consts, err := kerneltest.Constants(c)
	if err != nil {
		b.Fatal(err)
	}
	pair := false
	for i, slot := range c.Kernel.Slots {
		kind, data, usage := gpu.ReadStorage, []byte(nil), gpu.UsageStorage
		switch {
		case slot.Access == program.Access_UNIFORM:
			kind, data, usage = gpu.Uniform, consts, gpu.UsageUniform
		case slot.Access == program.Access_READ_WRITE:
			kind, data = gpu.Storage, make([]byte, 4*s.rows*max(1, s.pick))
		case slot.Name == "w" || slot.Name == "bank" || slot.Name == "gate":
			atWeights = i
		case slot.Name == "up":
			pair = true
		case slot.Name == "x":
			data = make([]byte, 4*s.cols*max(1, s.pick))
		default:
			data = ids
		}
		bindings = append(bindings, kind)
		buf := blob
		if data != nil {
			if buf, err = d.NewBuffer(gpu.Scratch, slot.Name, uint64(len(data)), usage|gpu.UsageCopyDst); err != nil {
				b.Fatal(err)
			}
			defer buf.Release()
			if err := d.Write(buf, 0, data); err != nil {
				b.Fatal(err)
			}
		}
		ranges = append(ranges, gpu.Range{Buffer: buf})
	}
	p, err := d.NewPipeline(c.Kernel.Name, c.Kernel.Wgsl, bindings)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Release()
	// Copies of the weights follow each other until a cache of 50 MB has forgotten the first one.
	copies := max(1, min(blob.Size()/weights, 160<<20/weights+1, 128))
	var list gpu.Commands
	for i := range copies {
		r := slices.Clone(ranges)
		r[atWeights] = gpu.Range{Buffer: blob, Offset: i * weights, Size: weights}
		if pair {
			r[atWeights+1] = r[atWeights]
		}
		g, err := d.NewBindGroup(p, "decode", r)
		if err != nil {
			b.Fatal(err)
		}
		defer g.Release()
		list.Dispatch(p, g, c.Grid[0], c.Grid[1], c.Grid[2])
	}
	turns := 1
	if !d.Limits().CPU {
		turns = max(1, int(400/copies))
		if s.rows > 100000 {
			turns = max(1, int(10/copies))
		}
	}
	least := time.Hour
	run := func() {
		start := time.Now()
		if err := d.Submit(slices.Repeat([]*gpu.Commands{&list}, turns)...); err != nil {
			b.Fatal(err)
		}
		if err := d.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
		least = min(least, time.Since(start))
	}
	run() // the first one compiles
	awaken(d, run)
	least = time.Hour
	for b.Loop() {
		run()
	}
	us := float64(least.Nanoseconds()) / 1e3 / float64(turns*int(copies))
	b.ReportMetric(us, "us/dispatch")
	b.ReportMetric(float64(weights)/us/1e3, "GB/s")
	b.ReportMetric(0, "ns/op")
}
