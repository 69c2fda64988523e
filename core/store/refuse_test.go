package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
	"google.golang.org/protobuf/proto"
)

// small is a model of one layer, 3, of 4 experts, with a weight of each use.
func small(t *testing.T) *opened {
	r := random(t)
	path := write(t, noise(r, "embd", ggml.Q8_0, 64, 10), noise(r, "norm", ggml.F32, 64), noise(r, "freqs", ggml.F32, 8),
		noise(r, "proj", ggml.Q4_0, 64, 9), noise(r, "up", ggml.Q4_0, 64, 6, 4), noise(r, "down", ggml.F16, 32, 64, 4))
	return open(t, path, 0, func(*gguf.File) *program.Plan { return smallPlan() })
}

func smallPlan() *program.Plan {
	return &program.Plan{
		Model: &program.Model{Experts: 4, TopK: 2, Hidden: 64}, Embed: &program.Embed{Tensor: "embd"},
		Weights: []*program.Weight{
			{Name: "proj", Tensors: []string{"proj"}}, {Name: "norm", Tensors: []string{"norm"}, Use: program.Use_VECTOR}},
		Records: []*program.Record{{Layer: 3, Parts: []*program.Weight{
			{Name: "u", Tensors: []string{"up"}}, {Name: "d", Tensors: []string{"down"}}}}},
		Ropes: []*program.Rope{{Name: "plain", Pairs: 8}, {Name: "divided", Pairs: 6, Divisor: "freqs"}},
	}
}

func ignore(uint64, []byte) error { return nil }

// Every reader, over a file that was cut after it was opened, says what it was
// reading and where, and no bytes of padding stand in for those that are gone.
func TestTruncated(t *testing.T) {
	o := small(t)
	ctx := context.Background()
	file := o.file.Parts[0].Name
	for _, c := range []struct {
		name, tensor string
		read         func() error
		want         string
	}{
		{"record", "down", func() error { return o.ReadRecord(ctx, 3, 2, make([]byte, o.records[0].Stride)) }, "store: layer 3 expert 2: tensor down: have 0 of 4096 bytes: %s: have no byte %d, want "},
		{"band", "proj", func() error { return o.ReadBand(ctx, 0, 0, ignore) }, `store: weight "proj": tensor proj: have 0 of 324 bytes: %s: have no byte %d, want `},
		{"rope", "freqs", func() error { _, err := o.RopeDivisor(1); return err }, "store: tensor freqs: have 0 of 24 bytes: %s: have no byte %d, want "},
		{"vector", "norm", func() error { return o.ReadBand(ctx, 1, 0, ignore) }, `store: weight "norm": tensor norm: have 0 of 256 bytes: %s: have no byte %d, want `},
		{"embedding", "embd", func() error { return o.EmbedRows([]int32{0}, make([]float32, 64)) }, "store: token 0: tensor embd: have 0 of 68 bytes: %s: have no byte %d, want "},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, _ := o.file.Tensor(c.tensor)
			off := x.Offset
			if c.name == "record" {
				off += x.Size / 4 * 2
			}
			if err := c.read(); err != nil {
				t.Fatalf("before: %v", err)
			}
			if err := os.Truncate(file, off); err != nil {
				t.Fatal(err)
			}
			err, want := c.read(), fmt.Sprintf(c.want, "gguf: "+file, off)
			if err == nil || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "start again") {
				t.Errorf("have error %v\nwant %s and what to do", err, want)
			}
		})
	}
}

// Of a model in parts the error names the part and the byte in it, however records are read.
func TestTruncatedPart(t *testing.T) {
	tensors, p := experts(t, 3)
	m := &gguftest.Model{Metadata: gguftest.Pairs("general.architecture", "test"), Tensors: tensors}
	n := len(tensors)
	for i, r := range append(readings, store.Reading{}) {
		paths, err := gguftest.WriteParts(t.TempDir(), "m", m.Split(1, n/2, n-n/2-1))
		if err != nil {
			t.Fatal(err)
		}
		o := open(t, paths[0], 0, func(*gguf.File) *program.Plan { return p })
		if i < len(readings) {
			direct(t, o.Prepare(r))
		}
		const left = 8192
		if err := os.Truncate(paths[2], left); err != nil {
			t.Fatal(err)
		}
		err = o.ReadRecord(t.Context(), int(o.records[0].Layer), 2, make([]byte, o.records[0].Stride))
		if err == nil || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%+v: have %v", r, err)
		}
		at := regexp.MustCompile(`tensor .+: have \d+ of \d+ bytes: (?:gguf: )?` + regexp.QuoteMeta(paths[2]) + `: have no byte (\d+), want the (\d+) bytes .*start again`).FindStringSubmatch(err.Error())
		if size := fmt.Sprint(o.file.Parts[2].Size); at == nil || at[2] != size || len(at[1]) > len(size) {
			t.Errorf("%+v: have %v, want the tensor, %s, the byte in it and what to do", r, err, paths[2])
		}
	}
}

func TestBadCalls(t *testing.T) {
	o := small(t)
	ctx, cancel := context.WithCancel(context.Background())
	slot := make([]byte, o.records[0].Stride)
	stop := errors.New("stop")
	for _, c := range []struct {
		name string
		read func() error
		want string
	}{
		{"layer", func() error { return o.ReadRecord(ctx, 2, 0, slot) }, "layer 2: have no expert records"},
		{"expert", func() error { return o.ReadRecord(ctx, 3, 4, slot) }, "layer 3: have expert 4, want 0 to 3"},
		{"negative expert", func() error { return o.ReadRecord(ctx, 3, -1, slot) }, "have expert -1"},
		{"short slot", func() error { return o.ReadRecord(ctx, 3, 0, slot[1:]) }, "want the stride of"},
		{"long slot", func() error { return o.ReadRecord(ctx, 3, 0, append(slot, 0)) }, "want the stride of"},
		{"weight", func() error { return o.ReadBand(ctx, 2, 0, ignore) }, "have weight 2, want one of the plan's 2"},
		{"negative weight", func() error { return o.ReadBand(ctx, -1, 0, ignore) }, "have weight -1"},
		{"band", func() error { return o.ReadBand(ctx, 0, 1, ignore) }, `weight "proj": have band 1, want one of its 1`},
		{"band of a vector", func() error { return o.ReadBand(ctx, 1, 1, ignore) }, `weight "norm": have band 1, want one of its 1`},
		{"negative band", func() error { return o.ReadBand(ctx, 1, -1, ignore) }, "have band -1"},
		{"emit", func() error { return o.ReadBand(ctx, 0, 0, func(uint64, []byte) error { return stop }) }, "stop"},
		{"emit of a vector", func() error { return o.ReadBand(ctx, 1, 0, func(uint64, []byte) error { return stop }) }, "stop"},
		{"token", func() error { return o.EmbedRows([]int32{3, 10}, make([]float32, 128)) }, "tensor embd: have token id 10, want 0 to 9"},
		{"negative token", func() error { return o.EmbedRows([]int32{-1}, make([]float32, 64)) }, "have token id -1"},
		{"row", func() error { return o.EmbedRows([]int32{1}, make([]float32, 63)) }, "have room for 63 values, want 1 rows of 64"},
		{"rope", func() error { _, err := o.RopeDivisor(2); return err }, "have rope 2, want one of the plan's 2"},
		{"negative rope", func() error { _, err := o.RopeDivisor(-1); return err }, "have rope -1"},
		{"cancelled record", func() error { cancel(); return o.ReadRecord(ctx, 3, 0, slot) }, "context canceled"},
		{"cancelled band", func() error { return o.ReadBand(ctx, 0, 0, ignore) }, "context canceled"},
		{"cancelled vector", func() error { return o.ReadBand(ctx, 1, 0, ignore) }, "context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.read()
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "store: ") {
				t.Errorf("have error %v\nwant %s", err, c.want)
			}
			if c.want == "stop" && !errors.Is(err, stop) {
				t.Errorf("have error %v, want emit's own in it", err)
			}
		})
	}
}

// A layout that is not this file's is refused when the source is made.
func TestBadLayout(t *testing.T) {
	o := small(t)
	for _, c := range []struct {
		name   string
		change func(p *program.Plan, w []*program.Placed, r []*program.PlacedRecord) ([]*program.Placed, []*program.PlacedRecord)
		want   string
	}{
		{"weights missing", func(_ *program.Plan, w []*program.Placed, r []*program.PlacedRecord) ([]*program.Placed, []*program.PlacedRecord) {
			return w[1:], r
		}, "have 1 placed weights, want 2"},
		{"records missing", func(_ *program.Plan, w []*program.Placed, r []*program.PlacedRecord) ([]*program.Placed, []*program.PlacedRecord) {
			return w, nil
		}, "have 0 placed records, want 1"},
		{"rows missing", edit(func(_ *program.Plan, w []*program.Placed, _ []*program.PlacedRecord) {
			b := w[0].Bands[0]
			b.Rows, b.Bytes, b.Planes = 8, 288, []uint32{0, 16}
		}), `weight "proj": have no band for the rest of tensor proj`},
		{"rows too many", edit(func(_ *program.Plan, w []*program.Placed, _ []*program.PlacedRecord) {
			b := w[0].Bands[0]
			b.Rows, b.Bytes, b.Planes = 10, 368, []uint32{0, 20}
		}), `weight "proj": band 0: have 64 values of Q4_0 too few`},
		{"type", edit(func(_ *program.Plan, w []*program.Placed, _ []*program.PlacedRecord) {
			w[0].Bands[0].Type = uint32(ggml.IQ4_NL)
		}), "of IQ4_NL too few"},
		{"no form", edit(func(_ *program.Plan, w []*program.Placed, _ []*program.PlacedRecord) {
			w[0].Bands[0].Type = uint32(ggml.I32)
		}), "band 0: have type I32"},
		{"cols", edit(func(_ *program.Plan, w []*program.Placed, _ []*program.PlacedRecord) { w[0].Cols = 32 }), "tensor proj: have rows of 64 values, want 32"},
		{"bytes", edit(func(_ *program.Plan, w []*program.Placed, _ []*program.PlacedRecord) { w[0].Bands[0].Bytes++ }), "want them as sdk/place lays out 9 x 64 values of Q4_0"},
		{"planes", edit(func(_ *program.Plan, w []*program.Placed, _ []*program.PlacedRecord) { w[0].Bands[0].Planes[1]++ }), "want them as sdk/place lays out"},
		{"plane missing", edit(func(_ *program.Plan, w []*program.Placed, _ []*program.PlacedRecord) {
			w[0].Bands[0].Planes = []uint32{0}
		}), "want them as sdk/place lays out"},
		{"base of a weight", edit(func(_ *program.Plan, w []*program.Placed, _ []*program.PlacedRecord) {
			w[0].Bands[0].Planes = []uint32{1, 19}
		}), `weight "proj": band 0: have it at byte 16, want it at 0`},
		{"vector", edit(func(_ *program.Plan, w []*program.Placed, _ []*program.PlacedRecord) { w[1].Cols = 63 }), `weight "norm": have a place for 1 x 63 values, want one band of 1 x 64`},
		{"vector type", edit(func(p *program.Plan, _ []*program.Placed, _ []*program.PlacedRecord) {
			p.Weights[1].Tensors = []string{"proj"}
		}), "tensor proj: have a VECTOR of Q4_0"},
		{"vector missing", edit(func(p *program.Plan, _ []*program.Placed, _ []*program.PlacedRecord) {
			p.Weights[1].Tensors = []string{"nope"}
		}), `tensor "nope" is not in the file`},
		{"tensor missing", edit(func(p *program.Plan, _ []*program.Placed, _ []*program.PlacedRecord) {
			p.Weights[0].Tensors = []string{"nope"}
		}), `tensor "nope" is not in the file`},
		{"layer", edit(func(_ *program.Plan, _ []*program.Placed, r []*program.PlacedRecord) { r[0].Layer = 4 }), "record of layer 3: have 2 placed parts of layer 4"},
		{"experts", edit(func(p *program.Plan, _ []*program.Placed, _ []*program.PlacedRecord) { p.Model.Experts = 2 }), "tensor up: have shape [64 6 4], want 3 dims, the last of 2 experts"},
		{"stride", edit(func(_ *program.Plan, _ []*program.Placed, r []*program.PlacedRecord) { r[0].Stride = 256 }), "have a stride of 256 bytes, want at least"},
		{"overlap", edit(func(_ *program.Plan, _ []*program.Placed, r []*program.PlacedRecord) {
			r[0].Parts[1].Bands[0].Planes[0]--
		}), `part "d": band 0: have it at byte 208, want it at 224`},
		{"embedding", edit(func(p *program.Plan, _ []*program.Placed, _ []*program.PlacedRecord) { p.Embed.Tensor = "nope" }), `embedding tensor "nope" is not in the file`},
		{"embedding shape", edit(func(p *program.Plan, _ []*program.Placed, _ []*program.PlacedRecord) { p.Embed.Tensor = "norm" }), "embedding tensor norm: have F32 of shape [64]"},
		{"divisor", edit(func(p *program.Plan, _ []*program.Placed, _ []*program.PlacedRecord) { p.Ropes[1].Divisor = "nope" }), `rope "divided": divisor tensor "nope" is not in the file`},
		{"divisor size", edit(func(p *program.Plan, _ []*program.Placed, _ []*program.PlacedRecord) { p.Ropes[1].Pairs = 9 }), "divisor tensor freqs: have F32 of shape [8], want F32 of at least 9 values"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w []*program.Placed
			for _, x := range o.weights {
				w = append(w, proto.CloneOf(x))
			}
			p, r := smallPlan(), []*program.PlacedRecord{proto.CloneOf(o.records[0])}
			w, r = c.change(p, w, r)
			_, err := store.NewGGUF(o.file, p, w, r)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "store: "+o.file.Parts[0].Name) {
				t.Errorf("have error %v\nwant %s", err, c.want)
			}
		})
	}
}

// edit is a change in place.
func edit(change func(*program.Plan, []*program.Placed, []*program.PlacedRecord)) func(*program.Plan, []*program.Placed, []*program.PlacedRecord) ([]*program.Placed, []*program.PlacedRecord) {
	return func(p *program.Plan, w []*program.Placed, r []*program.PlacedRecord) ([]*program.Placed, []*program.PlacedRecord) {
		change(p, w, r)
		return w, r
	}
}

// Many readers at once get what one gets, and every byte is counted.
func TestConcurrent(t *testing.T) {
	path := goldenFiles(t)[0]
	o := open(t, path, 1<<20-16, everything)
	experts := int(o.plan.Model.Experts)
	want := map[[2]int][]byte{}
	before := o.BytesRead()
	for i, r := range o.records {
		for e := range experts {
			want[[2]int{i, e}] = readRecord(t, o, r, e)
		}
	}
	bytesOnce := o.BytesRead() - before
	head := form(t, o, 0, 0, o.weights[0].Bands[0].Bytes)
	before = o.BytesRead()
	var all sync.WaitGroup
	const readers = 16
	for k := range readers {
		all.Go(func() {
			for _, n := range rand.New(rand.NewPCG(1, uint64(k))).Perm(len(want)) {
				i, e := n/experts, n%experts
				if !bytes.Equal(readInto(t, o, o.records[i], e), want[[2]int{i, e}]) {
					t.Errorf("layer %d expert %d: have other bytes than a lone reader", o.records[i].Layer, e)
				}
			}
		})
	}
	all.Wait()
	if have := o.BytesRead() - before; have != readers*bytesOnce {
		t.Errorf("have %d bytes counted, want %d", have, readers*bytesOnce)
	}
	for range readers {
		all.Go(func() {
			got := make([]byte, len(head))
			err := o.ReadBand(context.Background(), 0, 0, func(off uint64, data []byte) error { copy(got[off:], data); return nil })
			if err != nil || !bytes.Equal(got, head) {
				t.Errorf("band: have other bytes than a lone reader, %v", err)
			}
			row := make([]float32, o.plan.Model.Hidden)
			if err := o.EmbedRows([]int32{5}, row); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// readInto is readRecord for other goroutines than the test's.
func readInto(t *testing.T, s store.Source, r *program.PlacedRecord, expert int) []byte {
	dst := bytes.Repeat([]byte{0xa5}, int(r.Stride))
	if err := s.ReadRecord(context.Background(), int(r.Layer), expert, dst); err != nil {
		t.Error(err)
	}
	return dst
}

// Closing a source closes its file.
func TestClose(t *testing.T) {
	o := small(t)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if err := o.ReadBand(context.Background(), 0, 0, ignore); !errors.Is(err, os.ErrClosed) {
		t.Errorf("have error %v, want that of a closed file", err)
	}
}
