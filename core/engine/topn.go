package engine

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/program"
)

// Logits are what the model says after one token. The slices are valid until the next step.
type Logits struct {
	All       []float32 // by token id, -Inf where suppressed; nil with Options.Top
	IDs       []int32   // with Options.Top: the best tokens, best first
	Top       []float32 // their logits
	LogSumExp float64   // over all tokens; with Options.Top only
}

// MaxTop is the largest Options.Top.
const MaxTop = kernels.MaxTopN

// topn finds the best tokens on the GPU, so that a step reads back a few numbers and not the
// whole vocabulary. It is a host operation, not part of the program.
type topn struct {
	op                   *kernels.TopN
	first, merge         *gpu.Pipeline
	firstSet, mergeSet   *gpu.BindGroup
	constants, mask      *gpu.Buffer
	ids, sums            *gpu.Buffer
	topIDs, topLogits    *gpu.Buffer
	lse                  *gpu.Buffer
	readIDs, readLogits  uint64 // where they lie in the readback; lse is last
	readLSE, readbackEnd uint64
}

// planTopN chooses the operation and its sizes; nil where whole rows are wanted.
func (m *Model) planTopN(n int) error {
	if n <= 0 {
		return nil
	}
	vocab := m.Plan.Model.Vocab
	if n > MaxTop {
		return fmt.Errorf("engine: top: have %d tokens, want at most %d", n, MaxTop)
	}
	op, err := kernels.NewTopN(DeviceLimits(m.limits), vocab, min(uint32(n), vocab))
	if err != nil {
		return fail("top", err)
	}
	b := op.Bytes(uint32(m.outs()))
	m.topn = &topn{op: op, readLogits: b.TopIds, readLSE: b.TopIds + b.TopLogits, readbackEnd: b.TopIds + b.TopLogits + b.LSE}
	return nil
}

// buffers lists the operation's buffers with their sizes.
func (t *topn) buffers(rows int) []tableBuffer {
	b := t.op.Bytes(uint32(rows))
	return []tableBuffer{{&t.constants, "top constants", uint64(len(t.op.Constants())), gpu.UsageUniform | gpu.UsageCopyDst},
		{&t.mask, "suppressed", b.Mask, storageUsage}, {&t.ids, "top ids of chunks", b.Ids, storageUsage}, {&t.sums, "sums of chunks", b.Sums, storageUsage},
		{&t.topIDs, "top ids", b.TopIds, storageUsage}, {&t.topLogits, "top logits", b.TopLogits, storageUsage}, {&t.lse, "logsumexp", b.LSE, storageUsage}}
}

// make creates buffers, pipelines and bind groups.
func (t *topn) make(m *Model, suppress []byte) error {
	if err := m.makeTableBuffers(t.buffers(m.outs())); err != nil {
		return err
	}
	if err := m.device.Write(t.constants, 0, t.op.Constants()); err != nil {
		return err
	}
	if err := m.device.Write(t.mask, 0, suppress); err != nil {
		return err
	}
	p, err := m.device.NewPipelines([]gpu.PipelineSpec{
		{Label: t.op.First.Name, WGSL: t.op.First.Wgsl, Bindings: bindingTypes(t.op.First)},
		{Label: t.op.Merge.Name, WGSL: t.op.Merge.Wgsl, Bindings: bindingTypes(t.op.Merge)},
	})
	if err != nil {
		return err
	}
	t.first, t.merge = p[0], p[1]
	byName := map[string]*gpu.Buffer{"c": t.constants, "logits": m.tables.logits, "mask": t.mask, "ids": t.ids, "sums": t.sums,
		"top_ids": t.topIDs, "top_logits": t.topLogits, "lse": t.lse}
	bind := func(p *gpu.Pipeline, k *program.Kernel) (*gpu.BindGroup, error) {
		ranges := make([]gpu.Range, len(k.Slots))
		for i, s := range k.Slots {
			ranges[i] = gpu.Range{Buffer: byName[s.Name]}
		}
		return m.device.NewBindGroup(p, k.Name, ranges)
	}
	if t.firstSet, err = bind(t.first, t.op.First); err != nil {
		return err
	}
	t.mergeSet, err = bind(t.merge, t.op.Merge)
	return err
}

// record appends the operation over rows rows.
func (t *topn) record(c *gpu.Commands, rows uint32) {
	first, merge := t.op.Grids(rows)
	c.Dispatch(t.first, t.firstSet, first[0], first[1], first[2])
	c.Dispatch(t.merge, t.mergeSet, merge[0], merge[1], merge[2])
}

// copy appends the copies of the results.
func (t *topn) copy(c *gpu.Commands, r *gpu.Readback, rows uint32) {
	n := 4 * uint64(rows) * uint64(t.op.N)
	r.Copy(c, t.readIDs, t.topIDs, 0, n)
	r.Copy(c, t.readLogits, t.topLogits, 0, n)
	r.Copy(c, t.readLSE, t.lse, 0, 4*uint64(rows))
}

// row decodes one row of the results.
func (t *topn) row(data []byte, i int, l *Logits) {
	n := int(t.op.N)
	l.All, l.IDs, l.Top = nil, l.IDs[:0], l.Top[:0]
	for k := range n {
		at := 4 * (i*n + k)
		id := binary.LittleEndian.Uint32(data[int(t.readIDs)+at:])
		if id == math.MaxUint32 {
			break // fewer tokens than asked for
		}
		l.IDs = append(l.IDs, int32(id))
		l.Top = append(l.Top, math.Float32frombits(binary.LittleEndian.Uint32(data[int(t.readLogits)+at:])))
	}
	l.LogSumExp = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[int(t.readLSE)+4*i:])))
}

func (t *topn) release() {
	for _, b := range []*gpu.Buffer{t.constants, t.mask, t.ids, t.sums, t.topIDs, t.topLogits, t.lse} {
		if b != nil {
			b.Release()
		}
	}
	for _, g := range []*gpu.BindGroup{t.firstSet, t.mergeSet} {
		if g != nil {
			g.Release()
		}
	}
	for _, p := range []*gpu.Pipeline{t.first, t.merge} {
		if p != nil {
			p.Release()
		}
	}
}

// suppressMask is the bit mask of suppressed tokens, a bit per token of the vocabulary.
func suppressMask(ids []int32, vocab uint32) ([]byte, error) {
	mask := make([]byte, 4*((vocab+31)/32))
	for _, id := range ids {
		if id < 0 || uint32(id) >= vocab {
			return nil, fmt.Errorf("engine: suppressed token %d: want one from 0 to %d", id, vocab-1)
		}
		mask[id/8] |= 1 << (id % 8)
	}
	return mask, nil
}
