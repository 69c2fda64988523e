package kernels

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/sluicehost/sluice/sdk/program"
)

// MaxTopN is the largest N of a TopN: a software device's loop limit stands against more.
const MaxTopN = 64

// TopN is the host operation that reads logits: per row the N best tokens with
// their logits, and the logsumexp of all tokens that are not masked. N = 1 is
// argmax. It takes two dispatches, First then Merge, whose WGSL says what
// their bindings hold.
type TopN struct {
	Vocab, N     uint32
	Chunk        uint32          // tokens of one workgroup of First
	First, Merge *program.Kernel // topn and topn_merge
}

// TopNBytes is the size in bytes of each binding of a TopN, for a number of rows.
type TopNBytes struct {
	Logits    uint64 // f32 [rows][vocab]
	Mask      uint64 // u32 [ceil(vocab / 32)]
	Ids       uint64 // u32 [rows][chunks][N]
	Sums      uint64 // f32 [rows][chunks][2]
	TopIds    uint64 // u32 [rows][N]
	TopLogits uint64 // f32 [rows][N]
	LSE       uint64 // f32 [rows]
}

// NewTopN builds the kernels for a vocabulary and n tokens of each row, 1 to
// MaxTopN. It fails where a device with such limits can't run them.
func NewTopN(limits *program.Limits, vocab, n uint32) (*TopN, error) {
	if vocab == 0 || vocab > 1<<30 || n == 0 || n > MaxTopN {
		return nil, fmt.Errorf("kernels: topn: have a vocabulary of %d and %d tokens wanted, want 1 to %d and 1 to %d", vocab, n, 1<<30, MaxTopN)
	}
	// Some 32 chunks keep the candidates of the merge few; a software device's barriers want narrow groups.
	t, w, keep := &TopN{Vocab: vocab, N: n, Chunk: max(1024, uint32(1)<<bits.Len32((vocab-1)/32))}, uint32(256), uint32(4)
	if limits.GetCpu() {
		t.Chunk, w, keep = 8192, 16, 8
	}
	var err error
	params := map[string]uint32{"N": n, "W": w, "KEEP": min(n, keep)}
	if t.First, err = Build(Spec{Name: "topn", Params: params}); err != nil {
		return nil, err
	}
	if t.Merge, err = Build(Spec{Name: "topn_merge", Params: params}); err != nil {
		return nil, err
	}
	for _, k := range []*program.Kernel{t.First, t.Merge} {
		if err := CheckLoops(k, program.StepUniform{}, t.Constants(), limits); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Chunks is how many chunks the vocabulary is cut into.
func (t *TopN) Chunks() uint32 { return (t.Vocab + t.Chunk - 1) / t.Chunk }

// Constants is the Constants struct of both kernels.
func (t *TopN) Constants() []byte {
	out := make([]byte, 16)
	binary.LittleEndian.PutUint32(out, t.Vocab)
	binary.LittleEndian.PutUint32(out[4:], t.Chunk)
	return out
}

// Grids are the workgroups of First and of Merge.
func (t *TopN) Grids(rows uint32) (first, merge [3]uint32) {
	return [3]uint32{t.Chunks(), rows, 1}, [3]uint32{1, rows, 1}
}

// Bytes is the size of each binding.
func (t *TopN) Bytes(rows uint32) TopNBytes {
	r, n, chunks := uint64(rows), uint64(t.N), uint64(t.Chunks())
	return TopNBytes{Logits: 4 * r * uint64(t.Vocab), Mask: 4 * ((uint64(t.Vocab) + 31) / 32), Ids: 4 * r * chunks * n,
		Sums: 8 * r * chunks, TopIds: 4 * r * n, TopLogits: 4 * r * n, LSE: 4 * r}
}
