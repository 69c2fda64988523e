package engine

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/stream"
)

// DefaultReaders is how many records are read at once unless asked otherwise: half of the CPUs, 4 to 8. A disk seldom gains
// from more than 4; each reader also packs what it reads, which takes as long where the page cache has it
// (docs/benchmarks.md).
func DefaultReaders() int { return min(8, max(4, runtime.NumCPU()/2)) }

// absent marks an expert without a slot in the residency table.
const absent = 0xFFFFFFFF

// experts is the slot pool and its buffers.
type experts struct {
	model   *Model
	pool    *stream.Pool
	banks   []*gpu.Buffer
	stride  []uint64       // by bank
	slots   []int          // by bank
	bank    map[int]int    // by layer
	index   map[int]uint64 // a layer's place among the MoE layers
	rows    [][]byte       // the residency table's rows, by index
	dirty   []bool
	staging *staging
	keeping *keeping // of records that leave; nil for none

	mapping sync.Mutex // held while the residency table is brought up to date
	changes []stream.Change
}

// makeExperts creates the banks and the pool.
func (m *Model) makeExperts(banks []stream.Bank, o Options) (*experts, error) {
	x := &experts{model: m, bank: map[int]int{}, index: map[int]uint64{}}
	for i, r := range m.Records {
		x.index[int(r.Layer)] = uint64(i)
	}
	usage := gpu.UsageStorage | gpu.UsageCopyDst
	if o.Keep {
		usage |= gpu.UsageCopySrc
	}
	for i, b := range banks {
		buf, err := m.device.NewBuffer(gpu.Pool, fmt.Sprintf("bank %d", i), uint64(b.Slots)*uint64(b.RecordBytes), usage)
		if err != nil {
			return x, err
		}
		x.banks, x.stride, x.slots = append(x.banks, buf), append(x.stride, uint64(b.RecordBytes)), append(x.slots, b.Slots)
		for _, l := range b.Layers {
			x.bank[l] = i
		}
	}
	for range m.Records {
		row := make([]byte, 4*m.Plan.Model.Experts)
		for i := range row {
			row[i] = absent & 0xFF
		}
		x.rows = append(x.rows, row)
		x.dirty = append(x.dirty, true)
	}
	var err error
	if x.staging, err = x.makeStaging(stagingBuffers(o.Readers), m.largestRecord()); err != nil {
		return x, err
	}
	if o.Keep {
		if x.keeping, err = m.makeKeeping(banks, o.Readers); err != nil {
			return x, err
		}
	}
	x.pool, err = stream.New(stream.Config{Banks: banks, Readers: o.Readers, Loader: x, Policy: o.Policy})
	return x, err
}

func (x *experts) close() {
	if x.pool != nil {
		x.pool.Close()
	}
	x.keeping.close()
	if x.staging != nil {
		x.staging.release()
	}
	for _, b := range x.banks {
		b.Release()
	}
}

// largestRecord is the greatest stride.
func (m *Model) largestRecord() uint64 {
	var n uint64
	for _, r := range m.Records {
		n = max(n, r.Stride)
	}
	return n
}

func (x *experts) bankOf(layer int) *gpu.Buffer { return x.banks[x.bank[layer]] }

// deliver copies a record from its buffer to its slot, and where records are kept the one before it from there.
func (x *experts) deliver(t *transfer) error {
	if err := x.writeMap(); err != nil {
		return err
	}
	c, stride := &t.commands, x.stride[t.bank]
	c.Reset()
	left := x.keeping.leave(c, x, t.bank, t.slot)
	c.Copy(t.buffer, 0, x.banks[t.bank], uint64(t.slot)*stride, stride)
	err := x.model.device.Submit(c)
	if err == nil {
		x.keeping.enter(t.key, t.bank, t.slot)
	}
	if left != nil {
		left(err)
	}
	return err
}

// writeMap brings the residency table up to date. It comes before each submit that reads the table, and between the eviction
// from a slot and the next upload to it: then no submit finds a slot whose record is not the expert's.
func (x *experts) writeMap() error {
	x.mapping.Lock()
	defer x.mapping.Unlock()
	x.changes = x.pool.Changes(x.changes[:0])
	for _, c := range x.changes {
		i := x.index[c.Key.Layer]
		slot := uint32(absent)
		if c.Slot >= 0 {
			slot = uint32(c.Slot)
		}
		binary.LittleEndian.PutUint32(x.rows[i][4*c.Key.Expert:], slot)
		x.dirty[i] = true
	}
	stride := x.model.sizes.residencyStride
	for i, d := range x.dirty {
		if !d {
			continue
		}
		if err := x.model.device.Write(x.model.tables.residency, uint64(i)*stride, x.rows[i]); err != nil {
			return err
		}
		x.dirty[i] = false
	}
	return nil
}
