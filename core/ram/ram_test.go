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

	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/program"
)

// disk is a source of records whose bytes tell them apart.
type disk struct {
	store.Source
	reads  atomic.Int64
	fails  atomic.Bool
	within func(dst []byte) // called in each read; may be nil
	closed bool
}

var errDisk = errors.New("the disk is gone")

func (d *disk) ReadRecord(_ context.Context, layer, expert int, dst []byte) error {
	d.reads.Add(1)
	if d.within != nil {
		d.within(dst)
	}
	if d.fails.Load() {
		return errDisk
	}
	copy(dst, record(layer, expert, len(dst)))
	return nil
}

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

// The least recently read goes, and what is there is not read again.
func TestLRU(t *testing.T) {
	d := &disk{}
	c := cache(t, d, 3*4096+2*8192) // by thirds of each group's 48 experts: 3 slots and 2, or what fits
	if n := c.Counters(); n.Size > 3*4096+2*8192 || n.Slots < 4 {
		t.Fatalf("have %+v", n)
	}
	slots := len(c.places[1].bank.free)
	for e := range slots {
		read(t, c, 1, e)
	}
	read(t, c, 1, 0) // the newest now
	read(t, c, 3, 9) // of the same bank: in place of expert 1
	read(t, c, 1, 0) // there
	before := d.reads.Load()
	read(t, c, 1, 1)
	if d.reads.Load() != before+1 {
		t.Error("layer 1 expert 1 was there, want it gone")
	}
	if n := c.Counters(); n.Hits != 2 || n.Bytes != 2*4096 || n.Misses != int64(slots)+2 || n.Evictions != 2 {
		t.Errorf("have %+v with %d slots", n, slots)
	}
}

// A cache as large as all records reads each once, and takes no more than they need.
func TestAll(t *testing.T) {
	d := &disk{}
	c := cache(t, d, 1<<40)
	if n := c.Counters(); n.Slots != experts*len(strides) || n.Size != experts*(3*4096+3*8192) {
		t.Fatalf("have %+v", n)
	}
	for range 3 {
		for l := range strides {
			for e := range experts {
				read(t, c, l+1, e)
			}
		}
	}
	if n := c.Counters(); d.reads.Load() != int64(n.Slots) || n.Misses != int64(n.Slots) || n.Hits != 2*n.Misses || n.Evictions != 0 {
		t.Errorf("have %d reads, %+v", d.reads.Load(), n)
	}
}

// Sizes: never more than given, and an error where it is too little.
func TestSizes(t *testing.T) {
	for size := uint64(0); size < 1<<20; size += 1 + size/3 {
		c, err := New(&disk{}, placed(), experts, size)
		if size < 4096+8192 {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("have %d bytes, want at least 12288", size)) {
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

// A read that fails leaves nothing behind; wrong calls are the source's to refuse.
func TestFailures(t *testing.T) {
	d := &disk{}
	c := cache(t, d, 1<<20)
	d.fails.Store(true)
	for range 100 {
		if err := c.ReadRecord(t.Context(), 1, 2, make([]byte, 4096)); !errors.Is(err, errDisk) {
			t.Fatalf("have %v", err)
		}
	}
	for _, x := range []struct{ layer, expert, n int }{{0, 0, 4096}, {1, experts, 4096}, {1, -1, 4096}, {1, 0, 4095}, {2, 0, 4096}} {
		if err := c.ReadRecord(t.Context(), x.layer, x.expert, make([]byte, x.n)); !errors.Is(err, errDisk) {
			t.Errorf("%+v: have %v", x, err)
		}
	}
	d.fails.Store(false)
	read(t, c, 1, 2)
	read(t, c, 1, 2)
	if n := c.Counters(); n.Hits != 1 {
		t.Errorf("have %+v", n)
	}
}

// While all slots are being filled others read past the cache, and so does who wants what is being filled.
func TestBusy(t *testing.T) {
	begun, end := make(chan bool), make(chan bool)
	d := &disk{}
	d.within = func(dst []byte) {
		if dst[0] == 0 && len(dst) == 4096 && cap(dst) == 4096 { // a slot, not yet written
			begun <- true
			<-end
		}
	}
	c := cache(t, d, 4096+8192)
	var all sync.WaitGroup
	all.Go(func() { read(t, c, 1, 0) })
	<-begun
	other := func(layer, expert int) {
		dst := bytes.Repeat([]byte{1}, 4096) // told from a slot by its bytes
		if err := c.ReadRecord(t.Context(), layer, expert, dst); err != nil || !bytes.Equal(dst, record(layer, expert, 4096)) {
			t.Errorf("layer %d expert %d: have other bytes, error %v", layer, expert, err)
		}
	}
	other(1, 0)
	other(3, 5)
	end <- true
	all.Wait()
	read(t, c, 1, 0)
	if n := c.Counters(); n.Hits != 1 || n.Misses != 3 {
		t.Errorf("have %+v", n)
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
			}
		})
	}
	all.Wait()
	n := c.Counters()
	if n.Hits+n.Misses != readers*each || n.Hits == 0 || n.Evictions == 0 {
		t.Errorf("have %+v", n)
	}
	for _, p := range c.places {
		held := len(p.bank.free) + p.bank.listed
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
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.ReadRecord(b.Context(), 0, 0, dst); err != nil {
			b.Fatal(err)
		}
	}
}
