package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

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
	staging *staging
	keeping *keeping // of records that leave; nil for none

	awaited    atomic.Bool // the step waits for records
	delivering sync.Mutex  // guards the rest
	arrived    arrivals
	holds      [][]held  // by bank and slot, once what has arrived is submitted
	at         [][]int32 // the residency table, by index and expert: a slot, or -1; likewise
}

// held is the record that a slot's bytes are of.
type held struct {
	stream.Key
	any bool
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
	if err := x.makeResidency(banks); err != nil {
		return x, err
	}
	var err error
	if x.staging, err = x.makeStaging(stagingBuffers(o.Readers), m.largestRecord()); err != nil {
		return x, err
	}
	if o.Keep {
		if x.keeping, err = m.makeKeeping(o.Readers); err != nil {
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

// makeResidency makes the residency table, of experts that are all absent, and the table of what its entries can be: a copy
// from there brings an entry up to date in the order of the queue, between the copies of records.
func (x *experts) makeResidency(banks []stream.Bank) error {
	m := x.model
	for _, b := range banks {
		x.holds = append(x.holds, make([]held, b.Slots))
	}
	row := bytes.Repeat([]byte{absent & 0xFF}, int(m.sizes.residencyStride))
	for i := range m.Records {
		x.at = append(x.at, slices.Repeat([]int32{-1}, int(m.Plan.Model.Experts)))
		if err := m.device.Write(m.tables.residency, uint64(i)*m.sizes.residencyStride, row); err != nil {
			return err
		}
	}
	entries := make([]byte, m.sizes.entries)
	for i := range len(entries)/4 - 1 {
		binary.LittleEndian.PutUint32(entries[4*i:], uint32(i))
	}
	binary.LittleEndian.PutUint32(entries[len(entries)-4:], absent)
	return m.device.Write(m.tables.entries, 0, entries)
}

// point records the copy that makes a slot, or none (-1), the residency table's entry of an expert.
func (x *experts) point(c *gpu.Commands, key stream.Key, slot int) {
	m := x.model
	from := 4 * uint64(slot)
	if slot < 0 {
		from = m.sizes.entries - 4
	}
	c.Copy(m.tables.entries, from, m.tables.residency, x.index[key.Layer]*m.sizes.residencyStride+4*uint64(key.Expert), 4)
}

// arrivals are records in mapped memory whose copies to their slots are recorded and not submitted yet: the pool takes them to be
// there, so nothing is submitted without them. Where a submit fails, for whatever else was in it, they wait for the next one.
// Where they are alone in it, they never get there.
type arrivals struct {
	commands  gpu.Commands
	transfers []*transfer
	left      []func() // of records that are kept: what to do after the submit
	front     []*gpu.Commands
	err       error // of a submit of nothing else: slots lack what the pool takes to be there
}

// deliver records the copy of a record from its buffer to its slot, and where records are kept the one before it from there. The
// residency table changes in the same submit: before the copy it loses whose slot that was, and then gains whose it is. So
// whatever is submitted before or after finds no expert in a slot that has another's record.
//
// The submit is the step's next one, for each costs the GPU's owner some 0.1 ms; but where the step waits for more than this
// (rest is what else is being read), so that the GPU has nothing else to do, it is one of its own.
func (x *experts) deliver(t *transfer, rest int) error {
	x.delivering.Lock()
	defer x.delivering.Unlock()
	a, c, stride, old := &x.arrived, &x.arrived.commands, x.stride[t.bank], &x.holds[t.bank][t.slot]
	if old.any {
		if at := &x.at[x.index[old.Layer]][old.Expert]; *at == int32(t.slot) { // else it is in another slot by now
			x.point(c, old.Key, -1)
			*at = -1
		}
	}
	if left := x.keeping.leave(c, x, t.bank, t.slot); left != nil {
		a.left = append(a.left, left)
	}
	c.Copy(t.buffer, 0, x.banks[t.bank], uint64(t.slot)*stride, stride)
	x.point(c, t.key, t.slot)
	x.at[x.index[t.key.Layer]][t.key.Expert] = int32(t.slot)
	*old = held{t.key, true}
	a.transfers = append(a.transfers, t)
	if (rest == 0 || !x.awaited.Load()) && !x.staging.scarce(len(a.transfers)) {
		return nil
	}
	return x.sendArrived()
}

// submit submits prepared lists, others before and behind them, and before all of these what has arrived.
func (x *experts) submit(lists []*gpu.Prepared, before *gpu.Commands, behind ...*gpu.Commands) error {
	x.delivering.Lock()
	defer x.delivering.Unlock()
	return x.send(lists, before, behind...)
}

// flush submits what has arrived.
func (x *experts) flush() error {
	x.delivering.Lock()
	defer x.delivering.Unlock()
	if len(x.arrived.transfers) == 0 {
		return nil
	}
	return x.sendArrived()
}

// send is submit with the lock held.
func (x *experts) send(lists []*gpu.Prepared, before *gpu.Commands, behind ...*gpu.Commands) error {
	a := &x.arrived
	if a.err != nil {
		return a.err
	}
	a.front = append(a.front[:0], &a.commands, before)
	if err := x.model.device.SubmitPrepared(a.front, lists, behind...); err != nil || len(a.transfers) == 0 {
		return err
	}
	for _, left := range a.left {
		left()
	}
	a.gone()
	return nil
}

// sendArrived submits what has arrived alone, with the lock held. Readers may wait for its buffers, which are free then also if
// it fails.
func (x *experts) sendArrived() error {
	err := x.send(nil, &noCommands)
	if err != nil {
		x.arrived.err = err
		x.arrived.gone()
	}
	return err
}

// gone forgets what has arrived and has its buffers mapped anew.
func (a *arrivals) gone() {
	for _, t := range a.transfers {
		t.used <- struct{}{}
	}
	clear(a.left)
	clear(a.transfers)
	a.left, a.transfers = a.left[:0], a.transfers[:0]
	a.commands.Reset()
}
