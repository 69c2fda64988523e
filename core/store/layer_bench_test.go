package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/core/stream"
	"github.com/sluicehost/sluice/sdk/ggml"
)

// memory is slots without a GPU: what a layer waits for but its upload.
type memory struct {
	store.Source
	slots  [][]byte
	pieces bool // read records in pieces
}

// slotLoad is a record on its way to a slot.
type slotLoad struct {
	m      *memory
	key    stream.Key
	slot   int
	pieces int
}

func (m *memory) Begin(_ context.Context, key stream.Key, _, slot int) (stream.Transfer, int, error) {
	x := &slotLoad{m, key, slot, 1}
	if m.pieces {
		x.pieces = m.Pieces(key.Layer, key.Expert)
	}
	return x, x.pieces, nil
}

func (x *slotLoad) Read(ctx context.Context, piece int) error {
	_, err := x.m.ReadPiece(ctx, x.key.Layer, x.key.Expert, piece, x.pieces, x.m.slots[x.slot])
	return err
}

func (x *slotLoad) End(err error) error { return err }

// BenchmarkLayer is how long a layer waits that lacks some experts, with four readers and the page cache: records read
// whole, a reader each, beside records read in pieces.
func BenchmarkLayer(b *testing.B) {
	for _, typ := range []ggml.Type{ggml.Q4_0, ggml.Q4_K} {
		o := benchExperts(b, typ)
		for _, lacks := range []int{1, 2, 4} {
			for _, pieces := range []bool{false, true} {
				b.Run(fmt.Sprintf("%v/lacks=%d/pieces=%t", typ, lacks, pieces), func(b *testing.B) {
					m := &memory{Source: o, pieces: pieces}
					for range lacks {
						m.slots = append(m.slots, make([]byte, o.records[0].Stride))
					}
					p, err := stream.New(stream.Config{Banks: []stream.Bank{{Layers: []int{0}, Experts: benchCount, RecordBytes: int64(o.records[0].Stride), Slots: lacks}}, Readers: 4, Loader: m})
					if err != nil {
						b.Fatal(err)
					}
					defer p.Close()
					asked := make([]int, lacks)
					b.SetBytes(int64(lacks) * int64(o.records[0].Stride))
					for i := 0; b.Loop(); i++ {
						for j := range asked {
							asked[j] = (i*lacks + j) % benchCount
						}
						pins, err := p.Ensure(b.Context(), 0, asked)
						if err != nil {
							b.Fatal(err)
						}
						pins.Release()
					}
				})
			}
		}
	}
}
