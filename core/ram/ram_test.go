package ram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/program"
)

// disk is a source of records whose bytes tell them apart.
type disk struct {
	store.Source
	reads  atomic.Int64
	fails  atomic.Bool
	closed bool
}

var errDisk = errors.New("the disk is gone")

func (d *disk) Pieces(int, int) int { return 3 }

// ReadPiece writes thirds of a record; all of it with piece 0 of 1.
func (d *disk) ReadPiece(_ context.Context, layer, expert, piece, of int, dst []byte) (uint32, error) {
	d.reads.Add(1)
	if d.fails.Load() {
		return 0, errDisk
	}
	from, to := len(dst)*piece/of, len(dst)*(piece+1)/of
	copy(dst[from:to], record(layer, expert, len(dst))[from:])
	return 0, nil
}

func (d *disk) Check(int, int, []uint32) error { return nil }

func (d *disk) Close() error { d.closed = true; return nil }

func record(layer, expert, n int) []byte {
	return bytes.Repeat([]byte{byte(layer), byte(expert), 0xa5}, n/3+1)[:n]
}

const experts = 16

// strides are those of layers 1 to 6: two sizes of slots, of three sizes of records.
var strides = []uint64{4096, 4096 + 256, 4096, 8192, 4096, 4096 + 512}

func placed() (out []*program.PlacedRecord) {
	for i, s := range strides {
		out = append(out, &program.PlacedRecord{Layer: uint32(i + 1), Stride: s})
	}
	return out
}

func cache(t *testing.T, d *disk, size uint64) *Cache {
	t.Helper()
	c, err := New(d, placed(), experts, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil || !d.closed {
			t.Errorf("close: %v, source closed: %v", err, d.closed)
		}
	})
	return c
}

func read(t *testing.T, c *Cache, layer, expert int) {
	t.Helper()
	dst := make([]byte, strides[layer-1])
	if err := c.ReadRecord(t.Context(), layer, expert, dst); err != nil || !bytes.Equal(dst, record(layer, expert, len(dst))) {
		t.Errorf("layer %d expert %d: have other bytes, error %v", layer, expert, err)
	}
}

// leave is what the engine does when a record leaves the GPU.
func leave(c *Cache, layer, expert int) (kept bool) {
	if !c.Wants(layer, expert) {
		return false
	}
	c.Keep(layer, expert, record(layer, expert, int(strides[layer-1])))
	return true
}

// What left the GPU is found; of it what left longest ago goes, and what is on the GPU again goes first.
func TestOrder(t *testing.T) {
	d := &disk{}
	c := cache(t, d, 3*4096+2*8192)
	b := c.places[1].bank
	slots := len(b.free)
	if n := c.Counters(); n.Size > 3*4096+2*8192 || slots < 3 {
		t.Fatalf("have %+v, %d slots", n, slots)
	}
	for e := range slots {
		if !leave(c, 1, e) {
			t.Errorf("expert %d was not wanted", e)
		}
	}
	found := func(layer, expert int, want bool) {
		t.Helper()
		before := d.reads.Load()
		read(t, c, layer, expert)
		if have := d.reads.Load() == before; have != want {
			t.Errorf("layer %d expert %d: found %v, want %v", layer, expert, have, want)
		}
	}
	if leave(c, 1, 0) { // the newest now
		t.Error("expert 0 was kept twice")
	}
	leave(c, 3, 9) // of the same bank: in place of expert 1
	found(1, 1, false)
	found(1, 0, true) // which is spare now, though it is new
	leave(c, 3, 10)   // in its place
	found(1, 0, false)
	found(1, 2, true)
	if leave(c, 1, 2) { // it was never overwritten
		t.Error("expert 2 was copied, want it found")
	}
	found(3, 9, true)
	found(3, 10, true)
	if n := c.Counters(); n.Hits != 4 || n.Bytes != 4*4096 || n.Misses != 2 || n.Kept != int64(slots)+2 || n.Evictions != 1 {
		t.Errorf("have %+v with %d slots", n, slots)
	}
	found(1, 2, true)
	d.fails.Store(true) // from memory nothing fails
	found(1, 2, true)
}

// A cache as large as all records reads nothing that was kept, and takes no more than they need.
func TestAll(t *testing.T) {
	d := &disk{}
	c := cache(t, d, 1<<40)
	if n := c.Counters(); n.Slots != experts*len(strides) || n.Size != experts*(3*4096+3*8192) {
		t.Fatalf("have %+v", n)
	}
	for turn := range 3 {
		for l := range strides {
			for e := range experts {
				read(t, c, l+1, e)
				if leave(c, l+1, e) != (turn == 0) {
					t.Errorf("turn %d: layer %d expert %d: wanted or not", turn, l+1, e)
				}
			}
		}
	}
	if n := c.Counters(); d.reads.Load() != int64(n.Slots) || n.Misses != int64(n.Slots) || n.Hits != 2*n.Misses || n.Kept != n.Misses || n.Evictions != 0 {
		t.Errorf("have %d reads, %+v", d.reads.Load(), n)
	}
}

// Sizes: never more than given, and an error where it is too little.
func TestSizes(t *testing.T) {
	for size := uint64(0); size < 1<<20; size += 1 + size/3 {
		c, err := New(&disk{}, placed(), experts, size)
		if size < 4096+8192 {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("have %s, want at least 12.3 kB (12288 bytes)", humanize.BytesN(size, 3))) {
				t.Errorf("%d bytes: have %v", size, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, m := range c.memory {
			n += len(m)
		}
		if have := c.Counters(); have.Size > size || have.Size != uint64(n) || have.Size+4096 < min(size, experts*3*(4096+8192)) {
			t.Errorf("%d bytes: have %+v, %d mapped", size, have, n)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Wrong calls are the source's to refuse, and so are reads of what is not there.
func TestFailures(t *testing.T) {
	d := &disk{}
	c := cache(t, d, 1<<20)
	d.fails.Store(true)
	for _, x := range []struct{ layer, expert, n int }{{1, 2, 4096}, {0, 0, 4096}, {1, experts, 4096}, {1, -1, 4096}, {1, 0, 4095}, {2, 0, 4096}} {
		if err := c.ReadRecord(t.Context(), x.layer, x.expert, make([]byte, x.n)); !errors.Is(err, errDisk) {
			t.Errorf("%+v: have %v", x, err)
		}
	}
	if c.Wants(0, 0) || c.Wants(1, experts) || c.Wants(1, -1) {
		t.Error("have it want what it has no room for")
	}
	if leave(c, 1, 2); c.Wants(1, 2) || c.Counters().Kept != 1 {
		t.Errorf("have %+v", c.Counters())
	}
}

// Slots in use are nobody else's.
func TestBusy(t *testing.T) {
	d := &disk{}
	c := cache(t, d, 4096+8192)
	b, id := c.find(1, 0, 4096)
	slot := c.claim(b, id)
	if slot == nil || c.claim(b, id) != nil || c.Wants(1, 0) {
		t.Fatal("have no slot, or one twice")
	}
	leave(c, 3, 5) // dropped
	read(t, c, 3, 5)
	read(t, c, 1, 0) // not filled yet
	copy(slot, record(1, 0, 4096))
	b.entries[id].filling = false
	b.unpin(id)
	data := c.take(b, id, 4096)
	leave(c, 3, 5) // dropped
	if !bytes.Equal(data, record(1, 0, 4096)) {
		t.Error("have other bytes in a slot in use")
	}
	b.unpin(id)
	leave(c, 3, 5)
	read(t, c, 3, 5)
	if n := c.Counters(); n.Hits != 2 || n.Misses != 2 || n.Kept != 2 || d.reads.Load() != 2 {
		t.Errorf("have %+v, %d reads", n, d.reads.Load())
	}
}

// Many readers at once get the right bytes, whatever is evicted meanwhile.
func TestReadersAtOnce(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	d := &disk{}
	c := cache(t, d, 7*4096+5*8192)
	var all sync.WaitGroup
	const readers, each = 8, 2000
	for i := range readers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range each {
				if r.IntN(50) == 0 {
					d.fails.Store(r.IntN(2) == 0)
				}
				l := 1 + r.IntN(len(strides))
				e := min(r.IntN(experts), r.IntN(experts))
				dst := make([]byte, strides[l-1])
				err := c.ReadRecord(t.Context(), l, e, dst)
				if err != nil && !errors.Is(err, errDisk) || err == nil && !bytes.Equal(dst, record(l, e, len(dst))) {
					t.Errorf("layer %d expert %d: have other bytes, error %v", l, e, err)
				}
				if r.IntN(3) > 0 {
					leave(c, l, e)
				}
			}
		})
	}
	all.Wait()
	n := c.Counters()
	if n.Hits+n.Misses != readers*each || n.Hits == 0 || n.Evictions == 0 || n.Kept == 0 {
		t.Errorf("have %+v", n)
	}
	for _, p := range c.places {
		held := len(p.bank.free) + p.bank.kept.n + p.bank.spare.n
		if want := len(p.bank.memory) / int(p.bank.slot); held != want {
			t.Errorf("have %d slots free or listed, want %d", held, want)
		}
	}
}

func BenchmarkHit(b *testing.B) {
	const size = 3 << 20
	c, err := New(&disk{}, []*program.PlacedRecord{{Layer: 0, Stride: size}}, 1, size)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	dst := make([]byte, size)
	c.Keep(0, 0, dst)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.ReadRecord(b.Context(), 0, 0, dst); err != nil {
			b.Fatal(err)
		}
	}
}
